//! `--export FILE [OUTPUT]`: a session file as a page, Markdown or JSON, whichever the output's name asks for.

use std::process::ExitCode;

use store::export::{self, ExportInput, Format};

use crate::environment::{Environment, say};

/// Exports and says where to. The session is only read; another process may have it open.
pub(crate) fn run(source: &str, output: Option<&str>, env: &Environment) -> anyhow::Result<ExitCode> {
    let source = env.path(source);
    let log = export::open_read_only(&source)?;
    let output = match output {
        Some(output) => env.path(output),
        None => env.cwd.join(export::default_name(&source, Format::Html)),
    };
    let written = export::write_file(&output, Format::of_path(&output), &ExportInput::of(&log))?;
    say(&written.to_string_lossy());
    Ok(ExitCode::SUCCESS)
}
