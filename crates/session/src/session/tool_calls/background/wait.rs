//! Waiting for something that a process does: a text, a port, its end.

use std::time::Duration;

use process::PortOwner;

use crate::limits;

use super::process::Process;

/// The aim of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Goal {
    /// The end of the process.
    Exit,
    /// A text in its output from a position on.
    Text(String, u64),
    /// A port that a process of its command listens on.
    Port(u16),
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    /// The aim is reached.
    Reached,
    /// The process ended before.
    Ended,
    /// The time is up.
    TimedOut,
}

/// Waits for the end of a process.
// Subscribed before the state is read, so that an end in between is not missed.
pub(super) async fn ended(process: &Process) {
    let mut version = process.version.subscribe();
    while process.is_running() {
        if version.changed().await.is_err() {
            return;
        }
    }
}

/// Waits until the goal is reached, the process has ended, or the time is up.
pub(super) async fn wait(process: &Process, goal: &Goal, limit: Duration) -> Met {
    let reached = async {
        match goal {
            Goal::Exit => {
                ended(process).await;
                Met::Reached
            }
            Goal::Text(text, from) => text_comes(process, text.as_bytes(), *from).await,
            Goal::Port(port) => tokio::select! {
                () = port_opens(process, *port) => Met::Reached,
                () = ended(process) => Met::Ended,
            },
        }
    };
    tokio::time::timeout(limit, reached)
        .await
        .unwrap_or(Met::TimedOut)
}

async fn text_comes(process: &Process, text: &[u8], mut from: u64) -> Met {
    // Subscribed before the output is read, so that output in between wakes the wait.
    let mut version = process.version.subscribe();
    loop {
        // The state is looked at before the output: what came with the end is seen.
        let is_running = process.is_running();
        // A copy, so that the search holds no lock.
        let part = process.state().output.read(from, limits::PROCESS_OUTPUT);
        if memchr::memmem::find(&part.bytes, text).is_some() {
            return Met::Reached;
        }
        if !is_running {
            return Met::Ended;
        }
        // The text may begin in the searched part.
        let overlap = u64::try_from(text.len().saturating_sub(1)).unwrap_or(0);
        from = part.next.saturating_sub(overlap).max(from);
        if version.changed().await.is_err() {
            return Met::Ended;
        }
    }
}

/// Waits until the process listens on the port. A port of another process does not count, and no connection is made.
async fn port_opens(process: &Process, port: u16) {
    // Read from the tables of the system: the process would see a connection.
    while owner_of_port(process, port).await != PortOwner::Command {
        tokio::time::sleep(limits::PORT_PAUSE).await;
    }
}

/// Who listens on a port of this machine.
pub(super) async fn owner_of_port(process: &Process, port: u16) -> PortOwner {
    // Looks through the files of all processes of the command, which blocks.
    let members = process.members.clone();
    let looked = tokio::task::spawn_blocking(move || members.owner_of_port(port));
    // A look that failed is repeated after the pause, as after one without a find.
    looked.await.unwrap_or(PortOwner::Nobody)
}
