//! `sandbox`: what tools are confined to, as the user's file and the project's say. What it means is in the tools' crate.
//!
//! A project can only tighten. Settings fail closed: an unknown mode becomes `read-only`.

use serde_json::Value;
use wire::state::SandboxMode;

use crate::diagnostic::Diagnostic;
use crate::settings::layers::Layer;
use crate::settings::reader::Reader;
use crate::source::Scope;

/// What both files come to. Paths are as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxSettings {
    /// `sandbox.mode` of the user; the command line may choose another.
    pub user_mode: SandboxMode,
    /// `sandbox.mode` of the project: the least that holds.
    pub project_mode: SandboxMode,
    /// `sandbox.network`: commands may use the network.
    pub network: bool,
    /// True if the project forbids it, even if the user allows it.
    pub project_has_no_network: bool,
    /// `sandbox.unixSockets`.
    pub unix_sockets: bool,
    /// `sandbox.gitWritable`.
    pub git_writable: bool,
    /// `sandbox.userBash`: the user's own `bash` command is confined, too.
    pub user_bash: bool,
    /// `sandbox.writable`.
    pub writable: Vec<String>,
    /// `sandbox.readable`, unless it is `all`.
    pub readable: Option<Vec<String>>,
    /// `sandbox.denyRead` of both.
    pub deny_read: Vec<String>,
}

impl SandboxSettings {
    /// The mode that holds when the command line chooses this one, if it does.
    #[must_use]
    pub fn mode(&self, chosen: Option<SandboxMode>) -> SandboxMode {
        chosen.unwrap_or(self.user_mode).max(self.project_mode)
    }
}

/// What one file says; what it does not say is none.
#[derive(Default)]
struct Said {
    mode: Option<SandboxMode>,
    flags: [Option<bool>; 4],
    writable: Option<Vec<String>>,
    readable: Option<Vec<String>>,
    deny_read: Option<Vec<String>>,
}

/// Members that say yes or no; a project's yes counts for the last one only, where yes is stricter.
const FLAGS: [&str; 4] = ["network", "unixSockets", "gitWritable", "userBash"];

pub(super) fn sandbox(reader: &mut Reader<'_>) -> SandboxSettings {
    let (mut user, mut project) = (Said::default(), Said::default());
    for layer in reader.layers {
        let said = one(layer, &mut reader.notes);
        match layer.scope {
            Scope::Project => project = said,
            _ => user = said,
        }
    }
    let yes = |flag: Option<bool>| flag == Some(true);
    let both = |user: Option<bool>, project: Option<bool>| yes(user) && project != Some(false);
    let [network, unix_sockets, git_writable, user_bash] = user.flags;
    let [no_network, no_sockets, no_git, or_user_bash] = project.flags;
    SandboxSettings {
        user_mode: user.mode.unwrap_or_default(),
        project_mode: project.mode.unwrap_or_default(),
        network: both(network, no_network),
        project_has_no_network: no_network == Some(false),
        unix_sockets: both(unix_sockets, no_sockets),
        git_writable: both(git_writable, no_git),
        user_bash: yes(user_bash) || yes(or_user_bash),
        writable: user.writable.unwrap_or_default(),
        readable: user.readable,
        deny_read: user
            .deny_read
            .into_iter()
            .chain(project.deny_read)
            .flatten()
            .collect(),
    }
}

fn one(layer: &Layer, notes: &mut Vec<Diagnostic>) -> Said {
    let mut fault = |key: &str, message: String| notes.push(Diagnostic::fault(&layer.path, key, message));
    if layer.get("sandbox").is_some_and(|value| !value.is_object()) {
        let message = "\"sandbox\" should be an object; taken as the mode read-only";
        fault("sandbox", message.to_owned());
        return Said {
            mode: Some(SandboxMode::ReadOnly),
            ..Said::default()
        };
    }
    let mode = layer.get("sandbox.mode").map(|value| {
        value.as_str().and_then(SandboxMode::parse).unwrap_or_else(|| {
            let message = "\"sandbox.mode\" should be off, workspace-write or read-only; taken as read-only";
            fault("sandbox.mode", message.to_owned());
            SandboxMode::ReadOnly
        })
    });
    let flags = FLAGS.map(|name| {
        let key = format!("sandbox.{name}");
        let value = layer.get(&key)?;
        value.as_bool().or_else(|| {
            fault(&key, format!("\"{key}\" should be true or false; ignored"));
            None
        })
    });
    let mut list = |name: &str| {
        let key = format!("sandbox.{name}");
        let value = layer.get(&key)?;
        let items = value
            .as_array()
            .map_or(std::slice::from_ref(value), Vec::as_slice);
        let texts = items.iter().filter_map(Value::as_str).map(str::to_owned);
        let texts: Vec<String> = texts.collect();
        if !value.is_array() || texts.len() < items.len() {
            // Valid paths still count: an agent that serves clients goes on with these settings.
            let message = format!("\"{key}\" should be a list of paths; other values are ignored");
            fault(&key, message);
        }
        Some(texts)
    };
    let is_all = layer.get("sandbox.readable").and_then(Value::as_str) == Some("all");
    let mut said = Said {
        mode,
        flags,
        writable: list("writable"),
        readable: if is_all { None } else { list("readable") },
        deny_read: list("denyRead"),
    };
    if layer.scope == Scope::Project {
        for (name, value) in [("writable", &mut said.writable), ("readable", &mut said.readable)] {
            if value.take().is_some() {
                let message = format!("\"sandbox.{name}\" is left out: only the user's own file may say it");
                notes.push(Diagnostic::new(&layer.path, message));
            }
        }
    }
    said
}
