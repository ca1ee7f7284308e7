//! Rows of figures, the table, and the same as JSON. How a figure is measured is not known here.

use serde_json::{Value, json};

/// What a figure is held to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Target {
    /// Nothing; it is only shown.
    None,
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
}

/// A figure of one program.
#[derive(Debug, Clone)]
pub(super) struct Row {
    group: &'static str,
    figure: String,
    unit: &'static str,
    samples: Vec<f64>,
    target: Target,
    note: String,
}

impl Row {
    /// A figure without a target; its value is the median of the samples.
    pub(super) fn new(group: &'static str, figure: &str, unit: &'static str, samples: Vec<f64>) -> Self {
        Self {
            group,
            figure: figure.to_owned(),
            unit,
            samples,
            target: Target::None,
            note: String::new(),
        }
    }

    /// A group that could not be measured; counts as missed.
    pub(super) fn failed(group: &'static str, error: &anyhow::Error) -> Self {
        let first = format!("{error:#}").lines().next().unwrap_or_default().to_owned();
        Self::new(group, "not measured", "", Vec::new())
            .at_most(0.0)
            .note(&first)
    }

    /// It must be this or less.
    pub(super) fn at_most(mut self, target: f64) -> Self {
        self.target = Target::AtMost(target);
        self
    }

    /// It must be this or more.
    pub(super) fn at_least(mut self, target: f64) -> Self {
        self.target = Target::AtLeast(target);
        self
    }

    /// It must be this or less, if anything.
    pub(super) fn target(self, target: Option<f64>) -> Self {
        match target {
            Some(target) => self.at_most(target),
            None => self,
        }
    }

    /// Adds a remark.
    pub(super) fn note(mut self, note: &str) -> Self {
        note.clone_into(&mut self.note);
        self
    }

    /// Returns whether the target is reached; `None` without a target.
    pub(super) fn reached(&self) -> Option<bool> {
        let value = median(&self.samples);
        match self.target {
            Target::None => None,
            Target::AtMost(target) => Some(value <= target),
            Target::AtLeast(target) => Some(value >= target),
        }
    }

    fn measured(&self) -> String {
        let (low, high) = self
            .samples
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(*value), high.max(*value))
            });
        match self.samples.len() {
            0 => "-".to_owned(),
            1 => format!("{} {}", short(median(&self.samples)), self.unit),
            n => format!(
                "{} {} ({}..{}, n={n})",
                short(median(&self.samples)),
                self.unit,
                short(low),
                short(high)
            ),
        }
    }
}

/// All figures of one program.
#[derive(Debug, Clone)]
pub(super) struct Column {
    name: String,
    /// In the order they were measured.
    pub(super) rows: Vec<Row>,
}

impl Column {
    /// Nothing measured yet.
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            rows: Vec::new(),
        }
    }

    /// Number of targets that were not reached.
    pub(super) fn missed(&self) -> usize {
        self.rows
            .iter()
            .filter(|row| row.reached() == Some(false))
            .count()
    }
}

/// The table: the first program with targets, then each peer by itself.
pub(super) fn table(columns: &[Column]) -> String {
    let mut lines = Vec::new();
    for (number, column) in columns.iter().enumerate() {
        let ours = number == 0;
        lines.push(format!("\n## {}\n", column.name));
        lines.push("| figure | measured | target | | remark |".to_owned());
        lines.push("|---|---|---|---|---|".to_owned());
        for row in &column.rows {
            let target = match row.target {
                Target::None => String::new(),
                Target::AtMost(target) => format!("<= {} {}", short(target), row.unit),
                Target::AtLeast(target) => format!(">= {} {}", short(target), row.unit),
            };
            // The targets are ours; for a peer they only serve for comparison.
            let verdict = match row.reached() {
                Some(true) => "ok",
                Some(false) if ours => "MISSED",
                Some(false) => "above ours",
                None => "",
            };
            lines.push(format!(
                "| {}: {} | {} | {target} | {verdict} | {} |",
                row.group,
                row.figure,
                row.measured(),
                row.note
            ));
        }
    }
    lines.join("\n")
}

/// Every measurement.
pub(super) fn json(columns: &[Column]) -> String {
    let rows = columns.iter().flat_map(|column| {
        column.rows.iter().map(|row| {
            json!({
                "program": column.name, "group": row.group, "figure": row.figure, "unit": row.unit,
                "samples": row.samples, "median": median(&row.samples), "reached": row.reached(), "note": row.note,
            })
        })
    });
    let mut text = Value::Array(rows.collect()).to_string();
    text.push('\n');
    text
}

/// The middle value; the mean of the two in the middle of an even number, and not a number without any.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle).copied().unwrap_or(f64::NAN);
    if sorted.len().is_multiple_of(2) {
        let lower = middle
            .checked_sub(1)
            .and_then(|at| sorted.get(at).copied())
            .unwrap_or(f64::NAN);
        f64::midpoint(lower, upper)
    } else {
        upper
    }
}

/// Three significant places are more than a noisy machine can give.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
