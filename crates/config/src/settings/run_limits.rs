//! `limits`: what each session of a process may use (docs/guides/limits.md). Of several files, the lowest limit counts. A value of the
//! wrong type is a fault, as with other keys that protect the user, and counts as 0: no request is made until it is corrected or a
//! client sets limits.

use serde_json::Value;
use wire::RunLimits;

use crate::settings::layers::Layer;
use crate::settings::reader::{Reader, whole};

pub(super) fn run_limits(reader: &mut Reader<'_>) -> RunLimits {
    // That it should be an object is reported with the other objects.
    let is_unreadable = |layer: &Layer| layer.get("limits").is_some_and(|limits| !limits.is_object());
    let max_turns = match reader.layers.iter().any(is_unreadable) {
        true => Some(0),
        false => at_least(reader, "limits.maxTurns", 1),
    };
    RunLimits {
        max_turns,
        max_tool_calls: at_least(reader, "limits.maxToolCalls", 0),
        max_tokens: at_least(reader, "limits.maxTokens", 1),
        max_cost: limit(
            reader,
            "limits.maxCost",
            "a number of US dollars above 0",
            0.0,
            |value| Value::as_f64(value).filter(|cost| cost.is_finite() && *cost > 0.0),
        ),
        max_seconds: at_least(reader, "limits.maxSeconds", 1),
        max_repeats: at_least(reader, "limits.maxRepeats", 2),
        warn: reader.get("limits.warn", "true or false", Value::as_bool),
    }
}

fn at_least(reader: &mut Reader<'_>, path: &str, least: u64) -> Option<u64> {
    let wanted = format!("a whole number of at least {least}");
    limit(reader, path, &wanted, 0, |value| {
        whole(value).filter(|count| *count >= least)
    })
}

/// The lowest limit of all layers: a project can only lower what the user allows. `nothing`, if a layer's value is none.
fn limit<T: PartialOrd>(
    reader: &mut Reader<'_>,
    path: &str,
    wanted: &str,
    nothing: T,
    convert: impl Fn(&Value) -> Option<T>,
) -> Option<T> {
    let mut lowest = None;
    for found in reader.each(path, wanted, convert) {
        let Some(found) = found else {
            return Some(nothing);
        };
        if lowest.as_ref().is_none_or(|lowest| found < *lowest) {
            lowest = Some(found);
        }
    }
    lowest
}
