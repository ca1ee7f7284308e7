//! What the doctor says, before it is text or JSON. Not here: finding anything out.

use serde_json::{Map, Value, json};

use crate::version;

/// How a row is marked in the margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Not at all.
    None,
    /// As it should be.
    Good,
    /// Worth a look; explained among the problems or in the row itself.
    Odd,
    /// In the way of an answer.
    Bad,
}

/// One line of a section.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) mark: Mark,
    /// Empty when the row goes on with the one above.
    pub(super) label: String,
    pub(super) text: String,
}

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// True if the problem keeps the model from answering.
    pub(super) is_error: bool,
    /// A sentence that names file, variable or key.
    pub(super) message: String,
}

impl Problem {
    pub(super) fn warning(message: impl Into<String>) -> Self {
        Self {
            is_error: false,
            message: message.into(),
        }
    }

    pub(super) fn error(message: impl Into<String>) -> Self {
        Self {
            is_error: true,
            message: message.into(),
        }
    }
}

/// A group of findings.
#[derive(Debug)]
pub(super) struct Section {
    /// Its name in the JSON.
    pub(super) id: &'static str,
    /// Its heading.
    pub(super) title: &'static str,
    /// For people.
    pub(super) rows: Vec<Row>,
    /// For programs.
    pub(super) data: Value,
    pub(super) problems: Vec<Problem>,
}

impl Section {
    pub(super) fn new(id: &'static str, title: &'static str) -> Self {
        Self {
            id,
            title,
            rows: Vec::new(),
            data: Value::Null,
            problems: Vec::new(),
        }
    }

    /// Adds a row without a mark.
    pub(super) fn row(&mut self, label: impl Into<String>, text: impl Into<String>) {
        self.marked(Mark::None, label, text);
    }

    pub(super) fn marked(&mut self, mark: Mark, label: impl Into<String>, text: impl Into<String>) {
        self.rows.push(Row {
            mark,
            label: label.into(),
            text: text.into(),
        });
    }

    pub(super) fn warn(&mut self, message: impl Into<String>) {
        self.problems.push(Problem::warning(message));
    }
}

/// The result of the check: whether a model can be used.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) ready: bool,
    /// One sentence.
    pub(super) headline: String,
    /// What to do, when not ready.
    pub(super) advice: Option<String>,
}

/// The whole.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) sections: Vec<Section>,
    pub(super) problems: Vec<Problem>,
    pub(super) verdict: Verdict,
}

impl Report {
    /// One object: the verdict, the problems, then each section under its name.
    pub(super) fn json(&self) -> Value {
        let problems = self.problems.iter().map(|problem| {
            let level = if problem.is_error { "error" } else { "warning" };
            json!({"level": level, "message": problem.message})
        });
        let mut out = Map::new();
        out.insert("version".to_owned(), version::OWN.into());
        out.insert("ready".to_owned(), self.verdict.ready.into());
        out.insert("summary".to_owned(), self.verdict.headline.clone().into());
        out.insert("advice".to_owned(), json!(self.verdict.advice));
        out.insert("problems".to_owned(), problems.collect());
        for section in &self.sections {
            out.insert(section.id.to_owned(), section.data.clone());
        }
        Value::Object(out)
    }
}
