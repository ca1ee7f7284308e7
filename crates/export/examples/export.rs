//! Exports a session file: `cargo run -p pinion-export --example export -- SESSION.jsonl OUT.html` (or `.md`, `.json`). For
//! trying the export out; the agent itself does it with `--export` and `export_html`.

use std::path::PathBuf;
use std::process::ExitCode;

use pinion_export::{self as export, ExportInput, Format};
use serde_json::json;

fn run() -> Result<PathBuf, String> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [session, target] = arguments.as_slice() else {
        return Err("usage: export SESSION.jsonl OUT.html|OUT.md|OUT.json".to_owned());
    };
    let log = store::open_read_only(session).map_err(|error| error.to_string())?;
    // Stands for what only a running agent knows; a first message that is markup shows that it is treated as text.
    let about = log.session_name().unwrap_or_default().to_owned();
    let prompt = format!("You are a coding agent.\n\n{about}");
    let tools = [wire::ToolSpec {
        name: format!("bash {about}").trim().to_owned(),
        description: format!("Runs a command. {about}"),
        parameters: json!({ "type": "object", "required": ["command"], "properties": {
            "command": { "type": "string", "description": format!("Command line {about}") },
            "timeout": { "type": "number", "description": "Seconds" } } }),
        prefers_strict: false,
    }];
    let input = ExportInput {
        system_prompt: Some(&prompt),
        tools: &tools,
        ..ExportInput::of(&log)
    };
    export::write_file(target, Format::of_path(target), &input).map_err(|error| error.to_string())
}

#[expect(clippy::print_stderr, reason = "an example program tells what went wrong")]
fn main() -> ExitCode {
    match run() {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
