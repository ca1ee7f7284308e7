//! Shows a page to the person in front of this machine.

use std::process::{Command, Stdio};

use anyhow::Context as _;

/// Opens a page in the person's browser.
pub(crate) fn browse(address: &str) -> anyhow::Result<()> {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    Command::new(program)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(|_| ())
        .with_context(|| format!("Cannot start {program}"))
}
