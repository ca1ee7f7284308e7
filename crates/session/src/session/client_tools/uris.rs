//! URIs of the client: `read` and `write` of a URI that the client serves become requests to it. Also the rules for the system
//! prompt about them.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tools::{ToolOutcome, Toolbox};
use wire::hosted::{HostUriResult, HostUriScheme, UriOperation};
use wire::{Event, ToolCall, ToolResult, ToolSpec, UserBlock};

use crate::strings;
use permissions::Source;

use super::super::tool_calls::{
    Access, Definition, Invocation, Place, PreparedCall, Rewriting, Running, Tool,
};
use super::client::ClientTools;
use super::requests::Answer;

/// Lets a built-in tool serve URIs of the client, if it reads or writes files.
pub(super) fn serve(tool: Arc<dyn Tool>, client: &ClientTools) -> Arc<dyn Tool> {
    let operation = match tool.name() {
        "read" => UriOperation::Read,
        "write" => UriOperation::Write,
        _ => return tool,
    };
    let client = client.clone();
    Arc::new(UriAware {
        tool,
        operation,
        client,
    })
}

/// `read` or `write`, for files and for URIs of the client.
struct UriAware {
    tool: Arc<dyn Tool>,
    operation: UriOperation,
    client: ClientTools,
}

impl Tool for UriAware {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn definition(&self) -> Definition {
        self.tool.definition()
    }

    fn source(&self) -> Source {
        self.tool.source()
    }

    fn access(&self, args: &Map<String, Value>, place: Place<'_>) -> Access {
        self.tool.access(args, place)
    }

    fn rewrite(&self, call: &ToolCall) -> Option<Rewriting> {
        self.tool.rewrite(call)
    }

    /// The arguments are checked as for a file; what runs depends on the path.
    fn prepare(self: Arc<Self>, call: &ToolCall) -> Result<PreparedCall, String> {
        let prepared = Arc::clone(&self.tool).prepare(call)?;
        let path = prepared.args.get("path").and_then(Value::as_str);
        let uri = path.unwrap_or_default().trim();
        let Some(scheme) = self.client.scheme_of(uri) else {
            return Ok(prepared);
        };
        if self.operation == UriOperation::Write && !scheme.writable {
            return Err(strings::read_only_scheme(&scheme.scheme));
        }
        let tool = Arc::new(UriRequest {
            operation: self.operation,
            uri: uri.to_owned(),
            immutable: scheme.immutable,
            client: self.client.clone(),
        });
        Ok(PreparedCall { tool, ..prepared })
    }

    fn run(&self, call: Invocation) -> Running {
        self.tool.run(call)
    }
}

/// `read` or `write` of one URI of the client.
struct UriRequest {
    operation: UriOperation,
    uri: String,
    immutable: bool,
    client: ClientTools,
}

impl Tool for UriRequest {
    fn name(&self) -> &str {
        self.operation.as_str()
    }

    /// What the client says of the scheme now. There is no schema: the model never sees this tool.
    fn definition(&self) -> Definition {
        let scheme = self.client.scheme_of(&self.uri);
        Definition {
            spec: ToolSpec {
                name: self.name().to_owned(),
                description: scheme.and_then(|scheme| scheme.description).unwrap_or_default(),
                parameters: Value::Null,
                prefers_strict: false,
            },
            snippet: None,
            guidelines: None,
        }
    }

    fn source(&self) -> Source {
        Source::ClientUri
    }

    fn access(&self, _args: &Map<String, Value>, _place: Place<'_>) -> Access {
        Access::Uri(self.uri.clone())
    }

    fn prepare(self: Arc<Self>, call: &ToolCall) -> Result<PreparedCall, String> {
        // `UriAware`, which alone makes these calls, has checked them.
        let args = call.arguments.clone();
        Ok(PreparedCall::new(self, call, args))
    }

    /// The request was made for this URI, so a hook cannot lead it to another one.
    fn change_args(&self, args: &mut Map<String, Value>, mut changed: Map<String, Value>) {
        changed.remove("path");
        changed.extend(args.remove_entry("path"));
        *args = changed;
    }

    fn run(&self, call: Invocation) -> Running {
        let (done, mut answer) = oneshot::channel();
        let (operation, uri, immutable) = (self.operation, self.uri.clone(), self.immutable);
        let Invocation {
            slot, args, cancel, ..
        } = call;
        let client = self.client.clone();
        // A call that was stopped before it began asks nothing.
        if !cancel.is_cancelled() {
            let content = args.get("content").and_then(Value::as_str);
            // The frame of `read` has none (dialects.md 7), but the model may have added it.
            let content = content.filter(|_| operation == UriOperation::Write);
            client.request(slot, Answer::Uri(done), |id| Event::HostUriRequest {
                id,
                operation,
                url: uri.clone(),
                content: content.map(str::to_owned),
            });
        }
        Box::pin(async move {
            let frame = tokio::select! {
                // An answer that came before the abort counts.
                biased;
                frame = &mut answer => frame.ok(),
                () = cancel.cancelled() => None,
            };
            match frame {
                Some(frame) => outcome(operation, &uri, args, immutable, frame),
                None if client.is_gone() => ToolOutcome::error(strings::HOST_GONE_URI),
                None => ToolOutcome::error(strings::host_uri_aborted(operation, &uri)),
            }
        })
    }
}

/// A rule for the system prompt.
pub(super) fn rule(scheme: &HostUriScheme) -> String {
    let HostUriScheme {
        scheme: name,
        description,
        writable,
        ..
    } = scheme;
    let what = description.as_deref().unwrap_or("served by the host application");
    let how = if *writable { "read and write" } else { "read" };
    format!("Use {how} with URIs that begin with {name}:// as with files: {what}.")
}

/// The result of the tool.
fn outcome(
    operation: UriOperation,
    url: &str,
    mut args: Map<String, Value>,
    immutable: bool,
    frame: HostUriResult,
) -> ToolOutcome {
    let content = match frame.content {
        Value::String(text) => Some(text),
        _ => None,
    };
    if frame.is_error {
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let error = filled(frame.error).or(filled(content));
        return ToolOutcome::error(error.unwrap_or_else(|| strings::host_uri_failed(operation, url)));
    }
    if operation == UriOperation::Write {
        let written = args.get("content").and_then(Value::as_str).unwrap_or_default();
        // In UTF-16 units, as `write` counts.
        let units = written.encode_utf16().count();
        let text = content.unwrap_or_else(|| format!("Successfully wrote {units} bytes to {url}"));
        return ToolOutcome::ok(ToolResult::text(text));
    }
    // Notices of `read` name the URI as the client was asked for it.
    args.insert("path".to_owned(), Value::from(url));
    let mut outcome = Toolbox::read_text(args, &content.unwrap_or_default());
    if !outcome.is_error {
        if let Some(UserBlock::Text(block)) = outcome.result.content.last_mut() {
            for note in &frame.notes {
                block.text.push_str(&format!("\n\n[{note}]"));
            }
        }
        let mut details = json!({
            "url": url,
            "contentType": frame.content_type.as_deref().unwrap_or("text/plain"),
            "immutable": frame.immutable.unwrap_or(immutable),
        });
        if let (Some(Value::Object(more)), Some(details)) =
            (outcome.result.details.take(), details.as_object_mut())
        {
            details.extend(more);
        }
        outcome.result.details = Some(details);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(value: Value) -> HostUriResult {
        let mut frame = value;
        frame["id"] = json!("1");
        serde_json::from_value(frame).unwrap()
    }

    fn args(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn read(args_of_call: &Value, immutable: bool, answer: Value) -> ToolOutcome {
        outcome(
            UriOperation::Read,
            "db://a",
            args(args_of_call),
            immutable,
            frame(answer),
        )
    }

    fn text(outcome: &ToolOutcome) -> String {
        match outcome.result.content.first() {
            Some(UserBlock::Text(text)) => text.text.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn failed_uri_shows_error_before_content() {
        let failed = |answer| read(&json!({"path": "db://a"}), false, answer);
        let both = failed(json!({"isError": true, "error": "locked", "content": "half"}));
        assert!(both.is_error);
        assert_eq!(text(&both), "locked");
        let content = failed(json!({"isError": true, "error": "", "content": "half"}));
        assert_eq!(text(&content), "half");
        let neither = failed(json!({"isError": true, "content": ""}));
        assert_eq!(
            text(&neither),
            strings::host_uri_failed(UriOperation::Read, "db://a")
        );
    }

    #[test]
    fn read_uri_honours_offset_and_limit() {
        let part = read(
            &json!({"path": "db://a", "offset": 2, "limit": 1}),
            false,
            json!({"content": "one\ntwo\nthree"}),
        );
        assert!(!part.is_error);
        let text = text(&part);
        assert!(
            text.starts_with("two") && !text.contains("one") && !text.contains("three"),
            "{text}"
        );
    }

    #[test]
    fn notes_follow_the_text_in_brackets() {
        let noted = read(
            &json!({"path": "db://a"}),
            false,
            json!({"content": "rows", "notes": ["first", "second"]}),
        );
        assert_eq!(text(&noted), "rows\n\n[first]\n\n[second]");
    }

    #[test]
    fn answer_overrides_immutability_of_scheme() {
        let details = |immutable, answer| {
            let read = read(&json!({"path": "db://a"}), immutable, answer);
            read.result.details.unwrap()
        };
        let scheme = details(true, json!({"content": "x"}));
        assert_eq!(
            (&scheme["immutable"], &scheme["contentType"]),
            (&json!(true), &json!("text/plain"))
        );
        assert_eq!(scheme["url"], "db://a");
        let own = details(
            true,
            json!({"content": "x", "immutable": false, "contentType": "text/markdown"}),
        );
        assert_eq!(
            (&own["immutable"], &own["contentType"]),
            (&json!(false), &json!("text/markdown"))
        );
    }

    #[test]
    fn content_of_other_type_reads_as_empty() {
        let read = read(&json!({"path": "db://a"}), false, json!({"content": {"rows": 1}}));
        assert!(!read.is_error);
        assert!(!text(&read).contains("rows"));
    }

    #[test]
    fn written_uri_counts_as_write_does() {
        let write = |answer| {
            let args = args(&json!({"path": "db://a", "content": "a😀"}));
            outcome(UriOperation::Write, "db://a", args, false, frame(answer))
        };
        assert_eq!(text(&write(json!({}))), "Successfully wrote 3 bytes to db://a");
        assert_eq!(text(&write(json!({"content": "stored"}))), "stored");
    }

    #[test]
    fn rule_names_scheme_and_what_it_allows() {
        let scheme = |value: Value| serde_json::from_value::<HostUriScheme>(value).unwrap();
        let writable = rule(&scheme(
            json!({"scheme": "db", "description": "rows", "writable": true, "immutable": false}),
        ));
        assert!(
            writable.contains("read and write") && writable.contains("db://") && writable.contains("rows")
        );
        let readable = rule(&scheme(
            json!({"scheme": "log", "writable": false, "immutable": false}),
        ));
        assert!(
            !readable.contains("write") && readable.contains("host application"),
            "{readable}"
        );
    }
}
