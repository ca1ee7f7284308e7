//! Section: the directories, the version, and how far the project is trusted.

use config::trust::ProjectAccess;
use config::trust::{DecidedBy, Project, Texts, held_back};
use serde_json::json;

use super::Patient;
use super::report::{Mark, Section};
use crate::modes::dialect;
use crate::modes::trust::described;
use crate::version;

pub(super) fn section(patient: &Patient<'_>) -> Section {
    let mut section = Section::new("program", "Program and places");
    let (env, access) = (patient.env, patient.settings.project);
    let program = std::env::current_exe().ok();
    if let Some(program) = &program {
        section.row("program", patient.short(program));
    }
    section.row("working directory", patient.short(&env.cwd));
    let (mark, meaning) = meaning(access);
    let by = trust_by(patient);
    section.marked(mark, "project", format!("{meaning} ({by})"));
    let project = Project {
        cwd: &env.cwd,
        agent_dir: &env.agent_dir,
        home: env.home.as_deref(),
        is_omp: dialect::of(patient.args, env).0.is_newest_omp(),
    };
    let held = held_back(&project, &patient.settings, Texts::Count);
    for (at, held) in held.iter().enumerate() {
        section.row(if at == 0 { "held back" } else { "" }, described(held));
    }
    let named = env.get("PI_CODING_AGENT_DIR").is_some();
    let by_dir = if named {
        "PI_CODING_AGENT_DIR"
    } else {
        "default; PI_CODING_AGENT_DIR is not set"
    };
    let exists = env.agent_dir.is_dir();
    let missing = match (exists, env.agent_dir.exists()) {
        (true, _) => "",
        (false, false) => "; not there yet",
        (false, true) => {
            section.warn(format!(
                "{} is no directory: settings, keys and sessions need one",
                env.agent_dir.display()
            ));
            "; no directory"
        }
    };
    section.row(
        "agent directory",
        format!("{} ({by_dir}{missing})", patient.short(&env.agent_dir)),
    );
    section.data = json!({
        "version": version::OWN,
        "program": program,
        "cwd": env.cwd,
        "project": access.word(),
        "projectDecidedBy": by,
        "heldBack": held,
        "agentDir": env.agent_dir,
        "agentDirFrom": if named { "PI_CODING_AGENT_DIR" } else { "default" },
        "agentDirExists": exists,
    });
    section
}

fn meaning(access: ProjectAccess) -> (Mark, &'static str) {
    match access {
        ProjectAccess::Full => (Mark::Good, "trusted: everything it brings counts"),
        ProjectAccess::Data => (
            Mark::None,
            "limited: its texts and harmless settings count, nothing of it runs code; `pinion trust` or --approve trusts it",
        ),
        ProjectAccess::None => (Mark::None, "not trusted: only its context files count"),
    }
}

fn trust_by(patient: &Patient<'_>) -> String {
    let settings = &patient.settings;
    let default = match settings.project {
        ProjectAccess::Full => "always",
        ProjectAccess::Data => "ask",
        ProjectAccess::None => "never",
    };
    match &settings.decided_by {
        DecidedBy::CommandLine if settings.project == ProjectAccess::Full => "--approve".to_owned(),
        DecidedBy::CommandLine => "--no-approve".to_owned(),
        DecidedBy::Stored(dir) => format!("stored for {}", patient.short(dir)),
        DecidedBy::Setting => format!("defaultProjectTrust: {default}"),
        DecidedBy::Nobody | DecidedBy::Client | DecidedBy::Extension => "default".to_owned(),
    }
}
