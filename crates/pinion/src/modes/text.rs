//! An answer as text: on a terminal it streams, with a line per tool and a sign of life while nothing comes; into a pipe
//! goes the text of the last answer and nothing else.

use std::fs::File;
use std::io::{IsTerminal, Write};

use wire::content::AssistantBlock;
use wire::{AssistantMessage, Event, StreamEvent};

use crate::environment::complain;

/// Shown while waiting for the model; erased when something comes.
const WAITING: &str = "\r\u{1b}[2m… waiting for the model\u{1b}[0m";
const ERASE: &str = "\r\u{1b}[2K";

/// Prints an answer.
pub(crate) struct Printer {
    out: File,
    is_terminal: bool,
    /// The terminal's line is the sign of life.
    waiting: bool,
    at_line_start: bool,
    last: Option<AssistantMessage>,
}

impl Printer {
    pub(crate) fn new(out: File) -> Self {
        let is_terminal = out.is_terminal();
        Self {
            out,
            is_terminal,
            waiting: false,
            at_line_start: true,
            last: None,
        }
    }

    pub(crate) fn show(&mut self, event: &Event) -> std::io::Result<()> {
        match event {
            Event::MessageEnd { message } => {
                if let Some(answer) = message.as_assistant() {
                    self.last = Some(answer.clone());
                }
            }
            Event::AutoRetryStart {
                attempt,
                max_attempts,
                delay_ms,
                error_message,
            } => {
                self.note(&format!(
                    "retry {attempt} of {max_attempts} in {delay_ms} ms: {error_message}"
                ))?;
            }
            Event::Notice { level, message } if level != "info" => {
                self.note(&format!("{level}: {message}"))?
            }
            Event::SessionDamage { path, message, .. } => self.note(&format!("{path}: {message}"))?,
            _ => {}
        }
        if self.is_terminal {
            self.stream(event)
        } else {
            Ok(())
        }
    }

    /// Writes what is left to write.
    pub(crate) fn finish(&mut self) -> std::io::Result<()> {
        if self.is_terminal {
            self.erase()?;
            self.end_line()?;
        } else if let Some(answer) = self.last.take().filter(|answer| !answer.failed()) {
            for block in &answer.content {
                if let AssistantBlock::Text(text) = block {
                    writeln!(self.out, "{}", text.text)?;
                }
            }
        }
        self.out.flush()
    }

    fn stream(&mut self, event: &Event) -> std::io::Result<()> {
        match event {
            Event::TurnStart => {
                self.end_line()?;
                self.waiting = true;
                write!(self.out, "{WAITING}")?;
            }
            Event::MessageUpdate {
                assistant_message_event: StreamEvent::TextDelta { delta, .. },
                ..
            } => {
                self.erase()?;
                write!(self.out, "{delta}")?;
                self.at_line_start = delta.ends_with('\n');
            }
            Event::ToolExecutionStart { tool_name, args, .. } => {
                self.erase()?;
                self.end_line()?;
                let about = ["command", "path", "pattern"]
                    .into_iter()
                    .find_map(|key| args.get(key)?.as_str());
                let about = about.unwrap_or("").lines().next().unwrap_or("");
                writeln!(self.out, "\u{1b}[2m▸ {tool_name} {about}\u{1b}[0m")?;
            }
            Event::ToolExecutionEnd {
                is_error: true,
                tool_name,
                ..
            } => {
                writeln!(self.out, "\u{1b}[31m✗ {tool_name} failed\u{1b}[0m")?;
            }
            _ => {}
        }
        self.out.flush()
    }

    fn note(&mut self, text: &str) -> std::io::Result<()> {
        if self.is_terminal {
            self.erase()?;
            self.end_line()?;
        }
        complain(text);
        Ok(())
    }

    fn erase(&mut self) -> std::io::Result<()> {
        if std::mem::take(&mut self.waiting) {
            write!(self.out, "{ERASE}")?;
        }
        Ok(())
    }

    fn end_line(&mut self) -> std::io::Result<()> {
        if !std::mem::replace(&mut self.at_line_start, true) {
            writeln!(self.out)?;
        }
        Ok(())
    }
}
