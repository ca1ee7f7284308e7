//! Compares the lines that were sent with the answers.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::lines::{Expect, Line};

/// How many examples of one kind of problem are printed.
const TOLD: usize = 5;
/// Longest piece of a line that is printed, in bytes.
const PIECE: usize = 200;

/// The expected answers.
#[derive(Debug, Default)]
pub(super) struct Tally {
    expect: Vec<Expect>,
}

/// What came back.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Answers by the number of the line; numbers are dense.
    by_number: Vec<u8>,
    /// Error codes by the number of the line, for JSON-RPC.
    codes: BTreeMap<usize, i64>,
    /// Answers with another id, or none.
    others: u64,
    /// Lines that are no JSON object.
    broken: Vec<String>,
    /// The id of the last request of the agent.
    pub(super) asked: Option<u64>,
    /// One more than the highest number of a line that was answered.
    pub(super) reached: u64,
    /// Answers with the number of a line.
    pub(super) numbered: u64,
}

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    id: Value,
    /// The version of JSON-RPC.
    #[serde(default)]
    jsonrpc: Option<String>,
    /// The method of a call or a notification.
    #[serde(default)]
    method: Option<String>,
    /// An object with a code in JSON-RPC, else a sentence.
    #[serde(default)]
    error: Value,
}

impl Head {
    fn is_response(&self) -> bool {
        match &self.jsonrpc {
            Some(_) => self.method.is_none(),
            None => self.kind == "response",
        }
    }
}

impl Seen {
    /// Takes a line of the agent; returns true for an answer.
    pub(super) fn line(&mut self, line: &[u8]) -> bool {
        let Ok(head) = serde_json::from_slice::<Head>(line) else {
            if self.broken.len() < TOLD {
                self.broken.push(piece(line));
            }
            return false;
        };
        if !head.is_response() {
            // A line must say what it is.
            if head.kind.is_empty() && head.method.is_none() && self.broken.len() < TOLD {
                self.broken.push(piece(line));
            }
            self.asked = head.id.as_u64().or(self.asked);
            return false;
        }
        let number = head
            .id
            .as_str()
            .and_then(|id| id.strip_prefix('f'))
            .and_then(|id| id.parse::<usize>().ok());
        match number.filter(|number| *number < 1 << 32) {
            Some(number) => {
                if self.by_number.len() <= number {
                    self.by_number.resize(number + 1, 0);
                }
                if let Some(count) = self.by_number.get_mut(number) {
                    *count = count.saturating_add(1);
                }
                self.numbered += 1;
                self.reached = self.reached.max(u64::try_from(number).unwrap_or(0) + 1);
                if let Some(code) = head.error.get("code").and_then(Value::as_i64) {
                    self.codes.insert(number, code);
                }
            }
            None => self.others += 1,
        }
        true
    }
}

impl Tally {
    /// Notes a line.
    pub(super) fn sent(&mut self, line: &Line) {
        self.expect.push(line.expect);
    }

    /// How many lines were sent.
    pub(super) fn lines(&self) -> u64 {
        u64::try_from(self.expect.len()).unwrap_or(u64::MAX)
    }

    /// How many answers there must be at least, and at most.
    pub(super) fn expected(&self) -> (u64, u64) {
        let count = |which: fn(&Expect) -> bool| self.expect.iter().filter(|expect| which(expect)).count();
        let sure = count(|expect| !matches!(expect, Expect::Nothing | Expect::Anything));
        let possible = count(|expect| *expect != Expect::Nothing);
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        (number(sure), number(possible))
    }

    /// Everything that does not fit. `lines` are the lines again, for the messages.
    pub(super) fn compare(&self, seen: &Seen, mut lines: impl Iterator<Item = Line>) -> Vec<String> {
        let mut problems: Vec<String> = seen
            .broken
            .iter()
            .map(|line| format!("not a line of the protocol: {line}"))
            .collect();
        let answers = seen.others + seen.by_number.iter().map(|count| u64::from(*count)).sum::<u64>();
        let (least, most) = self.expected();
        if !(least..=most).contains(&answers) {
            problems.push(format!(
                "{} lines were sent, {answers} answers came, not {least} to {most}",
                self.lines()
            ));
        }
        let wrong = |(number, expect): (usize, &Expect)| {
            let count = seen.by_number.get(number).copied().unwrap_or(0);
            let fits = match expect {
                Expect::OwnId => count == 1,
                Expect::Code(code) => count == 1 && seen.codes.get(&number) == Some(code),
                Expect::OneAnswer => count <= 1,
                Expect::Nothing | Expect::Anything => count == 0,
            };
            (!fits).then_some((number, count))
        };
        let wrong: BTreeMap<usize, u8> = self.expect.iter().enumerate().filter_map(wrong).collect();
        if wrong.len() > TOLD {
            problems.push(format!(
                "{} lines were not answered once with their id; the first:",
                wrong.len()
            ));
        }
        let mut next = 0;
        for (number, count) in wrong.into_iter().take(TOLD) {
            let line = lines
                .nth(number - next)
                .map(|line| line.bytes)
                .unwrap_or_default();
            next = number + 1;
            let code = seen
                .codes
                .get(&number)
                .map_or(String::new(), |code| format!(" with code {code}"));
            problems.push(format!(
                "line {number} was answered {count} times{code}: {}",
                piece(&line)
            ));
        }
        problems
    }
}

fn piece(line: &[u8]) -> String {
    String::from_utf8_lossy(line.get(..PIECE).unwrap_or(line))
        .trim_end()
        .to_owned()
}
