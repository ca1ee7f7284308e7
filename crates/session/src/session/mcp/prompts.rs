//! Prompts of servers: slash commands `/mcp:SERVER:PROMPT`, whose text is got from the server when they are typed.

use ::mcp::{Argument, McpError, Outcome, Prompt, Server};
use config::resources::CommandInfo;
use config::{Origin as SourceOrigin, Scope, SourceInfo};
use serde_json::{Map, Value};
use tokio::task::JoinHandle;
use wire::{ToolResult, UserBlock};

use crate::strings;

use super::super::pending_prompt::{PendingPrompt, PromptSender};
use super::results::{self, Room};
use super::{McpConnections, mcp};

/// A prompt that is being got, and what it is for.
pub(super) struct Asked {
    prompt: Option<PendingPrompt>,
    answer: JoinHandle<Result<ToolResult, McpError>>,
}

impl Drop for Asked {
    fn drop(&mut self) {
        // Nothing takes the answer any more.
        self.answer.abort();
    }
}

/// A prompt that was got, or not.
pub(crate) struct Prompted {
    prompt: PendingPrompt,
    answer: Result<ToolResult, String>,
}

impl Prompted {
    /// The prompt as the user would have typed it.
    ///
    /// # Errors
    /// The sender of the prompt, and why the server gave none.
    pub(crate) fn into_prompt(self) -> Result<PendingPrompt, (PromptSender, String)> {
        let Self { mut prompt, answer } = self;
        let result = match answer {
            Ok(result) => result,
            Err(error) => return Err((prompt.sender, error)),
        };
        let mut texts = Vec::new();
        for block in result.content {
            match block {
                UserBlock::Text(text) => texts.push(text.text),
                UserBlock::Image(image) => prompt.attachments.add_image(image),
            }
        }
        prompt.text = texts.join("\n\n");
        // It is a server's text: no slash in it means anything.
        prompt.expand = false;
        Ok(prompt)
    }
}

/// Waits for the prompt. Cancel-safe.
pub(super) async fn got(asked: &mut Option<Asked>) -> Prompted {
    let Some(waiting) = asked else {
        return std::future::pending().await;
    };
    let answer = (&mut waiting.answer).await;
    let answer = match answer {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    // Taken only after the wait, so that a cancelled wait loses nothing.
    let prompt = waiting.prompt.take();
    *asked = None;
    match prompt {
        Some(prompt) => Prompted { prompt, answer },
        // It is there until here, so this cannot happen.
        None => std::future::pending().await,
    }
}

impl McpConnections {
    /// Gets a server's prompt, if the text of a client's message calls one; it comes with an event. Gives the message back if it does
    /// not.
    pub(crate) async fn ask_prompt(&mut self, message: PendingPrompt, room: Room) -> Option<PendingPrompt> {
        // Any other text with a slash goes on: a skill, a template, or words for the model (pi-core.md 6.5).
        let Some((server, prompt, text)) = self.called(&message.text) else {
            return Some(message);
        };
        let args = match arguments(&prompt.arguments, text) {
            Ok(args) => args,
            Err(error) => {
                message.sender.refuse(error).await;
                return None;
            }
        };
        let answer = tokio::spawn(async move {
            let outcome: Outcome = server.prompt(&prompt.raw, args).await?;
            // A long result is written to a file, which blocks.
            let shown = tokio::task::spawn_blocking(move || results::shown(outcome, &room)).await;
            shown.map_err(|error| McpError::Refused(error.to_string()))
        });
        // One prompt at a time: the newest takes the place of the one before.
        self.withdraw_prompt().await;
        self.asked = Some(Asked {
            prompt: Some(message),
            answer,
        });
        None
    }

    /// Stops waiting for a prompt; its command fails.
    pub(crate) async fn withdraw_prompt(&mut self) {
        if let Some(mut asked) = self.asked.take()
            && let Some(prompt) = asked.prompt.take()
        {
            prompt.sender.refuse(strings::ABORTED.to_owned()).await;
        }
    }

    /// Returns true while a prompt is being got.
    pub(crate) fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// The slash commands of all servers.
    pub(crate) fn commands(&self) -> Vec<CommandInfo> {
        let mut commands = Vec::new();
        for (running, seen) in self.snapshots() {
            let scope = match running.origin {
                mcp::Origin::Project => Scope::Project,
                mcp::Origin::User => Scope::User,
                mcp::Origin::Cli | mcp::Origin::Session | mcp::Origin::Extension => Scope::Temporary,
            };
            let path = format!("<mcp:{}>", running.server.config().name);
            for prompt in &seen.lists.prompts {
                commands.push(command(prompt, &path, scope));
            }
        }
        commands
    }

    /// The prompt that a text calls, and its arguments.
    fn called<'a>(&self, text: &'a str) -> Option<(Server, Prompt, &'a str)> {
        let rest = text.strip_prefix('/').filter(|rest| rest.starts_with("mcp:"))?;
        let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        for (running, seen) in self.snapshots() {
            if let Some(prompt) = seen.lists.prompts.iter().find(|prompt| prompt.name == name) {
                return Some((running.server.clone(), prompt.clone(), args.trim()));
            }
        }
        None
    }
}

fn command(prompt: &Prompt, path: &str, scope: Scope) -> CommandInfo {
    let hint = prompt.arguments.iter().map(|argument| match argument.required {
        true => format!("<{}>", argument.name),
        false => format!("[{}]", argument.name),
    });
    let hint = hint.collect::<Vec<_>>().join(" ");
    CommandInfo {
        name: prompt.name.clone(),
        description: prompt.description.clone(),
        // A word that every client knows; what it stands for is a prompt.
        source: "prompt",
        source_info: SourceInfo {
            path: path.to_owned(),
            source: SourceOrigin::Local.word().to_owned(),
            scope,
            origin: "top-level",
            base_dir: None,
        },
        argument_hint: Some(hint).filter(|hint| !hint.is_empty()),
        location: match scope {
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Temporary => "path",
        },
        path: path.to_owned(),
    }
}

/// Arguments as they are typed: `name=value`, or values in their order, quoted if they have spaces; the last one takes the
/// rest.
fn arguments(wanted: &[Argument], text: &str) -> Result<Map<String, Value>, String> {
    let mut given = Map::new();
    let words = words(text);
    let mut places = wanted.iter();
    for (at, word) in words.iter().enumerate() {
        // A word with `=` is a named argument only if the prompt has one of this name.
        if let Some((name, value)) = word.split_once('=')
            && wanted.iter().any(|argument| argument.name == name)
        {
            given.insert(name.to_owned(), value.into());
            continue;
        }
        let Some(place) = places.by_ref().find(|place| !given.contains_key(&place.name)) else {
            break;
        };
        let is_last = places.as_slice().is_empty();
        let value = match is_last {
            true => words.get(at..).unwrap_or_default().join(" "),
            false => word.clone(),
        };
        given.insert(place.name.clone(), value.into());
        if is_last {
            break;
        }
    }
    let missing = wanted
        .iter()
        .find(|argument| argument.required && !given.contains_key(&argument.name));
    match missing {
        Some(argument) => Err(format!("The prompt needs the argument {}", argument.name)),
        None => Ok(given),
    }
}

/// Words, of which quoted ones may hold spaces.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    // Noted apart from the letters, since `""` is a word without any.
    let (mut word, mut quote, mut is_word) = (String::new(), None, false);
    for c in text.chars() {
        match (c, quote) {
            ('"' | '\'', None) => (quote, is_word) = (Some(c), true),
            (c, Some(open)) if c == open => quote = None,
            (c, None) if c.is_whitespace() => {
                if std::mem::take(&mut is_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            _ => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mcp_prompt_arguments_by_name_or_position() {
        let wanted = |names: &[(&str, bool)]| -> Vec<Argument> {
            let argument = |(name, required): &(&str, bool)| Argument {
                name: name.to_string(),
                required: *required,
            };
            names.iter().map(argument).collect()
        };
        let two = wanted(&[("city", true), ("when", false)]);
        let read = |text: &str| arguments(&two, text).map(Value::Object);
        assert_eq!(read("Bonn").unwrap(), json!({"city": "Bonn"}));
        assert_eq!(
            read("\"New York\" to morrow").unwrap(),
            json!({"city": "New York", "when": "to morrow"})
        );
        assert_eq!(
            read("when=now Bonn").unwrap(),
            json!({"when": "now", "city": "Bonn"})
        );
        assert_eq!(read("").unwrap_err(), "The prompt needs the argument city");
        assert_eq!(arguments(&[], "x y").unwrap(), Map::new());
    }

    #[test]
    fn quoted_words_may_be_empty_or_open() {
        assert_eq!(words("a \"\" b"), ["a", "", "b"]);
        assert_eq!(words("'it is' x\"y z\""), ["it is", "xy z"]);
        assert_eq!(words("\"open end"), ["open end"]);
        assert!(words(" \t ").is_empty());
    }

    #[test]
    fn unknown_names_are_values() {
        let wanted = [Argument {
            name: "city".to_owned(),
            required: true,
        }];
        let read = arguments(&wanted, "a=b c").unwrap();
        assert_eq!(Value::Object(read), json!({"city": "a=b c"}));
        let twice = arguments(&wanted, "city=Bonn Rome").unwrap();
        assert_eq!(Value::Object(twice), json!({"city": "Bonn"}), "no place is left");
    }
}
