//! One page of the protocol reference and its sections: commands, frames, events, types. `mod` assigns them to pages.

use std::fmt::Write as _;

use serde_json::Value;
use wire::schema::pascal;
use wire::table::CommandSpec;

use super::super::examples::{Example, Examples};
use super::super::view::{description, fields, members, target, values};
use super::table::{Linker, Style, rows};
use super::{NOTE, definition, event_type};

/// Page of the types, as other pages link to it.
const TYPES: &str = "types.md";

/// A page in the making.
pub(super) struct Page<'a> {
    document: &'a Value,
    examples: &'a Examples,
    links: Linker<'a>,
    out: String,
}

impl<'a> Page<'a> {
    /// An empty page. `types` are the names that are links to the page of types.
    pub(super) fn new(document: &'a Value, examples: &'a Examples, types: Vec<&'a str>, title: &str) -> Self {
        Self {
            document,
            examples,
            links: Linker::new(types, TYPES),
            out: format!("# {title}\n\n{NOTE}\n\n"),
        }
    }

    /// The text, with one line feed at the end.
    pub(super) fn finish(mut self) -> String {
        self.out.truncate(self.out.trim_end().len());
        self.out.push('\n');
        self.out
    }

    /// Finishes the page of types, whose links stay on the page.
    pub(super) fn finish_types(self) -> String {
        let from = format!("]({TYPES}#");
        self.finish().replace(&from, "](#")
    }

    pub(super) fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    pub(super) fn command(&mut self, spec: &CommandSpec) {
        let lane = spec.lane.name();
        self.line(&format!(
            "## {}\n\n{} Lane: {lane}.\n",
            spec.name,
            spec.doc.trim()
        ));
        let request = definition(self.document, &format!("{}Command", pascal(spec.name)));
        let rows = request.map(|schema| rows(schema, &["id", "type"], Style::Parameters, &self.links));
        self.rows("parameter", rows.unwrap_or_default(), "No parameters.");
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
            self.line("The response has no `data`.\n");
            return;
        };
        let own = data
            .as_object()
            .and_then(target)
            .and_then(|name| definition(self.document, name));
        let rows = own
            .map(|schema| rows(schema, &[], Style::Fields, &self.links))
            .unwrap_or_default();
        if rows.is_empty() || rows.len() > 6 {
            let text = format!("`data` of the response: {}.\n", self.links.type_text(data));
            self.line(&text);
        } else {
            self.rows("`data` of the response", rows, "");
        }
    }

    pub(super) fn event(&mut self, name: &str) {
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
        self.line(&format!("## {heading}\n\n{}\n", description(schema)));
        let rows = rows(schema, &["type", "seq"], Style::Fields, &self.links);
        self.rows("field", rows, "");
        let example = self.examples.event(kind, cumulative);
        self.example([example, None]);
    }

    pub(super) fn frame(&mut self, name: &str) {
        let Some(schema) = definition(self.document, name) else {
            return;
        };
        let kind = event_type(self.document, name);
        self.line(&format!("### {kind}\n\n{}\n", description(schema)));
        let rows = rows(schema, &["type"], Style::Parameters, &self.links);
        self.rows("field", rows, "");
        let example = self.examples.frame(kind);
        self.example([example, None]);
    }

    pub(super) fn type_section(&mut self, name: &str) {
        let Some(schema) = definition(self.document, name) else {
            return;
        };
        self.line(&format!("## {name}\n\n{}\n", description(schema)));
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
            let rows = rows(schema, &[], Style::Fields, &self.links);
            self.rows("field", rows, "");
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
            let _infallible = writeln!(self.out, "```jsonl\n{}\n```\n", texts.join("\n"));
        }
    }
}
