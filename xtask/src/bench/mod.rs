//! `xtask bench`: measures what the project promises about speed and memory, against the real program and a scripted model.
//!
//! Here: the options and the order of the figures. Each group of figures has a file of its own; `runner` drives an agent,
//! `meter` reads its CPU and memory, `report` prints. Nothing here fails because a number is bad, unless `--strict` is given.

mod acp;
mod append;
mod background;
mod calls;
mod cores;
mod extensions;
mod families;
mod flood;
mod fuzz;
pub mod instructions;
mod kept;
mod limits;
mod listing;
mod longline;
mod many;
pub(crate) mod meter;
mod neighbours;
mod output;
mod probe;
mod report;
mod runner;
mod scene;
mod sessions;
mod startup;
mod stream;
mod subject;
#[cfg(test)]
mod tests;
mod tools;
mod undo;
mod web;

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::out::{complain, say};
use report::{Column, Row};
use subject::Subject;

pub use background::print;

/// Measures one group of figures of one program.
type Measure = fn(&Subject) -> Result<Vec<Row>>;

/// The groups in the order of the table, with the name `--only` takes.
const GROUPS: [(&str, Measure); 21] = [
    ("startup", startup::measure),
    ("stream", stream::answers),
    ("toolargs", stream::arguments),
    ("families", families::measure),
    ("tools", tools::turns),
    ("calls", calls::measure),
    ("bashout", tools::output),
    ("sessions", sessions::measure),
    ("listing", listing::measure),
    ("append", append::measure),
    ("longline", longline::measure),
    ("flood", flood::measure),
    ("background", background::measure),
    ("undo", undo::measure),
    ("many", many::measure),
    ("cores", cores::measure),
    ("kept", kept::measure),
    ("extensions", extensions::measure),
    ("web", web::measure),
    ("acp", acp::measure),
    ("fuzz", fuzz::measure),
];

/// The group that takes minutes; it is measured only where `--only` names it.
const LONG: &str = "calls";

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Our program first, then the peers.
    subjects: Vec<Subject>,
    /// Groups to measure; all when empty.
    only: Vec<String>,
    /// Where every single measurement goes.
    json: Option<PathBuf>,
    /// Fail on a missed target.
    strict: bool,
}

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    /// When `--agent` is missing, a peer has no command, or a group is unknown.
    pub fn parse(args: &mut Args) -> Result<Self> {
        let mut subjects = vec![Subject::ours(std::path::absolute(
            args.required::<PathBuf>("--agent")?,
        )?)];
        while let Some(peer) = args.option::<String>("--peer")? {
            subjects.push(Subject::peer(&peer)?);
        }
        let mut only = Vec::new();
        while let Some(name) = args.option::<String>("--only")? {
            only.extend(name.split(',').map(str::to_owned));
        }
        if let Some(unknown) = only
            .iter()
            .find(|name| !GROUPS.iter().any(|(group, _)| group == name))
        {
            let known = GROUPS.map(|(group, _)| group).join(", ");
            bail!("there is no figure called {unknown}; there are {known}");
        }
        Ok(Self {
            subjects,
            only,
            json: args.option("--json")?,
            strict: args.flag("--strict"),
        })
    }
}

/// The chore; false when a target was missed and `--strict` was given.
///
/// # Errors
/// When the results cannot be written.
pub fn run(options: &Options) -> Result<bool> {
    say(meter::METHOD);
    let mut columns: Vec<Column> = options
        .subjects
        .iter()
        .map(|subject| Column::new(&subject.name))
        .collect();
    for (group, measure) in GROUPS {
        let is_named = options.only.iter().any(|name| name == group);
        if !is_named && (!options.only.is_empty() || group == LONG) {
            continue;
        }
        for (subject, column) in options.subjects.iter().zip(&mut columns) {
            if subject.peer
                && [
                    "families",
                    "background",
                    "undo",
                    "many",
                    "cores",
                    "kept",
                    "extensions",
                    "web",
                    "acp",
                    "fuzz",
                ]
                .contains(&group)
            {
                // Peers name their APIs in their own way and have one session in a process. Fuzzed lines follow our parse rules; a peer's answers to them would
                // be counted wrongly.
                continue;
            }
            complain(&format!("{group}: {}", subject.name));
            match measure(subject) {
                Ok(rows) => column.rows.extend(rows),
                Err(error) => column.rows.push(Row::failed(group, &error)),
            }
        }
    }
    say(&report::table(&columns));
    if let Some(path) = &options.json {
        std::fs::write(path, report::json(&columns))?;
    }
    let missed = columns.first().map_or(0, Column::missed);
    say(&format!("{missed} targets missed"));
    Ok(missed == 0 || !options.strict)
}
