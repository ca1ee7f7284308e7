//! Who is measured: a program and its command line. How it is driven is `runner`'s work.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// Arguments that choose the protocol and the scripted model.
const ARGS: [&str; 6] = ["--mode", "rpc", "--provider", "mock", "--model", "mock"];

/// An agent program.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    /// Head of its column.
    pub(super) name: String,
    /// The program.
    pub(super) program: PathBuf,
    /// Its arguments.
    pub(super) args: Vec<String>,
    /// Not ours: no targets, and only what its protocol has.
    pub(super) peer: bool,
}

impl Subject {
    /// Our program.
    pub(super) fn ours(program: PathBuf) -> Self {
        Self {
            name: "pinion".to_owned(),
            program,
            args: ARGS.map(str::to_owned).to_vec(),
            peer: false,
        }
    }

    /// From `NAME=COMMAND`; the command's words are separated by spaces. The usual arguments are added unless the command
    /// sets `--mode` itself.
    ///
    /// # Errors
    /// When there is no command.
    pub(super) fn peer(text: &str) -> Result<Self> {
        let (name, command) = text
            .split_once('=')
            .with_context(|| format!("--peer is NAME=COMMAND, not {text}"))?;
        let mut words = command.split_ascii_whitespace().map(str::to_owned);
        let program = words
            .next()
            .with_context(|| format!("the peer {name} has no command"))?;
        let mut args: Vec<String> = words.collect();
        if !args.iter().any(|word| word == "--mode") {
            args.extend(ARGS.map(str::to_owned));
        }
        Ok(Self {
            name: name.to_owned(),
            program: program.into(),
            args,
            peer: true,
        })
    }

    /// Returns the program with further arguments.
    pub(super) fn with(&self, args: &[&str]) -> Self {
        let mut subject = self.clone();
        subject.args.extend(args.iter().map(|&word| word.to_owned()));
        subject
    }
}
