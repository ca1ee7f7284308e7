//! Records the texts of `--help`: that of the program, and those of the subcommands that it lists, where they differ.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::reference::PROMPT;

/// Heading of the subcommands in the text of the program.
const COMMANDS: &str = "Commands";

/// The recording.
pub(super) fn record(program: &Path) -> Result<String> {
    let whole = help(program, None)?;
    let mut out = format!("{PROMPT}pinion --help\n{whole}");
    for name in commands(&whole) {
        let text = help(program, Some(&name))?;
        if text != whole {
            out.push_str(&format!("\n{PROMPT}pinion {name} --help\n{text}"));
        }
    }
    Ok(out)
}

/// Names of the subcommands, each once.
fn commands(help: &str) -> Vec<String> {
    let mut lines = help
        .lines()
        .skip_while(|line| !line.starts_with(COMMANDS))
        .skip(1);
    let mut out: Vec<String> = Vec::new();
    while let Some(line) = lines.next().filter(|line| line.starts_with("  ")) {
        let name = line.split_whitespace().next().unwrap_or_default().to_owned();
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out
}

fn help(program: &Path, command: Option<&str>) -> Result<String> {
    let output = Command::new(program)
        .args(command)
        .arg("--help")
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(output.status.success(), "{command:?} --help fails");
    let text = String::from_utf8(output.stdout).context("--help is not UTF-8")?;
    Ok(text)
}
