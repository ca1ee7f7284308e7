//! The speed of `xtask fuzz-lines`, which is run as a program of its own so that its report stays the same.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use super::limits::{FUZZ_LINES, FUZZ_SPEED};
use super::report::Row;
use super::subject::Subject;

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let output = Command::new(std::env::current_exe()?)
        .args(["fuzz-lines", "--count", &FUZZ_LINES.to_string(), "--agent"])
        .arg(&subject.program)
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let speed = speed(&text).with_context(|| format!("fuzz-lines did not report: {text}"))?;
    let broken = if output.status.success() { 0.0 } else { 1.0 };
    let note = text.lines().last().unwrap_or_default().to_owned();
    Ok(vec![
        Row::new("fuzz", "fuzzed lines answered", "/s", vec![speed]).at_least(FUZZ_SPEED),
        Row::new("fuzz", "runs with a broken promise", "", vec![broken])
            .at_most(0.0)
            .note(&note),
    ])
}

/// The number before `lines/s`.
pub(super) fn speed(report: &str) -> Option<f64> {
    let (before, _) = report.rsplit_once(" lines/s")?;
    before.rsplit(' ').next()?.parse().ok()
}
