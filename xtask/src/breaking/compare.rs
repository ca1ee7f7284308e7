//! What breaks a client between two schemas of the protocol. Lines are compared by what they are on the wire; how types are
//! called does not matter.
//!
//! A client breaks when a command, an answer, an event or a member of one is gone, when a command needs a parameter
//! that it did not need or refuses a value that it took, and when the agent leaves a member out that was always there
//! or puts another type into it. New lines, members, values and variants break no client
//! (docs/reference/protocol/index.md: clients pass over what they do not know).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Which way a line goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// Clients write it.
    In,
    /// The agent writes it.
    Out,
}

/// The unions of lines, which way they go, and what one of them is called.
const LINES: [(&str, Way, &str); 3] = [
    ("InboundLine", Way::In, "command"),
    ("Response", Way::Out, "response"),
    ("Event", Way::Out, "event"),
];

/// One sentence for each change that breaks clients.
pub(super) fn breaking(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (union, way, what) in LINES {
        let of = |document: &Value| -> Vec<String> {
            let members = document.pointer(&format!("/$defs/{union}/anyOf"));
            let members = members.and_then(Value::as_array).into_iter().flatten();
            members
                .filter_map(|member| target(member).map(str::to_owned))
                .collect()
        };
        let now = of(new);
        for name in of(old) {
            if !now.contains(&name) {
                found.push(format!("{what} {name} is gone"));
                continue;
            }
            let reference = serde_json::json!({ "$ref": format!("#/$defs/{name}") });
            let mut pair = Pair {
                old,
                new,
                way,
                seen: BTreeSet::new(),
                found: Vec::new(),
            };
            pair.compare(&name, &reference, &reference);
            found.append(&mut pair.found);
        }
    }
    found
}

/// Two documents, and the differences between them.
struct Pair<'a> {
    old: &'a Value,
    new: &'a Value,
    way: Way,
    /// Types that are compared already, or are being compared.
    seen: BTreeSet<(String, String)>,
    found: Vec<String>,
}

impl Pair<'_> {
    fn compare(&mut self, place: &str, old: &Value, new: &Value) {
        if let (Some(before), Some(after)) = (target(old), target(new))
            && !self.seen.insert((before.to_owned(), after.to_owned()))
        {
            return;
        }
        let (old, new) = (resolve(self.old, old), resolve(self.new, new));
        if old.get("const") != new.get("const") && old.get("const").is_some() {
            self.found.push(format!("{place} has another fixed value"));
            return;
        }
        self.values(place, old, new);
        self.types(place, old, new);
        self.members(place, old, new);
        self.variants(place, old, new);
        if let (Some(old), Some(new)) = (old.get("items"), new.get("items")) {
            self.compare(&format!("{place}[]"), old, new);
        }
        let parts = |schema: &Value| schema.get("allOf").and_then(Value::as_array).cloned();
        if let (Some(old), Some(new)) = (parts(old), parts(new)) {
            for (old, new) in old.iter().zip(&new) {
                self.compare(place, old, new);
            }
        }
    }

    /// A value that was taken or written is not any more.
    fn values(&mut self, place: &str, old: &Value, new: &Value) {
        let values = |schema: &Value| schema.get("enum").and_then(Value::as_array).cloned();
        let (Some(before), Some(after)) = (values(old), values(new)) else {
            return;
        };
        for value in before.iter().filter(|value| !after.contains(value)) {
            self.found.push(format!("{place} cannot be {value} any more"));
        }
    }

    fn types(&mut self, place: &str, old: &Value, new: &Value) {
        let (before, after) = (types(old), types(new));
        let fits = match self.way {
            Way::In => covers(&after, &before),
            Way::Out => covers(&before, &after),
        };
        if !fits {
            self.found
                .push(format!("{place} was {} and is {}", show(&before), show(&after)));
        }
    }

    fn members(&mut self, place: &str, old: &Value, new: &Value) {
        let empty = Map::new();
        let fields = |schema: &Value| schema.get("properties").and_then(Value::as_object).cloned();
        let (Some(before), after) = (fields(old), fields(new)) else {
            return;
        };
        let after = after.unwrap_or(empty);
        for (name, schema) in &before {
            match after.get(name) {
                Some(now) => self.compare(&format!("{place}.{name}"), schema, now),
                None => self.found.push(format!("{place}.{name} is gone")),
            }
        }
        let (needed, need) = (required(old), required(new));
        match self.way {
            Way::In => {
                for name in need.difference(&needed) {
                    self.found.push(format!("{place}.{name} is needed now"));
                }
            }
            Way::Out => {
                for name in needed.difference(&need).filter(|name| after.contains_key(*name)) {
                    self.found.push(format!("{place}.{name} may be missing now"));
                }
            }
        }
    }

    /// Each variant must have a successor that breaks nothing.
    fn variants(&mut self, place: &str, old: &Value, new: &Value) {
        let Some(before) = variants(old) else { return };
        let after = variants(new).unwrap_or_else(|| vec![new.clone()]);
        for variant in &before {
            let mut best: Option<Vec<String>> = None;
            for candidate in &after {
                let mut pair = Pair {
                    old: self.old,
                    new: self.new,
                    way: self.way,
                    seen: self.seen.clone(),
                    found: Vec::new(),
                };
                pair.compare(place, variant, candidate);
                if best.as_ref().is_none_or(|best| best.len() > pair.found.len()) {
                    best = Some(pair.found);
                }
            }
            if best.is_none_or(|best| !best.is_empty()) {
                let name = target(variant).unwrap_or("of it");
                self.found
                    .push(format!("{place}: the variant {name} is gone or has changed"));
            }
        }
    }
}

fn target(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// What a reference refers to; anything else is itself.
fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let found = target(schema).and_then(|name| document.get("$defs")?.get(name));
    found.unwrap_or(schema)
}

fn required(schema: &Value) -> BTreeSet<String> {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

fn variants(schema: &Value) -> Option<Vec<Value>> {
    ["anyOf", "oneOf"]
        .into_iter()
        .find_map(|key| schema.get(key)?.as_array().cloned())
}

/// JSON types that a schema names; none when any will do.
fn types(schema: &Value) -> Option<BTreeSet<String>> {
    match schema.get("type") {
        Some(Value::String(name)) => Some(BTreeSet::from([name.clone()])),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            Some(names.map(str::to_owned).collect())
        }
        _ => None,
    }
}

/// Returns true if one set of types contains the other. An unnamed type is judged by its parts.
fn covers(wide: &Option<BTreeSet<String>>, narrow: &Option<BTreeSet<String>>) -> bool {
    match (wide, narrow) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wide), Some(narrow)) => narrow
            .iter()
            .all(|name| wide.contains(name) || (name == "integer" && wide.contains("number"))),
    }
}

fn show(types: &Option<BTreeSet<String>>) -> String {
    match types {
        None => "anything".to_owned(),
        Some(names) => names.iter().cloned().collect::<Vec<_>>().join(" or "),
    }
}
