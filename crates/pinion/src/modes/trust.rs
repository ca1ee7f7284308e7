//! `pinion trust [DIR]`: stored decisions about projects, made, taken back and listed. What they come to is
//! `config::trust`'s business.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use config::Diagnostic;
use config::trust::ProjectAccess;
use config::trust::{Brought, Project, Texts, Trust, held_back, real};
use serde_json::json;

use crate::args::Args;
use crate::environment::{Environment, say, say_exactly};
use crate::setup;

/// Does what the options after `trust` say.
pub(super) fn run(args: &Args, env: &Environment) -> anyhow::Result<ExitCode> {
    let trust = Trust::new(&env.agent_dir, None);
    let wish = args.trust;
    if wish.list {
        return list(args, &trust);
    }
    let dir = match args.messages.first() {
        Some(dir) => env.path(dir),
        None => env.cwd.clone(),
    };
    let decision = match (wish.remove, wish.deny) {
        (true, true) => bail!("--remove and --deny exclude each other"),
        (true, false) => None,
        (false, deny) => Some(!deny),
    };
    // A decision about a removed directory can still be deleted.
    if decision.is_some() && !dir.is_dir() {
        bail!("There is no directory {}", dir.display());
    }
    trust.file().set(&dir, decision).map_err(error)?;
    report(args, env, &trust, &dir)
}

fn list(args: &Args, trust: &Trust) -> anyhow::Result<ExitCode> {
    let all = trust.file().all().map_err(error)?;
    if args.json {
        let all = all
            .iter()
            .map(|stored| json!({"path": stored.path, "trusted": stored.trusted}));
        say_exactly(&json!({"file": trust.file().path(), "decisions": all.collect::<Vec<_>>()}).to_string());
    } else if all.is_empty() {
        say("No decisions are stored.");
    }
    for stored in all.iter().filter(|_| !args.json) {
        let word = if stored.trusted { "trusted" } else { "not trusted" };
        say(&format!("{word:<11}  {}", stored.path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what holds for the directory now.
fn report(args: &Args, env: &Environment, trust: &Trust, dir: &Path) -> anyhow::Result<ExitCode> {
    let env = env.in_directory(&real(dir));
    let (settings, _notes) = setup::load_settings(args, &env, trust);
    let project = Project {
        cwd: &env.cwd,
        agent_dir: &env.agent_dir,
        home: env.home.as_deref(),
        // The decision counts for clients of every dialect.
        is_omp: true,
    };
    let held = held_back(&project, &settings, Texts::Count);
    if args.json {
        say_exactly(
            &json!({
                "path": env.cwd,
                "project": settings.project.word(),
                "decidedBy": settings.decided_by.word(),
                "heldBack": held,
                "file": trust.file().path(),
            })
            .to_string(),
        );
        return Ok(ExitCode::SUCCESS);
    }
    let word = match settings.project {
        ProjectAccess::Full => "is trusted: everything it brings counts",
        ProjectAccess::Data => {
            "is not trusted: its texts and harmless settings count, nothing of it runs code"
        }
        ProjectAccess::None => "is not trusted: only its context files (AGENTS.md) count",
    };
    say(&format!("{} {word}.", env.cwd.display()));
    if !held.is_empty() {
        say("Held back:");
    }
    for line in held.iter().map(described) {
        say(&format!("  {line}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Describes a withheld resource in one line.
pub(super) fn described(held: &Brought) -> String {
    let keys = held.keys.join(", ");
    let keys = if keys.is_empty() {
        keys
    } else {
        format!(" ({keys})")
    };
    format!("{}: {}{keys}", held.kind, held.path.display())
}

fn error(problem: Diagnostic) -> anyhow::Error {
    anyhow!("{problem}")
}
