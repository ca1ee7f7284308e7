//! `cli.md`: options and subcommands from the texts of `--help`, as `xtask examples` recorded them from the program.

use std::path::Path;

use anyhow::{Result, ensure};

use super::{cell, head, read};

/// The recording: texts of `--help`, each after a line with the command that printed it.
pub(crate) const HELP: &str = "protocol/examples/help.txt";

/// What begins a text in the recording.
pub(crate) const PROMPT: &str = "$ ";

/// Width from which on two spaces part the columns of a help text.
const GAP: &str = "  ";

/// The page.
pub(super) fn render(root: &Path) -> Result<String> {
    let recorded = read(root, HELP)?;
    let mut out = head("Command line");
    out.push_str(
        "The tables contain the texts of `pinion --help` and `pinion COMMAND --help`. Exit codes are on a [page of their own](exit-codes.md).\n",
    );
    let mut texts = 0;
    for text in recorded.split(&format!("\n{PROMPT}")) {
        let (command, text) = text.split_once('\n').unwrap_or((text, ""));
        let command = command.trim_start_matches(PROMPT).trim_end_matches(" --help");
        out.push_str(&format!("\n## {command}\n\n"));
        help(&mut out, text, if command == "pinion" { "### " } else { "" });
        texts += 1;
    }
    ensure!(texts > 0, "{HELP} is empty");
    Ok(out)
}

/// One text of `--help`: headings end with a colon, rows have two columns.
fn help(out: &mut String, text: &str, level: &str) {
    let mut in_table = false;
    for line in text.lines() {
        let row = line
            .strip_prefix(GAP)
            .and_then(|row| row.trim_start().split_once(GAP));
        if let Some((left, right)) = row {
            if !in_table {
                out.push_str("\n| | |\n| --- | --- |\n");
                in_table = true;
            }
            out.push_str(&format!("| `{}` | {} |\n", cell(left), cell(right)));
            continue;
        }
        in_table = false;
        let text = line.trim();
        match text.strip_suffix(':') {
            _ if text.is_empty() => out.push('\n'),
            Some(heading) if level.is_empty() => out.push_str(&format!("\n{heading}:\n")),
            Some(heading) => out.push_str(&format!("\n{level}{heading}\n")),
            None if line.contains("pinion ") && (line.starts_with("Usage:") || line.starts_with(' ')) => {
                out.push_str(&format!("    {}\n", text.trim_start_matches("Usage: ")));
            }
            None => out.push_str(&format!("{text}\n")),
        }
    }
    while out.contains("\n\n\n") {
        *out = out.replace("\n\n\n", "\n\n");
    }
}
