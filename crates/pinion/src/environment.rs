//! The process's surroundings, read once: variables, directories, terminals. Everything else gets them as values.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use llm::{CacheRetention, ProxyConfig};

/// The variable with the token that clients of the web server must send, for hosts that must not put it on the command line, which
/// other users can read.
pub(crate) const WEB_TOKEN: &str = "PINION_WEB_TOKEN";

/// What a session tells its commands about itself.
const OF_SESSION: [&str; 5] = [
    "PI_SESSION_ID",
    "PI_SESSION_FILE",
    "PI_PROVIDER",
    "PI_MODEL",
    "PI_REASONING_LEVEL",
];

/// Some text on stdout could not be written.
static LOST_OUTPUT: AtomicBool = AtomicBool::new(false);

/// The surroundings.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    /// All variables, for child processes.
    all: Vec<(OsString, OsString)>,
    text: Arc<HashMap<String, String>>,
    /// The user's home directory.
    pub(crate) home: Option<PathBuf>,
    /// Settings, keys and sessions.
    pub(crate) agent_dir: PathBuf,
    /// Working directory of sessions.
    pub(crate) cwd: PathBuf,
    /// Where the process was started: what paths on the command line are relative to.
    pub(crate) started_in: PathBuf,
    /// For logs of long outputs.
    pub(crate) tmp_dir: PathBuf,
}

impl Environment {
    /// Returns these surroundings with another working directory.
    pub(crate) fn in_directory(&self, dir: &Path) -> Self {
        Self {
            cwd: dir.to_path_buf(),
            ..self.clone()
        }
    }

    /// Reads it, after a change to the directory of `--cwd`. No thread may run yet that relies on the working directory.
    pub(crate) fn read(dir: Option<&str>) -> anyhow::Result<Self> {
        let all: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let text: HashMap<String, String> = all
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
            .collect();
        let home = text
            .get("HOME")
            .filter(|home| !home.is_empty())
            .map(PathBuf::from);
        let current_dir = || std::env::current_dir().context("The working directory is not there");
        // As in oh-my-pi, the variable is relative to where the process was started, and options are relative to `--cwd`.
        let mut cwd = current_dir()?;
        let named = text.get("PI_CODING_AGENT_DIR").map(String::as_str);
        let agent_dir = agent_dir(named, home.as_deref(), &cwd);
        if let Some(dir) = dir {
            std::env::set_current_dir(dir)
                .with_context(|| format!("Cannot change working directory to {dir}"))?;
            cwd = current_dir()?;
        }
        let agent_dir = agent_dir.context(
            "HOME is not set. Set it, or name a directory for settings and keys in PI_CODING_AGENT_DIR",
        )?;
        Ok(Self {
            all,
            text: Arc::new(text),
            home,
            agent_dir,
            started_in: cwd.clone(),
            cwd,
            tmp_dir: std::env::temp_dir(),
        })
    }

    /// A variable; empty counts as unset.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.text
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Returns true if the variable is `1`, `true`, `yes` or `on`, in any case (dialects.md 10.4).
    pub(crate) fn is_on(&self, name: &str) -> bool {
        let value = self.get(name).unwrap_or_default().trim().to_ascii_lowercase();
        ["1", "true", "yes", "on"].contains(&value.as_str())
    }

    /// A look-up that can be given away.
    pub(crate) fn lookup(&self) -> models::Env {
        let text = Arc::clone(&self.text);
        Arc::new(move |name: &str| text.get(name).cloned())
    }

    /// The environment of commands: that of tools without what describes the session of another agent that started this one. A
    /// session adds its own description, which may lack a file or a model.
    pub(crate) fn for_commands(&self, secrets: &[String]) -> Vec<(OsString, OsString)> {
        let mut env = self.for_tools(secrets);
        env.retain(|(name, _)| OF_SESSION.iter().all(|hidden| name != hidden));
        env
    }

    /// The environment of tools: everything but the variables that hold keys, and the token of the web server.
    pub(crate) fn for_tools(&self, secrets: &[String]) -> Vec<(OsString, OsString)> {
        let hidden = |name: &OsString| {
            name.to_str()
                .is_some_and(|name| name == WEB_TOKEN || secrets.iter().any(|secret| secret == name))
        };
        let mut env: Vec<(OsString, OsString)> = self
            .all
            .iter()
            .filter(|(name, _)| !hidden(name))
            .cloned()
            .collect();
        for (name, value) in [("PI_CODING_AGENT", "true"), ("AI_AGENT", "pinion")] {
            env.retain(|(known, _)| known != name);
            env.push((name.into(), value.into()));
        }
        env
    }

    /// Proxies. The setting `httpProxy` stands for both variables where the environment names none.
    pub(crate) fn proxy(&self, setting: Option<&str>) -> ProxyConfig {
        let either =
            |upper: &str, lower: &str| self.get(lower).or_else(|| self.get(upper)).map(str::to_owned);
        let all = either("ALL_PROXY", "all_proxy");
        let setting = setting.filter(|_| all.is_none()).map(str::to_owned);
        ProxyConfig {
            http: either("HTTP_PROXY", "http_proxy").or_else(|| setting.clone()),
            https: either("HTTPS_PROXY", "https_proxy").or(setting),
            all,
            no_proxy: either("NO_PROXY", "no_proxy"),
        }
    }

    /// Where keys and logins are stored.
    pub(crate) fn auth_file(&self) -> PathBuf {
        self.agent_dir.join("auth.json")
    }

    /// `PI_OFFLINE` (pi-core.md 7.6).
    pub(crate) fn is_offline(&self) -> bool {
        let yes = |value: &str| matches!(value.to_lowercase().as_str(), "1" | "true" | "yes");
        self.get("PI_OFFLINE").is_some_and(yes)
    }

    /// `PI_CACHE_RETENTION`.
    pub(crate) fn cache_retention(&self) -> CacheRetention {
        match self.get("PI_CACHE_RETENTION") {
            Some("long") => CacheRetention::Long,
            Some("none") => CacheRetention::None,
            _ => CacheRetention::Short,
        }
    }

    /// A path as a person writes it: `~` is the home directory, relative ones start where the process was started.
    pub(crate) fn path(&self, text: &str) -> PathBuf {
        self.started_in.join(expand_home(text, self.home.as_deref()))
    }
}

/// The agent directory: what the variable names, or `~/.pi/agent`. None without both. It is absolute, also if the variable is not:
/// the sandbox and the rules of permissions compare it with absolute paths, and would protect nothing otherwise.
fn agent_dir(named: Option<&str>, home: Option<&Path>, cwd: &Path) -> Option<PathBuf> {
    let dir = match named.filter(|dir| !dir.is_empty()) {
        Some(dir) => expand_home(dir, home),
        None => home?.join(".pi").join("agent"),
    };
    Some(cwd.join(dir))
}

fn expand_home(text: &str, home: Option<&Path>) -> PathBuf {
    match (text.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_path_buf(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(text),
    }
}

/// Closes the memory, environment and descriptors of this process to other processes of the same user: commands of the model run
/// as this user, and could write protocol lines through `/proc/PID/fd`. Debuggers and profilers cannot attach either, unless
/// `PINION_DEBUGGABLE` is set. Does not hold against root. Linux only.
pub(crate) fn forbid_inspection() {
    #[cfg(target_os = "linux")]
    if std::env::var_os("PINION_DEBUGGABLE").is_none_or(|value| value.is_empty()) {
        let closed = rustix::process::DumpableBehavior::NotDumpable;
        let _as_it_is = rustix::process::set_dumpable_behavior(closed);
    }
}

/// Writes a line to stderr. A closed stderr is not an error.
pub(crate) fn complain(line: &str) {
    let _unread = writeln!(std::io::stderr(), "{}", plain(line));
}

/// Text for people that was asked for, on stdout.
pub(crate) fn say(text: &str) {
    say_exactly(&plain(text));
}

/// Output that was asked for, on stdout: data for programs, or text that has colours and is plain otherwise. A reader that has gone has
/// read what it wanted. Any other error, such as a full disk, makes the program fail ([`has_lost_output`]).
pub(crate) fn say_exactly(text: &str) {
    let written = writeln!(std::io::stdout(), "{}", text.trim_end_matches('\n'));
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
        && !LOST_OUTPUT.swap(true, Ordering::Relaxed)
    {
        complain(&format!("Error: stdout: {error}"));
    }
}

/// Returns true if text on stdout could not be written.
pub(crate) fn has_lost_output() -> bool {
    LOST_OUTPUT.load(Ordering::Relaxed)
}

/// Text without anything that a terminal obeys, or that turns the direction of text around. Names of files, keys of settings, errors of
/// servers and answers of models may hold anything; lines and tabs stay.
pub(crate) fn plain(text: &str) -> String {
    let shown = |c| match c {
        '\n' | '\t' => Some(c),
        '\r' => None,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Some('\u{fffd}'),
        c if c.is_control() => Some('\u{fffd}'),
        c => Some(c),
    };
    text.chars().filter_map(shown).collect()
}

/// Returns true if text on stdout may have colours.
pub(crate) fn stdout_takes_colour(env: &Environment) -> bool {
    std::io::stdout().is_terminal() && env.get("NO_COLOR").is_none() && env.get("TERM") != Some("dumb")
}

/// True if stdin is a terminal.
pub(crate) fn stdin_is_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// True if a person types on stdin and reads stdout.
pub(crate) fn is_interactive() -> bool {
    stdin_is_terminal() && std::io::stdout().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Environment {
        let text = pairs
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        Environment {
            all: Vec::new(),
            text: Arc::new(text.collect()),
            home: None,
            agent_dir: PathBuf::from("/agent"),
            cwd: PathBuf::from("/work"),
            started_in: PathBuf::from("/work"),
            tmp_dir: PathBuf::from("/tmp"),
        }
    }

    #[test]
    fn agent_directory_is_absolute() {
        let dir = |named, home: Option<&str>| agent_dir(named, home.map(Path::new), Path::new("/p"));
        assert_eq!(dir(Some("conf/agent"), None), Some("/p/conf/agent".into()));
        assert_eq!(dir(Some("~/a"), Some("/home/u")), Some("/home/u/a".into()));
        assert_eq!(dir(Some("/a"), Some("/home/u")), Some("/a".into()));
        assert_eq!(dir(Some(""), Some("/home/u")), Some("/home/u/.pi/agent".into()));
        assert_eq!(dir(None, None), None);
    }

    #[test]
    fn commands_see_no_session_of_other_agent() {
        let all = [
            ("PI_SESSION_FILE", "/other.jsonl"),
            ("PI_MODEL", "m"),
            ("KEY", "k"),
            ("A", "1"),
        ];
        let env = Environment {
            all: all
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            ..with(&[])
        };
        let names = env.for_commands(&["KEY".to_owned()]).into_iter();
        let names: Vec<OsString> = names.map(|(name, _)| name).collect();
        assert_eq!(names, ["A", "PI_CODING_AGENT", "AI_AGENT"]);
    }

    #[test]
    fn proxy_variables_precede_proxy_setting() {
        let proxies = |pairs: &[(&str, &str)]| {
            let proxy = with(pairs).proxy(Some("set"));
            [proxy.http, proxy.https, proxy.all].map(|address| address.unwrap_or_default())
        };
        assert_eq!(proxies(&[]), ["set", "set", ""]);
        assert_eq!(proxies(&[("HTTPS_PROXY", "env")]), ["set", "env", ""]);
        assert_eq!(proxies(&[("all_proxy", "env")]), ["", "", "env"]);
        assert_eq!(
            proxies(&[("HTTP_PROXY", "upper"), ("http_proxy", "lower")]),
            ["lower", "set", ""]
        );
        assert_eq!(with(&[]).proxy(None), ProxyConfig::default());
    }
}
