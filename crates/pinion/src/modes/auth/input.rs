//! What a person types or pipes in: a key, unseen, or lines to paste. Reading blocks, so threads do it; they end with the
//! process.

use std::io::{BufRead as _, Read as _, Write as _};

use auth::login::LoginError;
use auth::login::limits::MAX_KEY;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::{mpsc, oneshot};

/// Lines that may wait.
const LINES: usize = 4;

/// Longest line; addresses with codes are shorter.
const MAX_LINE: u64 = 16 << 10;

/// A key: the first line of stdin. On a terminal it is asked for and not shown.
pub(super) async fn key(provider: &str) -> Result<String, LoginError> {
    let hidden = Hidden::start(provider);
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        // One more than is allowed shows that it is too long.
        let limit = MAX_KEY as u64 + 2;
        let read = std::io::stdin().lock().take(limit).read_line(&mut line);
        let _gone = sender.send(read.map(|_| line));
    });
    let line = receiver.await;
    drop(hidden);
    match line {
        Ok(Ok(line)) => Ok(line),
        _ => Err(LoginError::Key("stdin cannot be read as text")),
    }
}

/// Lines of stdin; closed when it ends.
pub(in crate::modes) fn lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(LINES);
    std::thread::spawn(move || {
        loop {
            let mut line = String::new();
            let read = std::io::stdin().lock().take(MAX_LINE).read_line(&mut line);
            if !matches!(read, Ok(1..)) || sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Turns off the echo of the terminal until it is dropped.
struct Hidden(Termios);

impl Hidden {
    /// Asks for the key; nothing when stdin is no terminal.
    fn start(provider: &str) -> Option<Self> {
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        let mut stderr = std::io::stderr();
        let _unseen = write!(stderr, "Key for {provider}: ");
        let _unseen = stderr.flush();
        tcsetattr(&stdin, OptionalActions::Now, &quiet).ok()?;
        Some(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _gone = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
        let _unseen = writeln!(std::io::stderr());
    }
}
