//! `!command` values of keys and headers (pi-core.md 8.3): run by `sh`, at most ten seconds, stdout trimmed.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// Longest run of a command.
const LIMIT: Duration = Duration::from_secs(10);
/// Longest output; a key is never longer.
const MAX_OUTPUT: u64 = 64 * 1024;

/// Runs a command. Nothing when it fails, prints nothing or takes too long.
pub(crate) fn run(command: &str) -> Option<String> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .ok()?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let stdout = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = stdout.take(MAX_OUTPUT).read_to_string(&mut text);
        let _late = sender.send(read.map(|_| text));
    });
    let output = receiver.recv_timeout(LIMIT);
    if let (Err(_), Some(group)) = (&output, group) {
        let _gone = kill_process_group(group, Signal::KILL);
    }
    let status = child.wait().ok()?;
    let text = output.ok()?.ok()?;
    let text = text.trim();
    (status.success() && !text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::run;

    #[test]
    fn key_command_output_is_trimmed() {
        assert_eq!(run("printf '  key\\n'").as_deref(), Some("key"));
        assert_eq!(run("exit 3"), None);
        assert_eq!(run("true"), None);
    }
}
