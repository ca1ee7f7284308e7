//! An extension in Rust with nothing but the standard library: `rustc main.rs -o word-count`, then put the executable
//! into the agent's folder `extensions`. It adds the number of words to what the tool `read` gave, and brings a slash
//! command. A real one would use `serde_json`; this one shows how little of JSON the lines need.

use std::io::{self, BufRead, Write};

/// Returns the raw text of a member: up to the next comma, or a string without its quotes. Sufficient for the first
/// members of a line.
fn member<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let key = format!("\"{name}\":");
    let rest = &line[line.find(&key)? + key.len()..];
    match rest.strip_prefix('"') {
        Some(text) => {
            let mut escaped = false;
            let end = text.find(|c: char| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            })?;
            Some(&text[..end])
        }
        None => Some(rest.split([',', '}', ']']).next()?.trim()),
    }
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    // The agent is gone when nothing can be written any more.
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

fn result(id: &str, value: &str) {
    say(&format!(r#"{{"type":"result","id":{id},"value":{value}}}"#));
}

/// The texts of the blocks stay as they are, escapes and all; one block with the count is added.
fn counted(line: &str) -> Option<String> {
    let text = member(&line[line.find("\"content\":")?..], "text")?;
    let words = text.replace("\\n", " ").replace("\\t", " ");
    let count = words.split_whitespace().count();
    Some(format!(
        r#"{{"content":[{{"type":"text","text":"{text}"}},{{"type":"text","text":"({count} words)"}}]}}"#
    ))
}

fn main() {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let id = member(&line, "id").unwrap_or("0");
        match member(&line, "type").unwrap_or_default() {
            "hello" => say(r#"{"type":"ready","protocol":1}"#),
            "ping" => say(&format!(r#"{{"type":"pong","id":{id}}}"#)),
            "open" => result(
                id,
                r#"{"extensions":[{"events":["tool_result"],"commands":[{"name":"words","description":"Says what this is"}]}]}"#,
            ),
            "event" if line.contains(r#""toolName":"read""#) => {
                result(id, &counted(&line).unwrap_or_else(|| "null".to_owned()));
            }
            "event" | "close" => result(id, "null"),
            "call" => {
                let session = member(&line, "session").unwrap_or_default();
                say(&format!(
                    r#"{{"type":"call","session":"{session}","method":"ui.notify","params":{{"message":"I count words"}}}}"#
                ));
                result(id, "null");
            }
            _ => {}
        }
    }
}
