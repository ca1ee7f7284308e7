//! Hostile text in every field (GUARANTEES.md 16). The same payloads are tried in a browser by `.ci/export-check`.

use serde_json::{Value, json};
use wire::ToolSpec;

use super::{Session, export};
use crate::{ExportInput, Format};

const PAYLOADS: &str = include_str!("payloads.json");
const DATA: &str = "<script type=\"application/json\" id=\"session-data\">";

fn payloads() -> Vec<String> {
    let all: Vec<String> = serde_json::from_str(PAYLOADS).unwrap();
    assert!(all.len() >= 150, "{}", all.len());
    all
}

fn hostile(payload: &str) -> Session {
    let image = json!({ "type": "image", "data": payload, "mimeType": payload });
    let mut arguments = serde_json::Map::new();
    for key in ["command", "path", "content", "pattern", payload] {
        arguments.insert(key.to_owned(), payload.into());
    }
    let mut session = Session::of(&[
        json!({ "type": "model_change", "provider": payload, "modelId": payload }),
        json!({ "type": "message", "message": { "role": "user", "content": [{ "type": "text", "text": payload }, image] } }),
        json!({ "type": "message", "message": { "role": "assistant", "provider": payload, "model": payload, "api": payload,
            "stopReason": "error", "errorMessage": payload, "content": [
                { "type": "text", "text": payload }, { "type": "thinking", "thinking": payload, "thinkingSignature": payload },
                { "type": "toolCall", "id": payload, "name": payload, "arguments": arguments } ] } }),
        json!({ "type": "message", "message": { "role": "toolResult", "toolCallId": payload, "toolName": payload,
            "details": { "diff": payload }, "content": [{ "type": "text", "text": payload }, image] } }),
        json!({ "type": "label", "targetId": "00000001", "label": payload }),
        json!({ "type": "custom_message", "customType": payload, "content": payload, "display": true }),
        json!({ "type": payload, "x": payload }),
        json!({ "type": "message", "message": { "role": "system", "sections": { payload: payload } } }),
        json!({ "type": "message", "message": { "role": "pythonExecution", "code": payload, "output": payload } }),
        json!({ "type": "message", "message": { "role": "fileMention", "files": [{ "path": payload, "content": payload }] } }),
        json!({ "type": "message", "message": { "role": payload, "content": payload } }),
        json!({ "type": "message", "message": { "role": "user",
            "content": format!("<skill name=\"{payload}\" location=\"x\">\n{payload}\n</skill>\n\n# {payload}\n\n{payload}\n===\n") } }),
    ]);
    session.header.cwd = payload.to_owned();
    session.header.id = payload.to_owned();
    session
}

fn page(session: &Session, payload: &str) -> String {
    let tools = [ToolSpec {
        name: payload.to_owned(),
        description: payload.to_owned(),
        parameters: json!({ "type": "object", "properties": { payload: { "description": payload } } }),
        prefers_strict: false,
    }];
    let input = ExportInput {
        system_prompt: Some(payload),
        tools: &tools,
        name: Some(payload),
        ..session.input()
    };
    export(&input, Format::Html)
}

/// Cuts the page into the parts before, of and after the data.
fn cut(page: &str) -> (&str, &str, &str) {
    let (before, rest) = page.split_once(DATA).unwrap();
    let (data, after) = rest.split_once("</script>").unwrap();
    (before, data, after)
}

fn without_title(head: &str) -> (String, String) {
    let (start, rest) = head.split_once("<title>").unwrap();
    let (title, end) = rest.split_once("</title>").unwrap();
    (format!("{start}{end}"), title.to_owned())
}

/// For every text in a session, the page around the data is the same to the byte, and the data contains no character
/// with a meaning in HTML.
#[test]
fn hostile_payloads_do_not_change_exported_page() {
    let harmless = page(&hostile("harmless"), "harmless");
    let (head, _, tail) = cut(&harmless);
    for payload in payloads() {
        let session = hostile(&payload);
        let page = page(&session, &payload);
        let (its_head, data, its_tail) = cut(&page);
        let (its_head, title) = without_title(its_head);
        assert_eq!(its_head, without_title(head).0, "{payload}");
        assert_eq!(its_tail, tail, "{payload}");
        assert!(!title.contains(['<', '>', '"', '\'', '\0']), "{payload}: {title}");
        assert!(!data.trim_end().contains(['<', '>', '&', '\0']), "{payload}");
    }
}

/// Nothing is lost by escaping: the data read back is what went in.
#[test]
fn hostile_payloads_are_exported_verbatim() {
    for payload in payloads() {
        let session = hostile(&payload);
        let page = page(&session, &payload);
        let (_, data, _) = cut(&page);
        let read: Value = serde_json::from_str(data.trim()).unwrap();
        assert_eq!(read["name"], *payload);
        assert_eq!(read["header"]["cwd"], *payload);
        assert_eq!(read["entries"][1]["message"]["content"][0]["text"], *payload);
        assert_eq!(read["entries"][2]["message"]["content"][2]["name"], *payload);
        assert_eq!(read["tools"][0]["name"], *payload);
        assert_eq!(read["systemPrompt"], *payload);
    }
}

/// In Markdown, too, no text of a session is HTML, as CommonMark sees it.
#[test]
fn exported_markdown_has_no_foreign_html() {
    use pulldown_cmark::{Event, Options, Parser};
    for payload in payloads() {
        let session = hostile(&payload);
        let input = ExportInput {
            system_prompt: Some(&payload),
            name: Some(&payload),
            ..session.input()
        };
        let text = export(&input, Format::Markdown);
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
            let (Event::Html(html) | Event::InlineHtml(html)) = event else {
                continue;
            };
            let ours = html.trim().lines().all(|line| {
                let line = line.trim();
                let folded = line.starts_with("<details><summary>") && line.matches('<').count() == 3;
                folded || ["<!-- pinion-export -->", "<!-- -->", "</details>", ""].contains(&line)
            });
            assert!(ours, "{payload}: {html}\n{text}");
        }
    }
}
