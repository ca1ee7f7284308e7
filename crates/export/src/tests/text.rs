//! What exports say: the page's own parts, Markdown, JSON, names.

use std::path::Path;

use base64::Engine as _;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::{SessionLog, new_header};

use super::{Session, answer, export, user};
use crate::{ExportError, ExportInput, Format, check, default_name};

fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    text.split_once(from).unwrap().1.split_once(to).unwrap().0
}

/// The policy names exactly the script and style that are in the page; otherwise a browser runs nothing.
#[test]
fn export_policy_matches_script_and_style() {
    let page = Session::of(&[user("hello")]).export(Format::Html);
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    let hash = |text: &str| base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text));
    let script = between(&page, "<script>", "</script>");
    let style = between(&page, "<style>", "</style>");
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert!(policy.contains(&format!("script-src 'sha256-{}';", hash(script))));
    assert!(policy.contains(&format!("style-src 'sha256-{}';", hash(style))));
    assert!(!policy.contains("unsafe") && !policy.contains("http"));
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
    assert!(page.ends_with("</html>\n"));
}

/// The script can make text only: it never uses what takes markup or code.
#[test]
fn export_script_uses_no_markup_sinks() {
    let page = Session::of(&[user("hello")]).export(Format::Html);
    let script = between(&page, "<script>", "</script>");
    for word in [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "fetch(",
        "XMLHttp",
        "setAttribute('on",
        "srcdoc",
    ] {
        assert!(!script.contains(word), "{word}");
    }
}

#[test]
fn exported_page_contains_message_text() {
    let page = Session::of(&[
        user("MARKER-QUESTION"),
        answer(json!([{ "type": "text", "text": "MARKER-ANSWER" }])),
    ])
    .export(Format::Html);
    assert!(page.contains("MARKER-QUESTION") && page.contains("MARKER-ANSWER"));
}

#[test]
fn export_title_is_name_or_folder_and_day() {
    let mut session = Session::of(&[user("hello")]);
    session.header.timestamp = "2025-11-01T10:00:00.000Z".to_owned();
    assert_eq!(
        between(&session.export(Format::Html), "<title>", "<"),
        "app 2025-11-01"
    );
    let input = ExportInput {
        name: Some("  A & B "),
        ..session.input()
    };
    assert_eq!(
        between(&export(&input, Format::Html), "<title>", "<"),
        "A &amp; B"
    );
}

fn branched() -> Session {
    let call = json!([{ "type": "thinking", "thinking": "let me see" }, { "type": "text", "text": "I look." },
        { "type": "toolCall", "id": "c1", "name": "bash", "arguments": { "command": "ls" } }]);
    let result = json!({ "type": "message", "message": { "role": "toolResult", "toolCallId": "c1", "toolName": "bash",
        "content": [{ "type": "text", "text": "a file with ``` in it" }] } });
    let mut other = user("the other way");
    other["parentId"] = "00000000".into();
    Session::of(&[
        user("first question"),
        answer(call),
        result,
        answer(json!([{ "type": "text", "text": "```rust\nfn open() {" }])),
        other,
    ])
}

#[test]
fn exported_markdown_is_branch_of_leaf() {
    let session = branched();
    let text = session.export(Format::Markdown);
    assert!(
        text.contains("first question") && text.contains("the other way"),
        "{text}"
    );
    assert!(!text.contains("I look."));
    let leaf = ExportInput {
        leaf_id: Some("00000003"),
        ..session.input()
    };
    let text = export(&leaf, Format::Markdown);
    assert!(!text.contains("the other way"));
    assert_eq!(
        text.matches("## Assistant").count(),
        1,
        "answers around a tool are one section"
    );
    assert!(text.contains("**bash**\n\n```sh\nls\n```\n"), "{text}");
    assert!(text.contains("````\na file with ``` in it\n````\n"), "{text}");
    assert!(
        text.trim_end().ends_with("```rust\nfn open() {\n```"),
        "an open block is closed: {text}"
    );
    assert!(
        text.contains("- Tokens: 20 in, 10 out\n- Cost: $0.5000"),
        "{text}"
    );
}

#[test]
fn exported_markdown_keeps_code_and_escapes_tags() {
    let said = "Use `Vec<u8>` and <b>bold</b> in\n\n```html\n<b>code</b>\n```";
    let text = Session::of(&[user(said)]).export(Format::Markdown);
    assert!(
        text.contains("Use `Vec<u8>` and &lt;b>bold&lt;/b> in\n\n```html\n<b>code</b>\n```"),
        "{text}"
    );
}

/// The outline of the document is who spoke; headlines of messages are below that, code stays as it is.
#[test]
fn exported_markdown_keeps_its_outline() {
    let said = "# One\n\nTwo\nlines\n---\n\n##### Five\n\n> ## Quoted\n\n```sh\n# no headline\n```";
    let text = Session::of(&[user(said)]).export(Format::Markdown);
    for part in [
        "### One\n",
        "###### Five\n",
        "> #### Quoted\n",
        "```sh\n# no headline\n```",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let outline = text.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!(outline, 1, "{text}");
}

/// Lists and quotes end with their message: an open code block in them takes nothing along, and nothing continues them.
#[test]
fn exported_markdown_keeps_messages_apart() {
    use pulldown_cmark::{Event, Options, Parser};
    let said = |text: &str| json!({ "type": "text", "text": text });
    let call = json!({ "type": "toolCall", "id": "c1", "name": "read", "arguments": { "path": "a.html" } });
    let result = json!({ "type": "message", "message": { "role": "toolResult", "toolCallId": "c1", "toolName": "read",
        "content": [{ "type": "text", "text": "<live>" }] } });
    for blocks in [
        [said("1. Run\n   ```sh\n   ls"), call.clone()],
        [said("> ```sh\n> ls"), call.clone()],
        [said("```md\n> ```"), call],
        [said("- item"), said("    <live>")],
    ] {
        let text = Session::of(&[answer(json!(blocks)), result.clone()]).export(Format::Markdown);
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
            if let Event::Html(html) | Event::InlineHtml(html) = event {
                assert!(!html.contains("live"), "{text}");
            }
        }
    }
}

#[test]
fn exported_markdown_pairs_results_of_repeated_ids() {
    let call = |path: &str| {
        answer(json!([{ "type": "toolCall", "id": "call_0", "name": "read", "arguments": { "path": path } }]))
    };
    let result = |text: &str| {
        json!({ "type": "message", "message": { "role": "toolResult", "toolCallId": "call_0", "toolName": "read",
            "content": [{ "type": "text", "text": text }] } })
    };
    let entries = [call("a"), result("1st"), call("b"), result("2nd"), call("c")];
    let text = Session::of(&entries).export(Format::Markdown);
    let first = between(&text, "**read** `a`", "**read** `b`");
    assert!(first.contains("1st") && !first.contains("2nd"), "{text}");
    let second = between(&text, "**read** `b`", "**read** `c`");
    assert!(second.contains("2nd"), "{text}");
    assert!(text.contains("**read** `c` (no result)"), "{text}");
}

#[test]
fn exported_markdown_shows_changes_once() {
    let calls = json!([
        { "type": "toolCall", "id": "c1", "name": "edit", "arguments": { "path": "src/a.rs", "edits": [{ "oldText": "OLD", "newText": "NEW" }] } },
        { "type": "toolCall", "id": "c2", "name": "write", "arguments": { "path": "b.py", "content": "print(1)\n" } },
        { "type": "toolCall", "id": "c3", "name": "edit", "arguments": { "path": "c.rs", "edits": [{ "oldText": "X", "newText": "Y" }] } },
    ]);
    let result = |id: &str, text: &str, failed: bool, details: Value| {
        json!({ "type": "message", "message": { "role": "toolResult", "toolCallId": id, "toolName": "edit", "isError": failed,
            "content": [{ "type": "text", "text": text }], "details": details } })
    };
    let text = Session::of(&[
        answer(calls),
        result(
            "c1",
            "Successfully replaced",
            false,
            json!({ "diff": "-1 OLD\n+1 NEW" }),
        ),
        result("c2", "Successfully wrote", false, Value::Null),
        result("c3", "Could not find it", true, Value::Null),
    ])
    .export(Format::Markdown);
    assert!(
        text.contains("**edit** `src/a.rs`\n\n```diff\n-1 OLD\n+1 NEW\n```"),
        "{text}"
    );
    assert_eq!(text.matches("OLD").count(), 1, "{text}");
    assert!(text.contains("```py\nprint(1)\n```"), "{text}");
    assert!(!text.contains("Successfully"), "{text}");
    assert!(text.contains("**edit** `c.rs` (failed)"), "{text}");
    assert!(
        text.contains("\"newText\": \"Y\"") && text.contains("Could not find it"),
        "{text}"
    );
}

/// Entries of other agents and versions are exported where possible; invisible entries do not split an answer.
#[test]
fn exported_markdown_covers_other_dialects() {
    let role = |message: Value| json!({ "type": "message", "message": message });
    let text = Session::of(&[
        role(json!({ "role": "system", "content": "", "sections": { "base": "BE KIND", "old": null } })),
        user("<skill name=\"review\" location=\"/s/SKILL.md\">\n# Look\n</skill>\n\nplease"),
        answer(json!([{ "type": "text", "text": "one" }])),
        json!({ "type": "context_edit", "targetId": "00000001", "replacement": null }),
        answer(json!([{ "type": "text", "text": "two" }])),
        role(json!({ "role": "pythonExecution", "code": "print(6 * 7)", "output": "42\n" })),
        role(json!({ "role": "fileMention", "files": [{ "path": "a b.txt", "content": "" }] })),
        role(json!({ "role": "oracle", "content": "from *the* future" })),
        role(json!({ "role": "silent", "data": 1 })),
    ])
    .export(Format::Markdown);
    for part in [
        "System prompt</summary>\n\n```\nBE KIND\n```",
        "*Skill: review*",
        "</details>\n\nplease",
        "one\n\ntwo",
        "```python\nprint(6 * 7)\n```",
        "```\n42\n```",
        "*Mentioned files:* `a b.txt`",
        "## oracle\n\nfrom *the* future",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("## Assistant").count(), 1, "{text}");
    assert!(!text.contains("silent"), "{text}");
}

#[test]
fn exported_markdown_omits_terminal_escapes() {
    let output = "\u{1b}[1;31mred\u{1b}[0m \u{1b}]8;;https://a.invalid\u{7}link\u{1b}]8;;\u{1b}\\ bell\u{7} cut\u{1b}[3\nnext\u{1b}";
    let run = json!({ "type": "message", "message": { "role": "bashExecution", "command": "x", "output": output } });
    let text = Session::of(&[run]).export(Format::Markdown);
    assert!(text.contains("```\nred link bell cut\nnext\n```"), "{text:?}");
}

#[test]
fn exported_markdown_omits_character_set_escapes() {
    let output = "\u{1b}(B\u{1b}[mdone\u{1b}(\nnext";
    let run = json!({ "type": "message", "message": { "role": "bashExecution", "command": "x", "output": output } });
    let text = Session::of(&[run]).export(Format::Markdown);
    assert!(text.contains("```\ndone\nnext\n```"), "{text:?}");
}

#[test]
fn export_of_cyclic_entries_ends() {
    let mut first = user("one");
    first["parentId"] = "00000001".into();
    let text = Session::of(&[first, user("two")]).export(Format::Markdown);
    assert!(text.contains("one") && text.contains("two"));
}

#[test]
fn exported_json_holds_everything() {
    let session = branched();
    let input = ExportInput {
        leaf_id: Some("00000003"),
        system_prompt: Some("be kind"),
        ..session.input()
    };
    let read: Value = serde_json::from_str(&export(&input, Format::Json)).unwrap();
    assert_eq!(read["format"], "pinion-export");
    assert_eq!(read["leafId"], "00000003");
    assert_eq!(read["systemPrompt"], "be kind");
    assert_eq!(read["entries"].as_array().unwrap().len(), 5);
    let lines = export(&input, Format::Json).lines().count();
    assert_eq!(lines, 5 + 2, "a line for each entry");
    assert_eq!(
        read["entries"][4],
        serde_json::to_value(&*session.entries[4]).unwrap()
    );
}

#[test]
fn export_names_follow_format() {
    let file = Path::new("/s/2025-11-01T10-00-00-000Z_abc.jsonl");
    assert_eq!(
        default_name(file, Format::Html),
        "pi-session-2025-11-01T10-00-00-000Z_abc.html"
    );
    assert_eq!(
        default_name(file, Format::Markdown),
        "pi-session-2025-11-01T10-00-00-000Z_abc.md"
    );
    assert_eq!(Format::of_path(Path::new("a.MD")), Format::Markdown);
    assert_eq!(Format::of_path(Path::new("a.json")), Format::Json);
    assert_eq!(Format::of_path(Path::new("a")), Format::Html);
}

#[test]
fn export_preconditions_have_texts_of_pi() {
    let memory = SessionLog::create(None, new_header("/", None)).unwrap();
    let error = check(&memory).unwrap_err();
    assert_eq!(error.to_string(), "Cannot export in-memory session to HTML");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut log = SessionLog::create(Some(path), new_header("/", None)).unwrap();
    let error = check(&log).unwrap_err();
    assert!(matches!(error, ExportError::NothingToExport));
    assert_eq!(
        error.to_string(),
        "Nothing to export yet - start a conversation first"
    );
    log.ensure_on_disk().unwrap();
    check(&log).unwrap();
}
