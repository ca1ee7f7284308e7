//! The part of the table of keys for the todo list and for rules that watch answers.

use super::table::{COUNT, FLAG, Key, OBJECT, key};

/// Keys of todos and rules.
pub(super) const TODOS: &[Key] = &[
    key("todo", OBJECT, "{}", "The todo list of a session."),
    key(
        "todo.enabled",
        FLAG,
        "false",
        "Give the model the tool `todo_write`.",
    ),
    key(
        "todo.reminders",
        "boolean or object",
        "false",
        "Remind the model of open todos at the end of a run.",
    ),
    key(
        "todo.reminders.enabled",
        FLAG,
        "",
        "Same as `todo.reminders` as a boolean; true if the object lacks it.",
    ),
    key(
        "todo.reminders.max",
        COUNT,
        "",
        "Most reminders between two messages of the user. Default: 3. An object without `enabled` turns reminders on.",
    ),
    key("tasks", OBJECT, "{}", "Further settings of the todo list."),
    key(
        "tasks.todoClearDelay",
        "number",
        "60",
        "Seconds after which a completed todo leaves the list. A negative number keeps it.",
    ),
    key(
        "ttsr",
        OBJECT,
        "{}",
        "Rules that watch answers of the model while they are streamed.",
    ),
    key("ttsr.enabled", FLAG, "true", "Watch answers."),
    key(
        "ttsr.interruptMode",
        "`always`, `prose-only`, `tool-only` or `never`",
        "\"always\"",
        "Which matches interrupt the answer: in prose, in tool calls, all, or none.",
    ),
    key(
        "ttsr.contextMode",
        "`discard` or `keep`",
        "\"discard\"",
        "Whether the interrupted part of an answer stays in the conversation.",
    ),
    key(
        "ttsr.repeatMode",
        "`once` or `after-gap`",
        "\"once\"",
        "Whether a rule can match again in the same session.",
    ),
    key(
        "ttsr.repeatGap",
        COUNT,
        "10",
        "Turns before a rule can match again with `after-gap`; at least 2.",
    ),
];
