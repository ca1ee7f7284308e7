//! Which servers a session has: those of the user (`settings.json`, `mcp.json`), of the project where it is trusted
//! (`.mcp.json`, in the dialect of today's oh-my-pi `.omp/mcp.json`, `.pi/mcp.json`), of the command line. Of one name, the later of
//! these counts.

use std::path::Path;

use ::config::settings::{Settings, jsonc};
use ::config::trust::ProjectAccess;
use ::extensions::line::McpServer;
use ::mcp::{ServerConfig, config};
use files::{Root, is_absent};
use serde_json::{Map, Value};

use super::McpSetup;

/// Who configured a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    User,
    Project,
    Cli,
    Session,
    Extension,
}

impl Origin {
    /// The word on the wire.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Cli => "cli",
            Self::Session => "session",
            Self::Extension => "extension",
        }
    }
}

/// A server, and who wants it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Configured {
    pub(crate) config: ServerConfig,
    pub(crate) origin: Origin,
}

/// Members that an entry without a way to the server changes in the one it names (pi 1.x).
const ADJUSTABLE: [&str; 5] = ["enabled", "disabled", "exposure", "toolExposure", "tools"];

/// The configured servers, and the problems of the files; `project` is the directory that the settings are about.
pub(crate) fn read(
    setup: &McpSetup,
    settings: &Settings,
    agent_dir: &Path,
    project: Option<&Path>,
) -> (Vec<Configured>, Vec<String>) {
    let mut entries = Entries {
        is_omp: setup.is_omp,
        ..Entries::default()
    };
    if setup.off {
        return (Vec::new(), Vec::new());
    }
    // A project's part of the settings was taken out if it is not trusted.
    if let Some(servers) = settings.raw.get("mcpServers") {
        entries.add("settings.json", servers, Origin::User);
    }
    let user = Root::user();
    if setup.is_omp {
        entries.file(&user, &agent_dir.join(".mcp.json"), Origin::User, false);
    }
    entries.file(&user, &agent_dir.join("mcp.json"), Origin::User, false);
    if let Some(project) = project.filter(|_| settings.project == ProjectAccess::Full) {
        let root = setup.boundaries.project(project);
        entries.file(&root, &project.join(".mcp.json"), Origin::Project, false);
        for name in [".mcp.json", "mcp.json"].iter().filter(|_| setup.is_omp) {
            let path = project.join(".omp").join(name);
            entries.file(&root, &path, Origin::Project, false);
        }
        entries.file(
            &root,
            &project.join(".pi").join("mcp.json"),
            Origin::Project,
            false,
        );
    }
    for path in &setup.files {
        // The command line names the file, so that a missing one is a problem.
        entries.file(&user, path, Origin::Cli, true);
    }
    entries.disable();
    entries.read()
}

/// Entries by name, before they are read.
#[derive(Default)]
struct Entries {
    is_omp: bool,
    found: Vec<(String, Value, Origin)>,
    /// Servers that the user of oh-my-pi disabled, wherever they are configured.
    disabled: Vec<String>,
    problems: Vec<String>,
}

impl Entries {
    fn file(&mut self, root: &Root, path: &Path, origin: Origin, must_be: bool) {
        let text = match root.read(path, ::mcp::limits::CONFIG) {
            Ok(text) => text.text,
            // The sandbox of the tools puts an empty directory where a file is missing, so that nothing else can be put there.
            Err(error) if is_absent(&error) && !must_be && is_empty(root, path) => return,
            Err(error) => return self.problems.push(format!("{}: {error}", path.display())),
        };
        let document: Value = match jsonc::parse(&text) {
            Ok(document) => document,
            Err(error) => {
                let (line, column) = (error.line(), error.column());
                return self.problems.push(format!(
                    "{}: no JSON (line {line} column {column})",
                    path.display()
                ));
            }
        };
        let disabled = document.get("disabledServers").and_then(Value::as_array);
        if let Some(names) = disabled.filter(|_| self.is_omp && origin == Origin::User) {
            let names = names.iter().filter_map(Value::as_str);
            self.disabled.extend(names.map(str::to_owned));
        }
        if let Some(servers) = document.get("mcpServers") {
            self.add(&path.display().to_string(), servers, origin);
        }
    }

    fn add(&mut self, place: &str, servers: &Value, origin: Origin) {
        let Value::Object(servers) = servers else {
            return self
                .problems
                .push(format!("{place}: \"mcpServers\" should be an object"));
        };
        for (name, entry) in servers {
            // Tools are named after the namespace, in which `-` and `_` are the same. Two servers with one namespace could have tools
            // of the same name, so they count as one server.
            let known = self
                .found
                .iter_mut()
                .find(|(known, ..)| ::mcp::namespace(known) == ::mcp::namespace(name));
            match (known, entry) {
                // The origin stays: program or address are still those of the earlier file.
                (Some((_, known, _)), Value::Object(changes)) if !says_where(changes) => {
                    adjust(known, changes);
                }
                (Some(known), entry) => *known = (name.clone(), entry.clone(), origin),
                (None, entry) => self.found.push((name.clone(), entry.clone(), origin)),
            }
        }
    }

    fn disable(&mut self) {
        for (name, entry, _) in &mut self.found {
            if let Value::Object(entry) = entry
                && self.disabled.contains(name)
            {
                entry.insert("enabled".to_owned(), Value::Bool(false));
            }
        }
    }

    fn read(self) -> (Vec<Configured>, Vec<String>) {
        let mut problems = self.problems;
        let mut servers = Vec::new();
        for (name, entry, origin) in self.found {
            match ServerConfig::read(&name, &entry) {
                Ok(config) if servers.len() < ::mcp::limits::SERVERS => {
                    servers.push(Configured { config, origin });
                }
                Ok(config) => problems.push(format!("MCP server \"{}\" is one too many", config.name)),
                Err(problem) => problems.push(problem),
            }
        }
        (servers, problems)
    }
}

/// Returns true if nothing is there, or an empty directory.
fn is_empty(root: &Root, path: &Path) -> bool {
    root.list(path, 1).map_or(true, |(entries, _)| entries.is_empty())
}

/// Does an entry say how the server is reached?
fn says_where(entry: &Map<String, Value>) -> bool {
    ["command", "url", "type"]
        .iter()
        .any(|key| entry.contains_key(*key))
}

fn adjust(known: &mut Value, changes: &Map<String, Value>) {
    if let Value::Object(known) = known {
        for key in ADJUSTABLE {
            if let Some(value) = changes.get(key) {
                known.insert(key.to_owned(), value.clone());
            }
        }
    }
}

/// A server that an extension registers.
///
/// # Errors
/// The reason why it cannot be used.
pub(crate) fn of_extension(server: &McpServer) -> Result<Configured, String> {
    Ok(Configured {
        config: ServerConfig::read(&server.name, &server.config)?,
        origin: Origin::Extension,
    })
}

/// The servers that a client sets for its session.
///
/// # Errors
/// The defect of the first entry that cannot be used.
pub(crate) fn of_session(servers: &Map<String, Value>) -> Result<Vec<Configured>, String> {
    if servers.len() > ::mcp::limits::SERVERS {
        return Err(format!(
            "A session has at most {} MCP servers",
            ::mcp::limits::SERVERS
        ));
    }
    let document = Value::Object(Map::from_iter([(
        "mcpServers".to_owned(),
        Value::Object(servers.clone()),
    )]));
    let read = config::servers(&document).into_iter();
    let configured = read.map(|config| {
        Ok(Configured {
            config: config?,
            origin: Origin::Session,
        })
    });
    let configured: Vec<Configured> = configured.collect::<Result<_, String>>()?;
    // A map has no key twice, but `a-b` and `a_b` mean the same server (`ServerConfig::is_called`).
    for (at, server) in configured.iter().enumerate() {
        if configured
            .iter()
            .skip(at + 1)
            .any(|other| other.config.is_called(&server.config.name))
        {
            return Err(format!("MCP server \"{}\" is there twice", server.config.name));
        }
    }
    Ok(configured)
}
