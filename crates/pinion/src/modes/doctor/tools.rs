//! Section: the shell of the bash tool, the tools the model may call, and programs on the path they lean on.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::Patient;
use super::report::{Mark, Section};
use crate::session_options::{active_tools, rules_for_other_tools};
use crate::setup::mcp_setup;

pub(super) fn section(patient: &Patient<'_>) -> Section {
    let mut section = Section::new("tools", "Shell and tools");
    let tools = active_tools(patient.args, &patient.settings);
    let (shell, by) = shell(patient);
    let exists = shell.as_deref().is_some_and(Path::exists);
    match &shell {
        Some(path) if exists => {
            section.marked(Mark::Good, "shell", format!("{} ({by})", patient.short(path)));
        }
        Some(path) => {
            section.marked(
                Mark::Bad,
                "shell",
                format!("{} is not there ({by})", patient.short(path)),
            );
            section.warn(format!(
                "{by}: {} does not exist, so the bash tool fails",
                path.display()
            ));
        }
        None => {
            section.marked(Mark::Bad, "shell", "none found");
            section.warn("No bash and no sh was found, so the bash tool fails");
        }
    }
    if patient.settings.shell.command_prefix.is_some() {
        section.row("", "each command begins with shellCommandPrefix");
    }
    let listed = if tools.is_empty() {
        "none".to_owned()
    } else {
        tools.join(", ")
    };
    section.row("active tools", listed);
    let rules: Vec<&str> = rules_for_other_tools(&patient.settings).collect();
    if !rules.is_empty() {
        let rules = rules.join(", ");
        section.marked(
            Mark::Odd,
            "rules",
            format!("{rules}: only for tools of extensions, clients and MCP servers"),
        );
    }
    section.row("grep and find", "built in: rg and fd are not needed");
    let git = on_path(patient, "git");
    let found = git.as_deref().map(|path| patient.short(path));
    section.row(
        "git",
        found.unwrap_or_else(|| "not found (only the model would use it)".to_owned()),
    );
    let processes = if cfg!(target_os = "linux") {
        "ended with the agent, also after kill -9, by a guardian and its supervisors (child subreapers)"
    } else {
        "ended by process group; kill -9 of the agent leaves them (only Linux has a guardian)"
    };
    section.row("processes", processes);
    let sandbox = sandbox(patient, &mut section);
    let servers = servers(patient, &mut section);
    section.data = json!({
        "sandbox": sandbox, "mcpServers": servers,
        "shell": shell, "shellFrom": by, "shellExists": exists, "active": tools, "git": git,
        "search": "built-in",
    });
    section
}

/// A row for the MCP servers that are configured; none is started. Gives their names.
fn servers(patient: &Patient<'_>, section: &mut Section) -> Vec<String> {
    let setup = mcp_setup(patient.args, patient.env, &patient.settings, &patient.registry);
    let env = patient.env;
    let (servers, problems) = session::mcp::configured(&setup, &patient.settings, &env.agent_dir, &env.cwd);
    for problem in problems {
        section.warn(problem);
    }
    let shown: Vec<String> = servers
        .iter()
        .map(|(config, source)| match config.enabled {
            true => format!("{} ({source})", config.name),
            false => format!("{} ({source}, disabled)", config.name),
        })
        .collect();
    let none = || "none (pinion mcp add)".to_owned();
    let row = (!shown.is_empty()).then(|| format!("{}; pinion mcp list connects them", shown.join(", ")));
    section.row("MCP servers", row.unwrap_or_else(none));
    servers.into_iter().map(|(config, _)| config.name).collect()
}

/// What this system offers for a sandbox, and which one is wanted.
#[cfg(target_os = "linux")]
fn sandbox(patient: &Patient<'_>, section: &mut Section) -> serde_json::Value {
    let mode = patient.settings.sandbox.mode(patient.args.sandbox.mode);
    let offered = process::sandbox::launcher::probe(Path::new("/proc/self/exe"));
    let there = match (offered.landlock, offered.namespaces) {
        (0, _) => "not available: this kernel has no Landlock".to_owned(),
        (version, true) => format!("available: Landlock {version}, user namespaces"),
        (version, false) => format!("available: Landlock {version}, no user namespaces"),
    };
    if mode.is_off() {
        section.row("sandbox", format!("off ({there})"));
    } else if offered.landlock == 0 {
        section.marked(Mark::Bad, "sandbox", format!("{} ({there})", mode.as_str()));
        section.warn("A sandbox is wanted, but this kernel has no Landlock, so the tools refuse to run");
    } else {
        section.marked(Mark::Good, "sandbox", format!("{} ({there})", mode.as_str()));
    }
    json!({"mode": mode, "landlock": offered.landlock, "namespaces": offered.namespaces})
}

/// As above, where there is none.
#[cfg(not(target_os = "linux"))]
fn sandbox(patient: &Patient<'_>, section: &mut Section) -> serde_json::Value {
    let mode = patient.settings.sandbox.mode(patient.args.sandbox.mode);
    if mode.is_off() {
        section.row("sandbox", "off (not available on this system)");
    } else {
        section.marked(Mark::Bad, "sandbox", format!("{} (not available)", mode.as_str()));
        section.warn("A sandbox is wanted, but there is none on this system, so the tools refuse to run");
    }
    json!({"mode": mode, "landlock": 0, "namespaces": false})
}

/// The shell that `tools` would take (pi-core.md 5.4), and why.
fn shell(patient: &Patient<'_>) -> (Option<PathBuf>, &'static str) {
    if let Some(path) = &patient.settings.shell.path {
        return (Some(patient.env.path(path)), "shellPath in the settings");
    }
    let standard = ["/bin/bash"]
        .map(PathBuf::from)
        .into_iter()
        .find(|path| path.exists());
    let found = standard.or_else(|| on_path(patient, "bash"));
    let sh = || Some(PathBuf::from("/bin/sh")).filter(|path| path.exists());
    (found.or_else(sh), "default")
}

/// A program as the tools would find it: their own directory comes first.
fn on_path(patient: &Patient<'_>, name: &str) -> Option<PathBuf> {
    let own = patient.env.agent_dir.join("bin");
    let path = patient.env.get("PATH").unwrap_or_default();
    let mut dirs = std::iter::once(own).chain(std::env::split_paths(path));
    dirs.find_map(|dir| Some(dir.join(name)).filter(|file| file.is_file()))
}
