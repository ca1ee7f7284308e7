//! Input lines: good commands, commands with odd parts, commands with broken bytes, and rubbish. What each line must be
//! answered with is known when it is made.

use serde_json::{Map, Value, json};

use super::prng::Prng;

/// Commands that ask a model, run a shell, write a file, or keep what they are given.
const LEFT_OUT: [&str; 18] = [
    "prompt",
    "steer",
    "follow_up",
    "abort_and_prompt",
    "bash",
    "compact",
    "continue",
    "delete_session",
    "export_html",
    "handoff",
    "login",
    "open_session",
    "queue_message",
    "set_host_tools",
    "set_host_uri_schemes",
    "set_mcp_servers",
    "set_todos",
    "switch_session",
];
/// Longest line, in bytes, and one line in how many is that long.
const MONSTER: (usize, usize) = (256 << 10, 20_000);
/// Pieces of text that have broken parsers before.
const NASTY: [&str; 14] = [
    "", " ", "\u{2028}", "\u{0}", "\u{feff}", "é", "🦀", "\\ud800", "\\u0000", "\"", "}", "{\"a\":",
    "../../x", "NaN",
];

/// What must happen to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    /// One response with the line's own id.
    OwnId,
    /// One response; which id it has depends on how much of the line can be read.
    OneAnswer,
    /// One response with the line's own id: an error with this code.
    Code(i64),
    /// No response.
    Nothing,
    /// At most one response, which does not have the id of another line.
    Anything,
}

/// A line without its LF.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// Counted from 0; part of the id.
    pub(super) number: u64,
    /// Never holds a LF.
    pub(super) bytes: Vec<u8>,
    /// What must happen.
    pub(super) expect: Expect,
    /// The line answers a request of the agent: [`ASKED`] stands for the id of the last one.
    pub(super) answers: bool,
}

/// Stands for the id of a request of the agent, which is known only when the line is written.
pub(super) const ASKED: &str = "\"$asked\"";

/// The id of a line.
pub(super) fn id(number: u64) -> String {
    format!("f{number}")
}

/// Makes odd texts, values and bytes.
pub(super) struct Oddities {
    /// Where chance comes from.
    pub(super) random: Prng,
}

/// Makes lines without end.
pub(super) struct Generator {
    odd: Oddities,
    number: u64,
    /// Name and parameter schemas of each command of the pool.
    pool: Vec<(String, Map<String, Value>)>,
    defs: Value,
}

impl Oddities {
    /// The same seed brings the same.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Prng::new(seed),
        }
    }

    pub(super) fn text(&mut self, longest: usize) -> String {
        let mut out = String::new();
        while out.len() < self.random.below(longest) {
            match self.random.below(4) {
                0 => out.push_str(self.random.pick(&NASTY).copied().unwrap_or("")),
                _ => out.push(char::from(b'a' + self.random.byte() % 26)),
            }
        }
        out
    }

    /// Any JSON value.
    pub(super) fn any(&mut self, depth: usize) -> Value {
        match self.random.below(if depth > 5 { 6 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.random.chance(50)),
            2 => json!(self.random.next()),
            3 => json!(-1.5e-7),
            4 | 5 => json!(self.text(60)),
            6 => (0..self.random.below(4)).map(|_| self.any(depth + 1)).collect(),
            _ => Value::Object(self.object(depth)),
        }
    }

    pub(super) fn mutate(&mut self, bytes: &mut Vec<u8>) {
        let at = self.random.below(bytes.len());
        let end = at + self.random.below(12).min(bytes.len() - at);
        match self.random.below(6) {
            0 => bytes
                .get_mut(at)
                .into_iter()
                .for_each(|byte| *byte ^= 1 << self.random.below(8)),
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece: Vec<u8> = bytes.get(at..end).unwrap_or_default().to_vec();
                bytes.splice(at..at, piece);
            }
            4 => {
                let piece = self.random.pick(&NASTY).copied().unwrap_or("");
                bytes.splice(at..at, piece.bytes());
            }
            _ => bytes.insert(at, self.random.byte()),
        }
    }

    /// No command at all.
    pub(super) fn rubbish(&mut self) -> Vec<u8> {
        let length = self.random.below(80);
        let bytes = match self.random.below(6) {
            0 => (0..length).map(|_| self.random.byte()).collect(),
            1 => vec![self.random.pick(b"[{\"").copied().unwrap_or(b'['); self.random.below(2_000)],
            2 => self.any(0).to_string().into_bytes(),
            3 => vec![b' '; self.random.below(4)],
            4 => self.text(80).into_bytes(),
            _ => b"null".to_vec(),
        };
        without_line_feed(bytes)
    }

    /// An object with any members.
    pub(super) fn object(&mut self, depth: usize) -> Map<String, Value> {
        let fields = (0..self.random.below(4)).map(|_| (self.text(8), self.any(depth + 1)));
        fields.collect()
    }
}

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        let document = wire::schema::document().unwrap_or_default();
        let defs = document.get("$defs").cloned().unwrap_or_default();
        let params = |name: &str| {
            let place = format!("/{}Command/properties", wire::schema::pascal(name));
            defs.pointer(&place)
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default()
        };
        let names = wire::table::TABLE
            .iter()
            .map(|spec| spec.name)
            .filter(|name| !LEFT_OUT.contains(name));
        let pool = names.map(|name| (name.to_owned(), params(name))).collect();
        Self {
            odd: Oddities::new(seed),
            number: 0,
            pool,
            defs,
        }
    }

    fn good(&mut self) -> Map<String, Value> {
        let (name, params) = self.odd.random.pick(&self.pool).cloned().unwrap_or_default();
        let mut line = Map::new();
        line.insert("id".to_owned(), json!(id(self.number)));
        line.insert("type".to_owned(), json!(name));
        for (key, schema) in params {
            if key != "id" && key != "type" {
                let value = self.fitting(&schema, 0);
                line.insert(key, value);
            }
        }
        line
    }

    /// A value that fits a schema, more or less.
    fn fitting(&mut self, schema: &Value, depth: usize) -> Value {
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|name| name.strip_prefix("#/$defs"));
        if let Some(schema) = target.and_then(|name| self.defs.pointer(name)).cloned() {
            return self.fitting(&schema, depth + 1);
        }
        let choices = ["enum", "oneOf", "anyOf"]
            .into_iter()
            .find_map(|key| schema.get(key)?.as_array());
        if let Some(choice) = choices.and_then(|choices| self.odd.random.pick(choices)) {
            return if schema.get("enum").is_some() {
                choice.clone()
            } else {
                self.fitting(choice, depth + 1)
            };
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("boolean") => json!(self.odd.random.chance(50)),
            Some("integer" | "number") => json!(self.odd.random.below(1000)),
            Some("null") => Value::Null,
            Some("array") if depth < 4 => {
                let item = schema.get("items").cloned().unwrap_or_default();
                (0..self.odd.random.below(3))
                    .map(|_| self.fitting(&item, depth + 1))
                    .collect()
            }
            _ => json!(self.odd.text(40)),
        }
    }

    /// Valid JSON with an id of its own, but wrong, missing or additional parts.
    fn odd(&mut self) -> (Vec<u8>, Expect) {
        let mut line = self.good();
        let mut expect = Expect::OwnId;
        match self.odd.random.below(5) {
            0 => {
                line.insert("type".to_owned(), json!(format!("x{}", self.odd.text(20))));
            }
            1 => {
                let value = self.odd.any(0);
                line.insert(
                    self.odd.text(10).replace("id", "").replace("type", "") + "?",
                    value,
                );
            }
            2 => {
                let keys: Vec<String> = line.keys().filter(|key| *key != "id").cloned().collect();
                let value = self.odd.any(0);
                let key = self.odd.random.pick(&keys).cloned().unwrap_or_default();
                if key == "type" {
                    expect = Expect::OneAnswer;
                }
                line.insert(key, value);
            }
            3 => {
                let keys: Vec<String> = line.keys().filter(|key| *key != "id").cloned().collect();
                let key = self.odd.random.pick(&keys).cloned().unwrap_or_default();
                line.shift_remove(&key);
                if key == "type" {
                    expect = Expect::OneAnswer;
                }
            }
            _ => {
                line.insert("id".to_owned(), self.odd.any(3));
                expect = Expect::OneAnswer;
            }
        }
        (Value::Object(line).to_string().into_bytes(), expect)
    }

    /// A good line with broken bytes.
    fn mutated(&mut self) -> (Vec<u8>, Expect) {
        let mut line = self.good();
        // Another letter, since a broken id may otherwise be the good id of another line.
        line.insert("id".to_owned(), json!(format!("m{}", self.number)));
        let mut bytes = Value::Object(line).to_string().into_bytes();
        for _ in 0..=self.odd.random.below(3) {
            self.odd.mutate(&mut bytes);
        }
        (without_line_feed(bytes), Expect::OneAnswer)
    }

    fn monster(&mut self) -> (Vec<u8>, Expect) {
        let mut line = self.good();
        line.insert(
            "padding".to_owned(),
            json!("x".repeat(self.odd.random.below(MONSTER.0))),
        );
        (Value::Object(line).to_string().into_bytes(), Expect::OwnId)
    }
}

pub(super) fn without_line_feed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes
        .iter_mut()
        .filter(|byte| **byte == b'\n')
        .for_each(|byte| *byte = b' ');
    bytes
}

impl Iterator for Generator {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let (bytes, expect) = match self.odd.random.below(100) {
            _ if self.odd.random.below(MONSTER.1) == 0 => self.monster(),
            0..45 => (Value::Object(self.good()).to_string().into_bytes(), Expect::OwnId),
            45..65 => self.odd(),
            65..90 => self.mutated(),
            _ => (self.odd.rubbish(), Expect::OneAnswer),
        };
        let number = self.number;
        self.number += 1;
        Some(Line {
            number,
            bytes,
            expect,
            answers: false,
        })
    }
}
