//! Schemas for tests of results, each with a right and a wrong value, which are made together with it: no validator is asked.

use serde_json::{Map, Value, json};

/// A schema with examples.
pub(super) struct Case {
    pub(super) schema: Value,
    pub(super) right: Value,
    pub(super) wrong: Value,
}

fn case(schema: Value, right: Value, wrong: Value) -> Case {
    Case { schema, right, wrong }
}

/// Returns a schema for each number, nested up to three levels deep.
pub(super) fn numbered(number: u64) -> Case {
    let mut maker = Maker {
        state: number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
        definitions: Map::new(),
    };
    let Case {
        mut schema,
        right,
        wrong,
    } = match number % 4 {
        // Every second schema describes an object, as most programs want.
        0 | 2 => maker.object(2),
        _ => maker.any(3),
    };
    if !maker.definitions.is_empty() {
        schema["$defs"] = maker.definitions.into();
    }
    case(schema, right, wrong)
}

struct Maker {
    state: u64,
    definitions: Map<String, Value>,
}

impl Maker {
    fn below(&mut self, count: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % count
    }

    fn any(&mut self, depth: u32) -> Case {
        if depth == 0 {
            return self.leaf();
        }
        match self.below(8) {
            0 => self.leaf(),
            1 | 2 => self.object(depth - 1),
            3 => self.list(depth - 1),
            4 => self.tuple(depth - 1),
            5 => self.union(depth - 1),
            6 => self.reference(depth - 1),
            _ => self.chain(),
        }
    }

    fn leaf(&mut self) -> Case {
        match self.below(9) {
            0 => case(
                json!({"enum": ["low", "high", 3]}),
                json!("high"),
                json!("middle"),
            ),
            1 => case(
                json!({"type": "integer", "minimum": 1, "maximum": 10}),
                json!(7),
                json!(11),
            ),
            2 => case(
                json!({"type": "string", "pattern": "^[a-z]{3}$"}),
                json!("abc"),
                json!("ABCD"),
            ),
            3 => case(json!({"type": "boolean"}), json!(true), json!("perhaps")),
            4 => case(
                json!({"const": {"fixed": [1]}}),
                json!({"fixed": [1]}),
                json!({"fixed": [2]}),
            ),
            5 => case(
                json!({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5}),
                json!(2.5),
                json!(-0.5),
            ),
            6 => case(
                json!({"type": ["string", "null"], "maxLength": 4}),
                Value::Null,
                json!("too long"),
            ),
            7 => case(
                json!({"type": "string", "minLength": 2}),
                json!("Grüße \u{1F600}\n\"quoted\""),
                json!("x"),
            ),
            _ => case(
                json!({"not": {"type": "string"}}),
                json!([1, "two"]),
                json!("a text"),
            ),
        }
    }

    fn object(&mut self, depth: u32) -> Case {
        let count = 1 + self.below(4);
        let members: Vec<(String, Case)> = (0..count)
            .map(|n| (format!("member{n}"), self.any(depth)))
            .collect();
        let mut right = Map::new();
        let mut properties = Map::new();
        for (name, member) in &members {
            properties.insert(name.clone(), member.schema.clone());
            right.insert(name.clone(), member.right.clone());
        }
        let mut wrong = right.clone();
        match self.below(3) {
            0 => drop(wrong.remove("member0")),
            1 => drop(wrong.insert("unknown".to_owned(), json!(1))),
            _ => drop(wrong.insert("member0".to_owned(), members[0].1.wrong.clone())),
        }
        let names: Vec<&String> = members.iter().map(|(name, _)| name).collect();
        case(
            json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false}),
            right.into(),
            wrong.into(),
        )
    }

    fn list(&mut self, depth: u32) -> Case {
        let item = self.any(depth);
        let wrong = if self.below(2) == 0 {
            json!([])
        } else {
            json!([item.right, item.wrong])
        };
        case(
            json!({"type": "array", "items": item.schema, "minItems": 1, "maxItems": 5}),
            json!([item.right, item.right]),
            wrong,
        )
    }

    fn tuple(&mut self, depth: u32) -> Case {
        let (first, second) = (self.any(depth), self.any(depth));
        case(
            json!({"type": "array", "prefixItems": [first.schema, second.schema], "items": false, "minItems": 2}),
            json!([first.right, second.right]),
            json!([first.right, second.wrong]),
        )
    }

    /// Alternatives that their member `kind` tells apart.
    fn union(&mut self, depth: u32) -> Case {
        let (one, other) = (self.any(depth), self.any(depth));
        let alternative = |kind: &str, value: &Case| {
            json!({
                "type": "object",
                "properties": {"kind": {"const": kind}, "value": value.schema},
                "required": ["kind", "value"],
            })
        };
        let keyword = if self.below(2) == 0 { "anyOf" } else { "oneOf" };
        case(
            json!({keyword: [alternative("one", &one), alternative("other", &other)]}),
            json!({"kind": "other", "value": other.right}),
            json!({"kind": "third", "value": one.right}),
        )
    }

    fn reference(&mut self, depth: u32) -> Case {
        let target = self.any(depth);
        let name = format!("part{}", self.definitions.len());
        self.definitions.insert(name.clone(), target.schema);
        case(
            json!({"$ref": format!("#/$defs/{name}")}),
            target.right,
            target.wrong,
        )
    }

    /// A schema that refers to itself.
    fn chain(&mut self) -> Case {
        let node = json!({
            "type": "object",
            "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
            "required": ["value", "next"],
        });
        self.definitions.insert("node".to_owned(), node);
        let chain =
            |last: Value| json!({"value": 1, "next": {"value": 2, "next": {"value": last, "next": null}}});
        case(
            json!({"$ref": "#/$defs/node"}),
            chain(json!(3)),
            chain(json!("three")),
        )
    }
}
