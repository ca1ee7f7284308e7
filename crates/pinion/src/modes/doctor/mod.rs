//! `pinion doctor`: reports the configuration it found, whether a model can be used, and how to fix problems. Each
//! section is in its own file; `paint` formats them. The doctor sends no model request (it asks a local server at most
//! for its models), runs no command of the configuration, opens no session and writes only its report.

mod extensions;
pub(super) mod keys;
mod mask;
mod model;
mod paint;
mod places;
mod report;
mod resources;
mod sessions;
mod settings;
#[cfg(test)]
mod tests;
mod tools;
mod variables;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use config::settings::Settings;
use config::trust::Trust;
use models::{Registry, StartRequest};

use crate::args::Args;
use crate::environment::{Environment, say_exactly, stdout_takes_colour};
use crate::{session_options, setup};
use report::{Problem, Report, Section};

/// Everything the sections look at.
struct Patient<'a> {
    args: &'a Args,
    env: &'a Environment,
    settings: Settings,
    registry: Registry,
    start: StartRequest,
    /// Milliseconds since 1970.
    now: i64,
}

impl Patient<'_> {
    /// A path as people write it, with `~` for the home directory.
    fn short(&self, path: &Path) -> String {
        let home = self.env.home.as_deref().filter(|home| home.parent().is_some());
        match home.and_then(|home| path.strip_prefix(home).ok()) {
            Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Some(rest) => format!("~/{}", rest.display()),
            None => path.display().to_string(),
        }
    }
}

/// Prints the report. Succeeds when a model can be used.
pub(crate) fn run(args: &Args, env: &Environment) -> ExitCode {
    let report = examine(args, env);
    if args.json {
        say_exactly(&report.json().to_string());
    } else {
        say_exactly(&paint::text(&report, stdout_takes_colour(env)));
    }
    if report.verdict.ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn examine(args: &Args, env: &Environment) -> Report {
    let trust = Trust::new(&env.agent_dir, args.approve);
    let (settings, notes) = setup::load_settings(args, env, &trust);
    // Commands that give keys may ask the user or take long, so the doctor does not run them.
    let local = setup::local_sources(args, env, &settings);
    let mut registry = setup::load_registry(args, env, Arc::new(|_| None), local);
    let start = session_options::start_request(args, env, &settings);
    let mut problems: Vec<Problem> = notes
        .iter()
        .map(|note| Problem::warning(format!("{}: {}", note.path.display(), note.message)))
        .collect();
    let files = [
        registry.models_file().error(),
        registry.auth().error(),
        registry.catalogue_error(),
    ];
    problems.extend(
        files
            .into_iter()
            .flatten()
            .map(|error| Problem::warning(file_error(error))),
    );
    let (_, missing) = session_options::packages(args, &settings, env);
    problems.extend(missing.iter().map(|note| Problem::warning(note.to_string())));
    if let Err(error) = setup::use_api_key(args, &start, &mut registry) {
        problems.push(Problem::warning(format!("{error:#}")));
    }
    let patient = Patient {
        args,
        env,
        settings,
        registry,
        start,
        now: now_ms(),
    };
    let (model, verdict) = model::section(&patient);
    let sections: Vec<Section> = vec![
        places::section(&patient),
        settings::section(&patient),
        variables::section(&patient),
        keys::section(&patient),
        model,
        sessions::section(&patient),
        resources::section(&patient),
        extensions::section(&patient),
        tools::section(&patient),
    ];
    problems.extend(
        sections
            .iter()
            .flat_map(|section| section.problems.iter().cloned()),
    );
    Report {
        sections,
        problems,
        verdict,
    }
}

/// `why\n\nFile: path`, as the registry words it, in one line that begins with the path.
fn file_error(error: &str) -> String {
    match error.split_once("\n\nFile: ") {
        Some((why, path)) => format!("{path}: {why}"),
        None => error.to_owned(),
    }
}

pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
