//! Settings of todos and of rules that watch answers (dialects.md 8, 10.5). What they do lives in `agent`.

use agent::limits;
use agent::todo::TodoSettings;
use agent::ttsr::{Repeat, TtsrSettings};
use serde_json::Value;
use wire::rule::RuleInterrupt;

use crate::settings::reader::Reader;

/// `todo` and `tasks.todoClearDelay`. By default the model gets no todo tool and is reminded of nothing, as in pi.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TodoOptions {
    /// True if the model gets the tool `todo_write` unless a list of tools says otherwise.
    pub enabled: bool,
    /// How the list behaves. Reminders need the tool, however it was switched on.
    pub list: TodoSettings,
}

impl TodoOptions {
    /// Puts the defaults of xcsh in the place of what a file says; the clear delay stays (dialects.md 10.5).
    pub fn reset_as_xcsh(&mut self) {
        self.enabled = true;
        self.list.reminders = true;
        self.list.max_reminders = limits::TODO_REMINDERS;
    }
}

/// `ttsr`. Without rule files there is nothing to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtsrOptions {
    /// True if answers are watched.
    pub enabled: bool,
    /// How rules behave.
    pub rules: TtsrSettings,
}

impl Default for TtsrOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            rules: TtsrSettings::default(),
        }
    }
}

/// `todo.reminders` is a flag, or `{"enabled": ..., "max": ...}`.
pub(super) fn todo(reader: &mut Reader<'_>) -> TodoOptions {
    let default = TodoOptions::default();
    let given = reader.get(
        "todo.reminders",
        "true, false or an object",
        |value| match value {
            Value::Bool(flag) => Some(*flag),
            Value::Object(object) => object.get("enabled").map_or(Some(true), Value::as_bool),
            _ => None,
        },
    );
    TodoOptions {
        enabled: reader.flag("todo.enabled", default.enabled),
        list: TodoSettings {
            reminders: given.unwrap_or(default.list.reminders),
            max_reminders: reader
                .small("todo.reminders.max")
                .unwrap_or(default.list.max_reminders),
            clear_delay_ms: clear_delay(reader).unwrap_or(default.list.clear_delay_ms),
        },
    }
}

/// Seconds; a negative number keeps done items.
fn clear_delay(reader: &mut Reader<'_>) -> Option<Option<u64>> {
    reader.get(
        "tasks.todoClearDelay",
        "seconds, a negative number for never",
        |value| {
            let seconds = value.as_f64()?;
            if seconds < 0.0 {
                return Some(None);
            }
            // A day is as good as never.
            let ms = (seconds.min(86_400.0) * 1000.0).round();
            format!("{ms:.0}").parse().ok().map(Some)
        },
    )
}

pub(super) fn ttsr(reader: &mut Reader<'_>) -> TtsrOptions {
    let mode = reader.word(
        "ttsr.interruptMode",
        "always, prose-only, tool-only or never",
        RuleInterrupt::parse,
    );
    let keep = reader.word("ttsr.contextMode", "discard or keep", |word| match word {
        "discard" => Some(false),
        "keep" => Some(true),
        _ => None,
    });
    let after_gap = reader.word("ttsr.repeatMode", "once or after-gap", |word| match word {
        "once" => Some(false),
        "after-gap" => Some(true),
        _ => None,
    });
    let gap = reader.count("ttsr.repeatGap").unwrap_or(limits::REPEAT_GAP);
    TtsrOptions {
        enabled: reader.flag("ttsr.enabled", true),
        rules: TtsrSettings {
            interrupt_mode: mode.unwrap_or_default(),
            keep_partial: keep.unwrap_or(false),
            repeat: if after_gap == Some(true) {
                Repeat::AfterGap(gap)
            } else {
                Repeat::Once
            },
        },
    }
}
