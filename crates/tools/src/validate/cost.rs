//! How much work a schema makes of a value, before the work is done: a foreign schema may refer to itself or to a part many
//! times over, and validation has no bound of its own.

use serde_json::{Map, Value};

use super::Budget;
use crate::limits;

/// Keywords whose schemas look at the same value.
const SAME_ONE: [&str; 4] = ["not", "if", "then", "else"];
const SAME_MANY: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords whose schemas look at members of an array.
const ITEMS: [&str; 4] = ["items", "additionalItems", "contains", "unevaluatedItems"];

/// Returns true if a value can be validated within the bounds of [`Budget`], with all references inside the document.
pub(super) fn is_affordable(root: &Value, value: &Value) -> bool {
    let mut walk = Walk {
        root,
        budget: Budget::default(),
        too_much: false,
    };
    walk.visit(root, value);
    !walk.too_much
}

/// Follows a reference inside the document. None if the target does not exist or is too many steps away.
pub(super) fn follow<'a>(root: &'a Value, schema: &'a Value) -> Option<&'a Value> {
    let mut schema = schema;
    for _ in 0..limits::SCHEMA_HOPS {
        let Some(target) = schema.get("$ref").and_then(Value::as_str) else {
            return Some(schema);
        };
        schema = root.pointer(target.strip_prefix('#')?)?;
    }
    None
}

struct Walk<'a> {
    root: &'a Value,
    budget: Budget,
    too_much: bool,
}

impl Walk<'_> {
    fn visit(&mut self, schema: &Value, value: &Value) {
        let Some(schema) = schema.as_object().filter(|_| !self.too_much) else {
            return;
        };
        if self.budget.depth == 0 || self.budget.steps == 0 {
            self.too_much = true;
            return;
        }
        self.budget.depth -= 1;
        self.budget.steps -= 1;
        self.parts(schema, value);
        self.budget.depth += 1;
    }

    fn parts(&mut self, schema: &Map<String, Value>, value: &Value) {
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let root = self.root;
            match target.strip_prefix('#').and_then(|at| root.pointer(at)) {
                Some(part) => self.visit(part, value),
                None => self.too_much = true,
            }
        }
        // Where these lead is only known while validating.
        self.too_much |= ["$dynamicRef", "$recursiveRef"]
            .iter()
            .any(|key| schema.contains_key(*key));
        for part in SAME_ONE.iter().filter_map(|key| schema.get(*key)) {
            self.visit(part, value);
        }
        let lists = SAME_MANY.iter().filter_map(|key| schema.get(*key)?.as_array());
        for part in lists.flatten() {
            self.visit(part, value);
        }
        match value {
            Value::Object(map) => self.members(schema, map, value),
            Value::Array(items) => {
                let parts = ITEMS.iter().filter_map(|key| schema.get(*key));
                let first = schema.get("prefixItems").and_then(Value::as_array);
                for part in parts.chain(first.into_iter().flatten()) {
                    for item in items {
                        self.visit(part, item);
                    }
                }
            }
            _ => {}
        }
    }

    fn members(&mut self, schema: &Map<String, Value>, map: &Map<String, Value>, whole: &Value) {
        for (key, value) in map {
            let own = schema.get("properties").and_then(|fields| fields.get(key));
            let rest = ["additionalProperties", "unevaluatedProperties"]
                .iter()
                .filter_map(|key| schema.get(*key));
            let patterns = schema.get("patternProperties").and_then(Value::as_object);
            for part in own
                .into_iter()
                .chain(rest)
                .chain(patterns.into_iter().flat_map(Map::values))
            {
                self.visit(part, value);
            }
        }
        let dependent = schema.get("dependentSchemas").and_then(Value::as_object);
        for part in dependent.into_iter().flat_map(Map::values) {
            self.visit(part, whole);
        }
    }
}
