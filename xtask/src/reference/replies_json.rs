//! `replies-json.md`: the format of the file for `--script`. The fields come from the types that read it; a field without a
//! description here, or a description without a field, is an error.

use std::path::Path;

use anyhow::{Result, ensure};

use super::{cell, head, read, scan};

const SOURCE: &str = "crates/llm/src/offline/script.rs";

const INTRO: &str = "\
`pinion --model offline/script --script replies.json` answers requests from a file. It needs no network and no key. Tools, permissions,
extensions and session files work as with a real model.

```json,replies
[
  {\"stream\": [{\"text\": [\"I look at \", \"the manifest.\"]}, {\"tool\": {\"name\": \"read\", \"args\": {\"path\": \"Cargo.toml\"}}}]},
  {\"stream\": [{\"text\": \"The crate is called gears.\"}], \"usage\": {\"input\": 900, \"output\": 12}}
]
```

The file contains a list of replies, or an object with the list in `llm`. Each request gets the first reply that was not used yet and
whose `match` fits. If there is none, the request fails with `400 The script has no reply for this request`.
";

type Doc = (&'static str, &'static str);

const REPLY: &[Doc] = &[
    ("stream", "Items of the answer, in order; see below."),
    (
        "usage",
        "Token counts: `input` (default 100), `output` (20), `cache_read` (0), `cache_write` (0).",
    ),
    (
        "stop",
        "`stop`, `toolUse` or `length`. Default: `toolUse` if the answer calls a tool, else `stop`. Any other word is an error of the provider.",
    ),
    ("error", "An error in place of the answer; see below."),
    ("before", "`{\"delay\": SECONDS}` before the answer begins."),
    (
        "match",
        "Which requests the reply is for; see below. Default: all.",
    ),
    (
        "repeat",
        "Whether the reply can be used more than once. Default: false.",
    ),
];

const MATCH: &[Doc] = &[
    (
        "contains",
        "Text that the system prompt or the messages contain, as JSON.",
    ),
    ("not_contains", "Text that they do not contain."),
    ("tools", "Whether the request offers tools."),
];

const REFUSAL: &[Doc] = &[
    (
        "kind",
        "`server` (default), `rate_limit`, `overloaded`, `context_overflow`, `too_large`, `auth` or `invalid`.",
    ),
    ("status", "HTTP status. Default: that of the kind."),
    ("message", "Text of the error. Default: that of the kind."),
    ("body", "Body of the response, used if there is no `message`."),
    (
        "headers",
        "Headers of the response. Only `retry-after` has an effect.",
    ),
];

/// Items of `stream`: each word must be in the source.
const ITEMS: &[Doc] = &[
    (
        "text",
        "A text block: a string, or a list of strings that arrive one by one. A list can contain `{\"delay\": SECONDS}`.",
    ),
    (
        "thinking",
        "A thinking block, in the same form; its sibling `signature` is optional.",
    ),
    (
        "tool",
        "A tool call: `name`, `args` (an object) and an optional `id`. `args_raw` is a string in place of `args`, `arg_chunks` a list of strings.",
    ),
    ("delay", "A pause in seconds."),
    ("drop", "The connection breaks."),
    ("eof", "The stream ends without a stop reason."),
    (
        "error_event",
        "An error inside the stream, with the fields of `error`.",
    ),
];

/// The page.
pub(super) fn render(root: &Path) -> Result<String> {
    let source = read(root, SOURCE)?;
    let mut out = head("replies.json");
    out.push_str(INTRO);
    out.push_str("\n## Reply\n");
    table(&mut out, REPLY);
    same(&source, "Reply", REPLY)?;
    out.push_str("\n## Items of `stream`\n");
    table(&mut out, ITEMS);
    for (name, _) in ITEMS {
        ensure!(
            source.contains(&format!("get(\"{name}\")")),
            "no item {name} is read any more"
        );
    }
    out.push_str("\n## `match`\n");
    table(&mut out, MATCH);
    same(&source, "Matcher", MATCH)?;
    out.push_str("\n## `error`\n");
    table(&mut out, REFUSAL);
    same(&source, "Refusal", REFUSAL)?;
    Ok(out)
}

fn table(out: &mut String, docs: &[Doc]) {
    out.push_str("\n| field | meaning |\n| --- | --- |\n");
    for (name, doc) in docs {
        out.push_str(&format!("| `{name}` | {} |\n", cell(doc)));
    }
}

fn same(source: &str, name: &str, docs: &[Doc]) -> Result<()> {
    let mut fields: Vec<String> = scan::fields(source, name)?
        .into_iter()
        .map(|item| item.name)
        .collect();
    // `match` is a word of Rust.
    if let Some(field) = fields.iter_mut().find(|field| *field == "matcher") {
        *field = "match".to_owned();
    }
    let known: Vec<&str> = docs.iter().map(|(name, _)| *name).collect();
    ensure!(
        fields == known,
        "{name} has the fields {fields:?}, the page {known:?}"
    );
    Ok(())
}
