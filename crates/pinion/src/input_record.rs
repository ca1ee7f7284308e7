//! `--record-inputs`: the file for the record of inputs. What goes into it is decided in `session`.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;

use anyhow::Context as _;
use auth::Secrets;
use session::{InputRecord, InputWriter};

use crate::args::Args;
use crate::environment::Environment;

/// The record of inputs that is made, in a file that must not exist yet.
pub(crate) fn start(
    args: &Args,
    env: &Environment,
    secrets: &Secrets,
) -> anyhow::Result<Option<(InputRecord, InputWriter)>> {
    let Some(path) = &args.record_inputs else {
        return Ok(None);
    };
    let path = env.path(path);
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path);
    let started = made.and_then(|file| InputRecord::start(file, secrets.clone()));
    let started = started.with_context(|| format!("--record-inputs {}", path.display()))?;
    Ok(Some(started))
}
