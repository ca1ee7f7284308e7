//! The standard streams of a child, as descriptors that the agent sends to the process that starts it. Their content is not
//! known here.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use tokio::net::unix::pipe::{Receiver, Sender};

use crate::error::ChildError;

use super::SpawnSpec;
use crate::child::Pipes;

/// The child's ends.
#[derive(Debug)]
pub(crate) enum Streams {
    /// No input; both outputs go into one pipe.
    Together(OwnedFd),
    /// A pipe for each.
    Apart {
        input: OwnedFd,
        output: OwnedFd,
        errors: OwnedFd,
    },
}

impl Streams {
    /// One pipe for both outputs, and the end to read from.
    pub(super) fn together() -> Result<(Self, Receiver), ChildError> {
        let (reader, writer) = std::io::pipe().map_err(ChildError::Pipe)?;
        Ok((Self::Together(writer.into()), receiver(reader)?))
    }

    /// A pipe for each stream, and the other ends.
    pub(super) fn apart() -> Result<(Self, Pipes), ChildError> {
        let pipe = || std::io::pipe().map_err(ChildError::Pipe);
        let (input, ours) = pipe()?;
        let (output, stdout) = pipe()?;
        let (errors, stderr) = pipe()?;
        let pipes = Pipes {
            input: Box::new(Sender::from_owned_fd(ours.into()).map_err(ChildError::Pipe)?),
            output: Box::new(receiver(output)?),
            errors: Box::new(receiver(errors)?),
        };
        let streams = Self::Apart {
            input: input.into(),
            output: stdout.into(),
            errors: stderr.into(),
        };
        Ok((streams, pipes))
    }

    /// One pipe for both outputs and one for the input, and the other ends.
    pub(super) fn with_input() -> Result<(Self, Receiver, Sender), ChildError> {
        let (input, ours) = std::io::pipe().map_err(ChildError::Pipe)?;
        let (output, stdout) = std::io::pipe().map_err(ChildError::Pipe)?;
        let errors = stdout.try_clone().map_err(ChildError::Pipe)?;
        let streams = Self::Apart {
            input: input.into(),
            output: stdout.into(),
            errors: errors.into(),
        };
        let input = Sender::from_owned_fd(ours.into()).map_err(ChildError::Pipe)?;
        Ok((streams, receiver(output)?, input))
    }

    /// The same descriptor for all streams.
    pub(super) fn all(end: OwnedFd) -> Result<Self, ChildError> {
        let copy = || end.try_clone().map_err(ChildError::Pipe);
        Ok(Self::Apart {
            input: copy()?,
            output: copy()?,
            errors: end,
        })
    }

    /// Returns true if each stream has a pipe of its own. The receiver needs this to assign the descriptors.
    pub(super) fn are_apart(&self) -> bool {
        matches!(self, Self::Apart { .. })
    }

    /// In the order in which [`from_fds`](Self::from_fds) takes them.
    pub(super) fn into_fds(self) -> Vec<OwnedFd> {
        match self {
            Self::Together(output) => vec![output],
            Self::Apart {
                input,
                output,
                errors,
            } => vec![input, output, errors],
        }
    }

    /// Takes those of one child; none when they did not all arrive.
    pub(super) fn from_fds(are_apart: bool, fds: &mut VecDeque<OwnedFd>) -> Option<Self> {
        if !are_apart {
            return fds.pop_front().map(Self::Together);
        }
        Some(Self::Apart {
            input: fds.pop_front()?,
            output: fds.pop_front()?,
            errors: fds.pop_front()?,
        })
    }

    /// The command that starts a child with these streams, as leader of a process group of its own.
    ///
    /// # Errors
    /// When a descriptor cannot be duplicated.
    pub(super) fn command(self, spec: &SpawnSpec) -> std::io::Result<Command> {
        use std::os::unix::process::CommandExt as _;
        let mut command = Command::new(&spec.program);
        command
            .args(&spec.args)
            .env_clear()
            .envs(spec.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&spec.cwd)
            // Kills reach the group, and signals from the agent's terminal do not.
            .process_group(0);
        let (input, output, errors) = match self {
            Self::Together(output) => {
                let errors = output.try_clone()?;
                (Stdio::null(), output, errors)
            }
            Self::Apart {
                input,
                output,
                errors,
            } => (Stdio::from(input), output, errors),
        };
        command.stdin(input).stdout(output).stderr(errors);
        Ok(command)
    }
}

fn receiver(reader: std::io::PipeReader) -> Result<Receiver, ChildError> {
    Receiver::from_owned_fd(reader.into()).map_err(ChildError::Pipe)
}
