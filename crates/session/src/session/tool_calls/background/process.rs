//! One background process: what others know of it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use permissions::is_lone_key;
use process::CommandProcesses;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Notify, watch};
use wire::ToolResult;
use wire::process::{ProcessInfo, ProcessStatus};

use crate::{limits, strings};

use super::super::tool::Access;
use super::output::OutputTail;
use super::running::{Control, bounded};

/// One process, running or ended.
pub(super) struct Process {
    pub(super) id: String,
    pub(super) command: String,
    pub(super) pid: u32,
    /// The processes of its command.
    pub(super) members: CommandProcesses,
    pub(super) has_terminal: bool,
    pub(super) started_at: i64,
    pub(super) state: Mutex<State>,
    /// Grows with each piece of output and with the end.
    pub(super) version: watch::Sender<u64>,
    /// Notified when a client has to hear of new output.
    pub(super) news: Notify,
    pub(super) control: Control,
}

pub(super) struct State {
    pub(super) output: OutputTail,
    /// Position up to which the model has read.
    pub(super) read_by_model: u64,
    /// A client wants to hear of the next output.
    pub(super) is_awaited: bool,
    pub(super) status: ProcessStatus,
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) ended_at: Option<i64>,
    /// The line that the model has begun to type, as far as the process has got it.
    pub(super) typed: String,
    /// The model knows that it has ended.
    pub(super) is_end_told: bool,
}

impl Process {
    /// The state stays valid if a holder of the lock panics: every change is complete in itself.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_running(&self) -> bool {
        self.state().status == ProcessStatus::Running
    }

    pub(super) fn info(&self) -> ProcessInfo {
        let state = self.state();
        ProcessInfo {
            process_id: self.id.clone(),
            command: self.command.clone(),
            pid: self.pid,
            terminal: self.has_terminal,
            status: state.status,
            exit_code: state.exit_code,
            signal: state.signal,
            output_bytes: state.output.end(),
            started_at: self.started_at,
            ended_at: state.ended_at,
        }
    }

    /// One line about its state, for the model.
    pub(super) fn status_line(&self) -> String {
        let state = self.state();
        match (state.status, state.exit_code, state.signal) {
            (ProcessStatus::Running, ..) => "running".to_owned(),
            (ProcessStatus::Killed, ..) => "killed".to_owned(),
            (_, Some(code), _) => format!("exited with code {code}"),
            (_, None, Some(signal)) => format!("ended by signal {signal}"),
            (_, None, None) => "ended".to_owned(),
        }
    }

    /// Returns true while the model may still have to hear that it has ended by itself.
    pub(super) fn may_wake(&self) -> bool {
        let state = self.state();
        state.status == ProcessStatus::Running
            || (state.status == ProcessStatus::Exited && !state.is_end_told)
    }

    /// Takes the news that it has ended by itself; false if the model knows, or if it was killed.
    pub(super) fn take_exit(&self) -> bool {
        let mut state = self.state();
        // A killed process is no news: the model, a client or a timeout ended it (docs/guides/background-processes.md).
        let is_news = state.status == ProcessStatus::Exited && !state.is_end_told;
        state.is_end_told |= is_news;
        is_news
    }

    /// Notes that the model hears how the process is doing. Called before the state is read: the model hears of an end in between twice
    /// rather than never.
    pub(super) fn note_told(&self) {
        let mut state = self.state();
        state.is_end_told |= state.status != ProcessStatus::Running;
    }

    /// What the model hears of its end, with the output that it has not read.
    pub(super) fn exit_text(&self) -> String {
        let (id, status, command) = (&self.id, self.status_line(), &self.command);
        let head = format!("Process {id} {status}: {command}");
        // Counts as read, since the model gets it with this text.
        let news = self.news();
        match news.trim() {
            "" => head,
            _ => format!("{head}\n\n{}", news.trim_end()),
        }
    }

    /// What the model has not read yet, as text, with a note about what it missed.
    pub(super) fn news(&self) -> String {
        let (text, next) = self.unread();
        // Only as far as the text goes: output that came meanwhile stays unread.
        self.state().read_by_model = next;
        text
    }

    /// The same, which stays unread.
    pub(super) fn unread(&self) -> (String, u64) {
        let state = self.state();
        let part = state.output.read_end(state.read_by_model, limits::PROCESS_TEXT);
        // Cleaning a long text takes a moment, in which the task that reads the process would wait for the lock.
        drop(state);
        let text = tools::text::clean::clean(&part.bytes);
        let text = match part.dropped {
            0 => text,
            dropped => format!("[{dropped} bytes before this are not shown]\n{text}"),
        };
        (text, part.next)
    }

    /// The lines that an input of the model completes or begins, together with what it has typed before.
    fn line_with(&self, input: &str) -> String {
        let line = format!("{}{input}", self.state().typed);
        // A terminal takes a carriage return for the end of a line.
        if self.has_terminal {
            line.replace('\r', "\n")
        } else {
            line
        }
    }

    /// What permission rules judge about an input of the model. Without a terminal a carriage return is a letter of the line, unless the
    /// program gives its input to a terminal of its own: rules judge both.
    pub(super) fn judged(&self, input: &str) -> String {
        let line = self.line_with(input);
        if line.contains('\r') {
            format!("{}\n{line}", line.replace('\r', "\n"))
        } else {
            line
        }
    }

    /// The model types. `judged` is what permission rules have judged.
    ///
    /// # Errors
    /// When other input has changed the line since, the begun line is too long to be judged, or the process does not read.
    pub(super) async fn type_in(&self, input: &str, judged: Option<&Access>) -> Result<(), String> {
        let typing = async {
            let mut pipe = self.control.input.lock().await;
            // Only now: other calls of the same answer may have typed since this one was judged, and cannot until it is written.
            let line = self.line_with(input);
            if judged.is_some_and(|judged| *judged != Access::Input(self.judged(input))) {
                return Err(strings::line_changed(&self.id));
            }
            if begun(&line).len() > limits::PROCESS_LINE {
                return Err(strings::line_too_long(limits::PROCESS_LINE));
            }
            let mut rest = input.as_bytes();
            while !rest.is_empty() {
                let wrote = pipe.write(rest).await.map_err(|error| error.to_string())?;
                if wrote == 0 {
                    return Err(strings::process_does_not_read(&self.id));
                }
                rest = rest.get(wrote..).unwrap_or_default();
                // After each part: a write that is given up here leaves the process with the parts before.
                let got = line.floor_char_boundary(line.len() - rest.len());
                begun(line.get(..got).unwrap_or_default()).clone_into(&mut self.state().typed);
            }
            Ok(())
        };
        bounded(&self.id, typing).await
    }

    /// Takes output that the process has printed.
    pub(super) fn take_output(&self, bytes: &[u8]) {
        self.change(|state| {
            state.output.push(bytes);
            // One event for each response that asked for it: a client gets no more events than it sends commands.
            if std::mem::take(&mut state.is_awaited) {
                self.news.notify_one();
            }
        });
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut State)) {
        // In this order: a task that the new version wakes must find the change.
        change(&mut self.state());
        self.version.send_modify(|version| *version += 1);
    }
}

/// The last line of a text, which has no end yet.
fn begun(text: &str) -> &str {
    let line = text.rsplit('\n').next().unwrap_or_default();
    // It begins no line. Behind other keys the line stays unclear until it ends, also if it comes in several inputs.
    if is_lone_key(line) { "" } else { line }
}

/// The result of a call that is about one process.
pub(super) fn result(process: &Process, text: String) -> ToolResult {
    let details = serde_json::to_value(process.info()).ok();
    ToolResult {
        details,
        ..ToolResult::text(text)
    }
}
