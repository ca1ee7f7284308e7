//! `PROTOCOL.md`: the reference page. Texts about the whole protocol are in `intro.md` and `types.md` beside this file; all
//! the rest comes from the schema, the command table and the examples.

pub(super) mod extensions;
mod table;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use wire::schema::pascal;
use wire::table::{CommandSpec, TABLE};

use super::examples::{Example, Examples};
use super::view::{definitions, description, fields, members, target, values};
use table::{Linker, Style};

/// What is needed everywhere on the page.
struct Page<'a> {
    document: &'a Value,
    examples: &'a Examples,
    links: Linker<'a>,
    out: String,
}

/// The whole page.
pub(super) fn render(document: &Value, examples: &Examples) -> String {
    let mut page = Page {
        document,
        examples,
        links: Linker::new(types(document)),
        out: include_str!("intro.md").to_owned(),
    };
    page.contents();
    page.line("## Commands\n");
    for spec in TABLE {
        page.command(spec);
    }
    page.line("## Frames\n\nAnswers to questions of the agent. They are not answered themselves unless they cannot be used.\n");
    for name in references(document, "InboundLine") {
        if name.ends_with("Frame") {
            page.frame(name);
        }
    }
    page.line("## Events\n");
    for name in references(document, "Event") {
        page.event(name);
    }
    page.out.push_str(include_str!("types.md"));
    for name in types(document) {
        page.type_section(name);
    }
    page.out.truncate(page.out.trim_end().len());
    page.out.push('\n');
    page.out
}

/// Members of a union of references.
fn references<'a>(document: &'a Value, name: &str) -> Vec<&'a str> {
    let union = definition(document, name).and_then(members).unwrap_or_default();
    union
        .into_iter()
        .filter_map(|member| target(member.as_object()?))
        .collect()
}

fn definition<'a>(document: &'a Value, name: &str) -> Option<&'a Value> {
    document.get("$defs")?.get(name)
}

/// Definitions that are no lines themselves: they get a section in the last part of the page.
fn types(document: &Value) -> Vec<&str> {
    let mut lines: BTreeSet<&str> = BTreeSet::from(["Response", "Event"]);
    lines.extend(wire::schema::ROOTS);
    for union in ["InboundLine", "Response", "Event"] {
        lines.extend(references(document, union));
    }
    let names = definitions(document).map(|(name, _)| name.as_str());
    names.filter(|name| !lines.contains(name)).collect()
}

impl Page<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn contents(&mut self) {
        let commands: Vec<String> = TABLE
            .iter()
            .map(|spec| format!("[{0}](#{0})", spec.name))
            .collect();
        let mut events: Vec<String> = Vec::new();
        for name in references(self.document, "Event") {
            let kind = event_type(self.document, name);
            let link = format!("[{kind}](#{kind})");
            if !events.contains(&link) {
                events.push(link);
            }
        }
        let text = format!(
            "## Contents\n\nCommands: {}.\n\nEvents: {}.\n",
            commands.join(", "),
            events.join(", ")
        );
        self.line(&text);
    }

    fn command(&mut self, spec: &CommandSpec) {
        let lane = spec.lane.name();
        self.line(&format!(
            "### {}\n\n{} Lane: {lane}.\n",
            spec.name,
            spec.doc.trim()
        ));
        let request = definition(self.document, &format!("{}Command", pascal(spec.name)));
        let rows = request.map(|schema| table::rows(schema, &["id", "type"], Style::Parameters, &self.links));
        self.rows("Takes", rows.unwrap_or_default(), "Takes nothing.");
        self.answer(spec);
        if let Some((command, response)) = self.examples.command(spec.name) {
            self.example([Some(command), response]);
        }
    }

    fn answer(&mut self, spec: &CommandSpec) {
        let name = format!("{}Response", pascal(spec.name));
        let response = definition(self.document, &name);
        let data = response.and_then(|schema| schema.pointer("/properties/data"));
        let Some(data) = data else {
            self.line("Answers without `data`.\n");
            return;
        };
        let own = data
            .as_object()
            .and_then(target)
            .and_then(|name| definition(self.document, name));
        let rows = own
            .map(|schema| table::rows(schema, &[], Style::Fields, &self.links))
            .unwrap_or_default();
        if rows.is_empty() || rows.len() > 6 {
            let text = format!("Answers `data`: {}.\n", self.links.type_text(data));
            self.line(&text);
        } else {
            self.rows("Answers", rows, "");
        }
    }

    fn event(&mut self, name: &str) {
        let Some(schema) = definition(self.document, name) else {
            return;
        };
        let kind = event_type(self.document, name);
        let cumulative = name.contains("Cumulative");
        let heading = if cumulative {
            format!("{kind} (cumulative)")
        } else {
            kind.to_owned()
        };
        self.line(&format!("### {heading}\n\n{}\n", description(schema)));
        let rows = table::rows(schema, &["type", "seq"], Style::Fields, &self.links);
        self.rows("Fields", rows, "");
        let example = self.examples.event(kind, cumulative);
        self.example([example, None]);
    }

    fn frame(&mut self, name: &str) {
        let Some(schema) = definition(self.document, name) else {
            return;
        };
        let kind = event_type(self.document, name);
        self.line(&format!("### {kind}\n\n{}\n", description(schema)));
        let rows = table::rows(schema, &["type"], Style::Parameters, &self.links);
        self.rows("Fields", rows, "");
        let example = self.examples.frame(kind);
        self.example([example, None]);
    }

    fn type_section(&mut self, name: &str) {
        let Some(schema) = definition(self.document, name) else {
            return;
        };
        self.line(&format!("### {name}\n\n{}\n", description(schema)));
        if let Some(values) = values(schema) {
            for (value, doc) in values {
                self.line(format!("- `{value}` {doc}").trim_end());
            }
            self.line("");
        } else if fields(schema).is_empty() {
            let union: Vec<String> = members(schema)
                .unwrap_or_default()
                .into_iter()
                .map(|member| self.links.type_text(member))
                .collect();
            self.line(&format!("One of: {}.\n", union.join(", ")));
        } else {
            let rows = table::rows(schema, &[], Style::Fields, &self.links);
            self.rows("Fields", rows, "");
        }
    }

    fn rows(&mut self, title: &str, rows: Vec<String>, otherwise: &str) {
        if rows.is_empty() {
            if !otherwise.is_empty() {
                self.line(&format!("{otherwise}\n"));
            }
            return;
        }
        self.line(&format!(
            "| {title} | type | meaning |\n| --- | --- | --- |\n{}\n",
            rows.join("\n")
        ));
    }

    fn example(&mut self, lines: [Option<&Example>; 2]) {
        let texts: Vec<&str> = lines
            .into_iter()
            .flatten()
            .map(|line| line.text.as_str())
            .collect();
        if !texts.is_empty() {
            let _infallible = writeln!(self.out, "```json\n{}\n```\n", texts.join("\n"));
        }
    }
}

fn event_type<'a>(document: &'a Value, name: &str) -> &'a str {
    let kind = definition(document, name).and_then(|schema| schema.pointer("/properties/type/const"));
    kind.and_then(Value::as_str).unwrap_or("")
}
