//! A pseudo-terminal: what the agent holds of it. The program at the other end takes it for a terminal.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::net::unix::pipe::{Receiver, Sender};

/// Size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Characters of a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

/// The agent's end of a pseudo-terminal. Output and input go through pipes; an error of reading is the end.
#[derive(Debug)]
pub struct Terminal(OwnedFd);

/// A terminal, the agent's ends for reading and writing, and the program's end.
pub(super) struct Opened {
    pub(super) terminal: Terminal,
    pub(super) output: Receiver,
    pub(super) input: Sender,
    pub(super) theirs: OwnedFd,
}

impl Terminal {
    /// Opens a terminal of this size.
    ///
    /// # Errors
    /// When the system has no terminals left.
    pub(super) fn open(size: TerminalSize) -> io::Result<Opened> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let name = ptsname(&ours, Vec::new())?;
        // Without NOCTTY the terminal could become that of the agent.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty())?;
        // Set by hand: the checks of tokio take only pipes, and `from_owned_fd_unchecked` sets no flags.
        let flags = rustix::fs::fcntl_getfl(&ours)?;
        rustix::fs::fcntl_setfl(&ours, flags | OFlags::NONBLOCK)?;
        let output = Receiver::from_owned_fd_unchecked(ours.try_clone()?)?;
        let input = Sender::from_owned_fd_unchecked(ours.try_clone()?)?;
        let terminal = Self(ours);
        // Before the program starts: a new terminal has no columns and rows.
        terminal.resize(size)?;
        Ok(Opened {
            terminal,
            output,
            input,
            theirs,
        })
    }

    /// Changes the size. The program gets SIGWINCH.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        let size = Winsize {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        Ok(tcsetwinsize(&self.0, size)?)
    }
}
