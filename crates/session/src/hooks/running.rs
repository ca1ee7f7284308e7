//! One run of one hook executable: started through the reaper, given its line, listened to within bounds, killed with all
//! that it started when it takes too long or its caller gave up.

use std::time::Duration;

use process::{Ended, Pipes, Reaper, SpawnSpec};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use crate::limits;

use super::{Hook, Job};

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) ended: Ended,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Runs a hook to its end.
///
/// # Errors
/// When it cannot be started, takes too long or says too much.
pub(super) async fn run(reaper: &Reaper, hook: &Hook, job: Job) -> Result<Exit, String> {
    let spec = SpawnSpec {
        program: hook.program.clone(),
        args: hook.args.clone(),
        env: job.env,
        cwd: job.cwd.into(),
    };
    let (mut child, pipes) = reaper
        .spawn_piped(spec)
        .await
        .map_err(|error| format!("It could not be started: {error}"))?;
    let Pipes {
        mut input,
        output,
        errors,
    } = pipes;
    // The pipe closes when this future ends, so that a hook that reads to the end goes on.
    let write = async move {
        // Who does not read it does not want to know.
        let _unread = input.write_all(&job.line).await;
    };
    let mut stdout = Vec::new();
    let mut stderr = Vec::new();
    let read = async {
        // Side by side: a hook that fills one pipe must not wait for the other.
        tokio::join!(
            collect(output, &mut stdout, limits::HOOK_OUTPUT),
            collect(errors, &mut stderr, limits::HOOK_ERRORS),
        )
    };
    let whole = async {
        let (mut write, mut read) = (std::pin::pin!(write), std::pin::pin!(read));
        let (mut written, mut was_read) = (false, false);
        let ended = loop {
            tokio::select! {
                // Writing and reading go on side by side: a hook that fills its output before it reads its input must not block.
                ended = child.ended() => break ended,
                () = &mut write, if !written => written = true,
                _ = &mut read, if !was_read => was_read = true,
            }
        };
        if !was_read {
            // What it left running may hold its outputs open.
            let _held = tokio::time::timeout(limits::HOOK_DRAIN, read).await;
        }
        ended
    };
    let ended = tokio::time::timeout(hook.timeout, whole).await;
    let Ok(ended) = ended else {
        // Remaining children are killed once more when the agent ends.
        let _killed = child.kill().await;
        return Err(timed_out(hook.timeout));
    };
    // `collect` keeps one byte more than the limit, which shows that there was more.
    if stdout.len() > limits::HOOK_OUTPUT {
        return Err(format!(
            "It said more than {} MiB",
            limits::HOOK_OUTPUT / (1 << 20)
        ));
    }
    // Cut and not refused, since only people and the model read it.
    stderr.truncate(limits::HOOK_ERRORS);
    Ok(Exit {
        ended,
        stdout,
        stderr,
    })
}

/// The words of the first hooks (dialects.md 10.3).
fn timed_out(limit: Duration) -> String {
    format!("Hook timed out after {}ms", limit.as_millis())
}

/// Reads to the end and keeps the beginning, and one byte more when there was more.
async fn collect(mut from: impl AsyncRead + Unpin, into: &mut Vec<u8>, limit: usize) {
    let mut piece = vec![0; limits::HOOK_CHUNK];
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        // The rest is read, too: a hook that prints more must not block on a full pipe.
        let room = (limit + 1).saturating_sub(into.len());
        into.extend(piece.iter().take(count.min(room)));
    }
}
