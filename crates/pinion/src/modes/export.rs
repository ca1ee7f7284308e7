//! `--export FILE [OUTPUT]`: a session file as a page, Markdown or JSON, whichever the output's name asks for.

use std::process::ExitCode;
use std::time::Duration;

use export::{ExportInput, Format};

use crate::environment::{Environment, say};
use crate::progress::Progress;

/// How long an export may take before the terminal shows that it is running.
const SHOW_AFTER: Duration = Duration::from_secs(1);

/// Exports and says where to. The session is only read; another process may have it open.
pub(crate) fn run(source: &str, output: Option<&str>, env: &Environment) -> anyhow::Result<ExitCode> {
    let source = env.path(source);
    // An export beyond the file size limit is an error.
    let _survives = super::runtime()?;
    let progress = Progress::after(SHOW_AFTER, format!("Exporting {}", source.display()));
    let log = store::open_read_only(&source)?;
    let output = match output {
        Some(output) => env.path(output),
        None => env.cwd.join(export::default_name(&source, Format::Html)),
    };
    let written = export::write_file(&output, Format::of_path(&output), &ExportInput::of(&log))?;
    drop(progress);
    say(&written.to_string_lossy());
    Ok(ExitCode::SUCCESS)
}
