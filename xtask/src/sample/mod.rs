//! Session files made up for measurements and damage tests (pi-core.md 2.2, 2.3): turns of a user's words, answers with
//! thinking, text and tool calls, results with details; now and then a branch, a label, a name; one compaction near the start.
//!
//! Here: the order of the entries and their frame. What they say is in `words`.

#[cfg(test)]
mod tests;
mod words;

use serde_json::{Value, json};

use crate::fuzz::prng::Prng;
use words::Words;

/// Steps (an answer with a call, and its result) a turn has at most.
const STEPS: usize = 8;
/// Every so many turns the turn before is left and told another way.
const BRANCH_TURNS: u64 = 40;
/// Every so many turns the user's words get a label.
const LABEL_TURNS: u64 = 25;
/// Every so many turns the session gets a name.
const NAME_TURNS: u64 = 100;
/// The compaction comes with the first turn that begins behind this share of the entries, in percent.
const COMPACTION_AT: usize = 2;
/// Time of the first entry, Unix milliseconds: 2026-01-01.
const BEGIN_MS: u64 = 1_767_225_600_000;
/// Milliseconds between two entries.
const PACE_MS: u64 = 1_500;

/// What a session file is to be like.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Entries, the header not counted.
    pub(crate) entries: usize,
    /// Size of the whole file, about.
    pub(crate) bytes: usize,
    /// Same seed, same file.
    pub(crate) seed: u64,
    /// Working directory in the header.
    pub(crate) cwd: String,
    /// True if there is a compaction near the start.
    pub(crate) compaction: bool,
}

/// A session file that was made up.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    /// The lines, the header first, each with its LF.
    pub(crate) lines: Vec<String>,
    /// Session id.
    pub(crate) id: String,
    /// Entry id of the last user message.
    pub(crate) last_user: String,
}

impl Sample {
    /// Makes up a session.
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut maker = AgentFactory::new(plan);
        while !maker.full() {
            maker.turn();
        }
        maker.sample
    }

    /// The whole file.
    pub(crate) fn text(&self) -> String {
        self.lines.concat()
    }

    /// The name that pi gives such a file.
    pub(crate) fn file_name(&self) -> String {
        format!("2026-01-01T00-00-00-000Z_{}.jsonl", self.id)
    }
}

/// Appends entries until the session is as long as planned.
struct AgentFactory<'a> {
    plan: &'a Plan,
    words: Words,
    sample: Sample,
    bytes: usize,
    leaf: Value,
    turns: u64,
    /// Leaf before the turn that is going on.
    before: Value,
    compacted: bool,
}

impl<'a> AgentFactory<'a> {
    fn new(plan: &'a Plan) -> Self {
        let mut random = Prng::new(plan.seed);
        let id = format!("019b7a2c-5000-7000-8000-{:012x}", random.next() >> 16);
        let sample = Sample {
            lines: Vec::new(),
            id: id.clone(),
            last_user: String::new(),
        };
        let mut maker = Self {
            plan,
            words: Words::new(random),
            sample,
            bytes: 0,
            leaf: Value::Null,
            turns: 0,
            before: Value::Null,
            compacted: !plan.compaction,
        };
        let header =
            json!({"type": "session", "version": 3, "id": id, "timestamp": iso(BEGIN_MS), "cwd": plan.cwd});
        maker.line(&header);
        maker.entry("model_change", &json!({"provider": "mock", "modelId": "mock"}));
        maker.entry("thinking_level_change", &json!({"thinkingLevel": "off"}));
        maker
    }

    /// Entries up to now.
    fn len(&self) -> usize {
        self.sample.lines.len() - 1
    }

    fn full(&self) -> bool {
        self.len() >= self.plan.entries
    }

    fn line(&mut self, value: &Value) {
        let line = format!("{value}\n");
        self.bytes += line.len();
        self.sample.lines.push(line);
    }

    /// Appends an entry behind the leaf, unless the session is full; gives back its id.
    fn entry(&mut self, kind: &str, fields: &Value) -> String {
        if self.full() {
            return String::new();
        }
        let id = format!("{:08x}", self.len());
        let mut entry = json!({"type": kind, "id": id, "parentId": self.leaf, "timestamp": iso(self.now())});
        for (name, value) in fields.as_object().into_iter().flatten() {
            if let Some(object) = entry.as_object_mut() {
                object.insert(name.clone(), value.clone());
            }
        }
        self.line(&entry);
        self.leaf = id.clone().into();
        id
    }

    fn message(&mut self, mut message: Value) -> String {
        if let Some(object) = message.as_object_mut() {
            object.insert("timestamp".to_owned(), self.now().into());
        }
        self.entry("message", &json!({ "message": message }))
    }

    fn now(&self) -> u64 {
        let entries = u64::try_from(self.len()).unwrap_or(u64::MAX);
        BEGIN_MS.saturating_add(entries.saturating_mul(PACE_MS))
    }

    /// A user's words, steps, an answer; and around it what happens only now and then.
    fn turn(&mut self) {
        self.turns += 1;
        if self.turns.is_multiple_of(BRANCH_TURNS) {
            self.leaf = self.before.clone();
        }
        self.before = self.leaf.clone();
        let said = self.words.user();
        let user = self.message(said);
        if !user.is_empty() {
            self.sample.last_user.clone_from(&user);
        }
        if !self.compacted && self.len() * 100 > self.plan.entries * COMPACTION_AT {
            self.compacted = true;
            let summary = self.words.text(3_000);
            self.entry(
                "compaction",
                &json!({"summary": summary, "firstKeptEntryId": user, "tokensBefore": 180_000, "fromHook": false,
                    "details": {"readFiles": ["src/main.rs"], "modifiedFiles": ["src/lib.rs"]}}),
            );
        }
        for _ in 0..1 + self.words.below(STEPS) {
            let call = format!("toolu_{:08}", self.len());
            let (answer, tool) = self.words.call(&call);
            self.message(answer);
            let size = self.room();
            let result = self.words.result(&call, tool, size);
            self.message(result);
        }
        let answer = self.words.answer();
        self.message(answer);
        if self.turns.is_multiple_of(LABEL_TURNS) {
            self.entry(
                "label",
                &json!({"targetId": user, "label": format!("step {}", self.turns)}),
            );
        }
        if self.turns.is_multiple_of(NAME_TURNS) {
            self.entry("session_info", &json!({"name": format!("Part {}", self.turns)}));
        }
    }

    /// Bytes of the next tool result with which the file grows as planned: results are the part that varies.
    fn room(&mut self) -> usize {
        let due = self.plan.bytes.saturating_mul(self.len() + 1) / self.plan.entries.max(1);
        let missing = due.saturating_sub(self.bytes);
        // Some results are short and others make up for it.
        missing / 4 + self.words.below(missing * 3 / 2)
    }
}

/// A Unix time in milliseconds of January 2026 as pi writes times.
fn iso(ms: u64) -> String {
    let since = ms.saturating_sub(BEGIN_MS);
    let (days, rest) = (since / 86_400_000, since % 86_400_000);
    let (hours, rest) = (rest / 3_600_000, rest % 3_600_000);
    let (minutes, rest) = (rest / 60_000, rest % 60_000);
    format!(
        "2026-01-{:02}T{hours:02}:{minutes:02}:{:02}.{:03}Z",
        days + 1,
        rest / 1_000,
        rest % 1_000
    )
}
