//! An answer as text: on a terminal it streams, with a line per tool; into a pipe goes the text of the last answer and nothing
//! else. While nothing comes, stderr shows what the program waits for.

use std::fs::File;
use std::io::IsTerminal as _;
use std::time::Duration;

use serde_json::Value;
use serve::Sink;
use wire::content::AssistantBlock;
use wire::{AssistantMessage, Event, StreamEvent};

use crate::environment::{complain, plain};
use crate::progress::Progress;

/// How long a model or a tool may take before the terminal shows what the program waits for.
const SHOW_AFTER: Duration = Duration::from_secs(2);

/// Prints an answer.
pub(crate) struct Printer {
    /// Its thread waits for the reader; the thread of the session must not, or no signal would end the program.
    out: Sink,
    /// Text that is not handed over to `out` yet.
    text: String,
    is_terminal: bool,
    /// Name of the model.
    model: String,
    /// What the program waits for; erased before anything else is written.
    waiting: Option<Progress>,
    at_line_start: bool,
    last: Option<AssistantMessage>,
    /// Nothing is written but the result of the run.
    only_result: bool,
    result: Option<Value>,
}

impl Printer {
    /// Writes to `out`. With `only_result`, that is the result that the run gives, as one line of JSON.
    pub(crate) fn new(out: File, model: &str, only_result: bool) -> Result<Self, serve::Error> {
        let is_terminal = out.is_terminal() && !only_result;
        Ok(Self {
            out: Sink::open(out)?,
            text: String::new(),
            is_terminal,
            model: model.to_owned(),
            waiting: None,
            at_line_start: true,
            last: None,
            only_result,
            result: None,
        })
    }

    pub(crate) async fn show(&mut self, event: &Event) -> Result<(), serve::Error> {
        self.wait(event);
        match event {
            Event::MessageEnd { message } => {
                if let Some(answer) = message.as_assistant() {
                    self.last = Some(answer.clone());
                }
            }
            Event::AgentEnd {
                result: Some(result), ..
            } => self.result = Some(result.clone()),
            Event::AutoRetryStart {
                attempt,
                max_attempts,
                delay_ms,
                error_message,
            } => {
                self.note(&format!(
                    "retry {attempt} of {max_attempts} in {delay_ms} ms: {error_message}"
                ))
                .await?;
            }
            Event::Notice { level, message } if level != "info" => {
                self.note(&format!("{level}: {message}")).await?;
            }
            Event::ExtensionError {
                extension_path,
                event,
                error,
            } => {
                self.note(&format!(
                    "Warning: extension {extension_path} failed ({event}): {error}"
                ))
                .await?;
            }
            Event::SessionDamage { path, message, .. } => self.note(&format!("{path}: {message}")).await?,
            _ => {}
        }
        if self.is_terminal {
            self.stream(event);
            self.flush().await?;
        }
        Ok(())
    }

    /// Writes the remaining text.
    pub(crate) async fn finish(&mut self) -> Result<(), serve::Error> {
        self.waiting = None;
        if self.only_result {
            if let Some(result) = self.result.take() {
                self.text.push_str(&format!("{result}\n"));
            }
        } else if self.is_terminal {
            self.end_line();
        } else if let Some(answer) = self.last.take().filter(|answer| !answer.failed()) {
            for block in &answer.content {
                if let AssistantBlock::Text(text) = block {
                    self.text.push_str(&text.text);
                    self.text.push('\n');
                }
            }
        }
        self.flush().await
    }

    /// Waits until all text was written, so that lines on stderr follow it. A caller that drops the future can call it again.
    pub(crate) async fn flush(&mut self) -> Result<(), serve::Error> {
        if !self.text.is_empty() {
            let mut buffer = self.out.buffer().await?;
            buffer.extend_from_slice(self.text.as_bytes());
            self.text = String::new();
            self.out.write(buffer).await?;
        }
        self.out.flush().await
    }

    fn stream(&mut self, event: &Event) {
        match event {
            Event::TurnStart => self.end_line(),
            Event::MessageUpdate {
                assistant_message_event: StreamEvent::TextDelta { delta, .. },
                ..
            } => {
                self.waiting = None;
                self.text.push_str(&plain(delta));
                self.at_line_start = delta.ends_with('\n');
            }
            Event::ToolExecutionStart { tool_name, args, .. } => {
                self.end_line();
                let about = ["command", "path", "pattern"]
                    .into_iter()
                    .find_map(|key| args.get(key)?.as_str());
                let about = plain(about.unwrap_or("").lines().next().unwrap_or(""));
                let tool_name = plain(tool_name);
                self.text
                    .push_str(&format!("\u{1b}[2m▸ {tool_name} {about}\u{1b}[0m\n"));
            }
            Event::ToolExecutionEnd {
                is_error: true,
                tool_name,
                ..
            } => {
                let tool_name = plain(tool_name);
                self.text
                    .push_str(&format!("\u{1b}[31m✗ {tool_name} failed\u{1b}[0m\n"));
            }
            _ => {}
        }
    }

    /// Shows what the program waits for from this event on. An answer that streams into a pipe is still waited for.
    fn wait(&mut self, event: &Event) {
        match event {
            Event::TurnStart => {
                let label = format!("Waiting for {}", self.model);
                self.waiting = Some(Progress::after(SHOW_AFTER, label));
            }
            Event::ToolExecutionStart { tool_name, .. } => {
                self.waiting = None;
                if !self.is_terminal {
                    self.waiting = Some(Progress::after(SHOW_AFTER, format!("Running {tool_name}")));
                }
            }
            Event::MessageEnd { message } if message.as_assistant().is_some() => self.waiting = None,
            Event::ToolExecutionEnd { .. } | Event::AgentSettled { .. } => self.waiting = None,
            _ => {}
        }
    }

    async fn note(&mut self, text: &str) -> Result<(), serve::Error> {
        self.waiting = None;
        if self.is_terminal {
            self.end_line();
            self.flush().await?;
        }
        complain(text);
        Ok(())
    }

    fn end_line(&mut self) {
        if !std::mem::replace(&mut self.at_line_start, true) {
            self.text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};

    use wire::Usage;

    use super::*;

    #[test]
    fn answer_cannot_control_the_terminal() {
        let file = tempfile::tempfile().unwrap();
        let mut printer = Printer::new(file.try_clone().unwrap(), "m", false).unwrap();
        printer.is_terminal = true;
        let evil = "\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{202e}";
        let delta = Event::MessageUpdate {
            usage: Usage::default(),
            assistant_message_event: StreamEvent::TextDelta {
                content_index: 0,
                delta: format!("a\r\n\tb{evil}"),
            },
        };
        let call = Event::ToolExecutionStart {
            tool_call_id: "c".to_owned(),
            tool_name: evil.to_owned(),
            args: serde_json::Map::from_iter([("command".to_owned(), evil.into())]),
            parent_tool_call_id: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            printer.show(&delta).await.unwrap();
            printer.show(&call).await.unwrap();
        });
        let (mut text, mut file) = (String::new(), file);
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        let own = text.replace("\u{1b}[2m", "").replace("\u{1b}[0m", "");
        assert!(own.starts_with("a\n\tb\u{fffd}]52;c;"), "{own:?}");
        assert!(
            !own.contains(|c: char| c.is_control() && c != '\n' && c != '\t'),
            "{own:?}"
        );
        assert!(!own.contains('\u{202e}'), "{own:?}");
    }
}
