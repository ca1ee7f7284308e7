//! `docs/reference/extension-protocol.md`: the page about extensions in any language. Its introduction is
//! `extensions.md` in this folder. The lines come from the types of the extensions crate, methods and events from its
//! tables.

use std::fmt::Write as _;

use extensions::combining::{LISTS, RESULT, Rule, rule};
use extensions::limits;
use extensions::reference::{EVENTS, Event, Method, OF_AGENT, OF_PROGRAM};
use serde_json::Value;

use super::super::view::{definitions, description, fields, members, values};
use super::table::{Linker, Style, rows};

/// Where the examples are, seen from the root.
pub(in crate::protocol) const EXAMPLES: &str = "protocol/examples/extensions";

/// The whole page. `to` and `from` are examples of lines to and from programs.
pub(in crate::protocol) fn render(document: &Value, minimal: &str, to: &str, from: &str) -> String {
    let names = definitions(document).map(|(name, _)| name.as_str()).collect();
    let links = Linker::new(names, "");
    let mut out = intro(minimal);
    out.push_str("## Lines to a program\n\n");
    lines(&mut out, document.get("toProgram"), to, &links);
    out.push_str("## Lines from a program\n\n");
    lines(&mut out, document.get("fromProgram"), from, &links);
    out.push_str("## Types\n\n");
    for (name, schema) in definitions(document) {
        let _infallible = writeln!(out, "### {name}\n\n{}\n", description(schema));
        match values(schema) {
            Some(values) => {
                for (value, doc) in values {
                    let _infallible = writeln!(out, "- `{value}` {doc}");
                }
                out.push('\n');
            }
            None => table(&mut out, &rows(schema, &[], Style::Fields, &links)),
        }
    }
    out.push_str("## Methods that the agent calls\n\n");
    methods(&mut out, OF_AGENT);
    out.push_str("## Methods that a program can call\n\nEach call names a session. A call without an `id` gets no response; its failure is reported as `extension_error`.\n\n");
    methods(&mut out, OF_PROGRAM);
    out.push_str("## Events\n\nThe members are in `event`, in addition to `type`. An event with an `id` needs a `result`. Where a value is listed, the `value` of the result has an effect.\n\n");
    for event in EVENTS {
        self::event(&mut out, event);
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn intro(minimal: &str) -> String {
    include_str!("extensions.md")
        .replace("{minimal}", minimal)
        .replace("{restarts}", "3")
        .replace("{silence}", &limits::PONG_WAIT.as_secs().to_string())
        .replace("{memory}", &(limits::MEMORY >> 20).to_string())
        .replace("{line}", &(limits::MAX_LINE >> 20).to_string())
        .replace("{flood}", &limits::FLOOD.to_string())
        .replace("{window}", &limits::FLOOD_WINDOW.as_secs().to_string())
}

/// A section for each line, with its example.
fn lines(out: &mut String, union: Option<&Value>, examples: &str, links: &Linker<'_>) {
    for schema in union.and_then(members).unwrap_or_default() {
        let Some(kind) = schema.pointer("/properties/type/const").and_then(Value::as_str) else {
            continue;
        };
        let _infallible = writeln!(out, "### {kind}\n\n{}\n", description(schema));
        if !fields(schema).is_empty() {
            table(out, &rows(schema, &["type"], Style::Fields, links));
        }
        let begins = format!("{{\"type\":\"{kind}\"");
        let own: Vec<&str> = examples
            .lines()
            .filter(|line| line.starts_with(&begins))
            .collect();
        if !own.is_empty() {
            let _infallible = writeln!(out, "```json\n{}\n```\n", own.join("\n"));
        }
    }
}

fn table(out: &mut String, rows: &[String]) {
    if !rows.is_empty() {
        let _infallible = writeln!(
            out,
            "| Member | type | meaning |\n| --- | --- | --- |\n{}\n",
            rows.join("\n")
        );
    }
}

fn methods(out: &mut String, methods: &[Method]) {
    out.push_str("| Method | params | value | |\n| --- | --- | --- | --- |\n");
    for Method {
        name,
        params,
        value,
        doc,
    } in methods
    {
        let [params, value] = [params, value].map(|text| code(text));
        let _infallible = writeln!(out, "| `{name}` | {params} | {value} | {doc} |");
    }
    out.push('\n');
}

fn event(out: &mut String, event: &Event) {
    let _infallible = writeln!(out, "### {}\n\n{}", event.name, event.doc);
    if !event.members.is_empty() {
        let _infallible = write!(out, " Members: {}.", code(event.members));
    }
    if !event.result.is_empty() {
        let combined = combined(rule(event.name));
        let _infallible = write!(out, " Value: {}.{combined}", code(event.result));
    }
    out.push_str("\n\n");
}

/// How answers are put together, in words.
fn combined(rule: Rule) -> String {
    let chained = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        format!(" The next extension sees the changed {}.", names.join(", "))
    };
    let last = |member: &str| format!(" The first answer with `{member}` ends the event.");
    match rule {
        Rule::Observe => String::new(),
        Rule::Cancel => last("cancel: true") + " Otherwise the last answer applies.",
        Rule::Block => last("block: true") + &chained(&["input"]),
        Rule::First(member) => last(member),
        Rule::Chain(members) => chained(members),
        Rule::Patch => chained(&RESULT),
        Rule::Begin => {
            " The `messages` of all extensions are added.".to_owned() + &chained(&["systemPrompt"])
        }
        Rule::Input => last("action: \"handled\"") + &chained(&["text", "images"]),
        Rule::Message => chained(&["message"]),
        Rule::Collect => format!(
            " The lists of all extensions are joined: `{}`.",
            LISTS.join("`, `")
        ),
    }
}

/// Text between backticks, safe inside a table.
fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let is_type =
        text.starts_with(['{', '"']) || text.contains(',') || !text.contains(' ') || text.contains('|');
    let text = text.replace('|', "\\|");
    if is_type { format!("`{text}`") } else { text }
}
