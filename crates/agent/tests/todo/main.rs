//! The todo list: what clients and models may write, what becomes of it.
#![expect(clippy::unwrap_used, reason = "helpers of a test may panic")]
#![expect(clippy::indexing_slicing, reason = "JSON of a known form")]

mod clock;
mod lists;
mod ops;
mod restored;

use pinion_agent::todo::{Op, TodoSettings, Todos, normalise};
use serde_json::Value;

/// An empty list.
fn empty() -> Todos {
    Todos::new(TodoSettings::default(), Vec::new())
}

/// A list that a client has set at time 0.
fn with(phases: &Value) -> Todos {
    let mut todos = empty();
    todos.replace(normalise(phases).unwrap(), 0);
    todos
}

/// Carries out a call of the model's tool; gives the text it reads.
fn write(todos: &mut Todos, ops: &Value) -> String {
    let arguments = serde_json::json!({ "ops": ops });
    let ops = Op::parse(arguments.as_object().unwrap()).unwrap();
    let (phases, result) = todos.written(ops, true);
    todos.replace(phases, 0);
    result.joined_text()
}

/// `id status content` of every item.
fn lines(todos: &Todos) -> Vec<String> {
    let items = todos.phases().iter().flat_map(|phase| &phase.tasks);
    items
        .map(|item| format!("{} {} {}", item.id, item.status.as_str(), item.content))
        .collect()
}
