//! Updates about a session and not about a message: tokens and cost, slash commands, the plan.

use serde_json::{Value, json};
use wire::Reply;
use wire::state::{SessionState, SessionStats};
use wire::todo::{TodoPhase, TodoStatus};

/// Returns true for the tools that change the todo list.
pub(crate) fn changes_todos(tool: &str) -> bool {
    matches!(tool, "todo" | "todo_write")
}

/// The update that follows from an answer of the session.
pub(crate) fn update(outcome: &Result<Reply, String>) -> Option<Value> {
    match outcome {
        Ok(Reply::Stats(stats)) => usage(stats),
        Ok(Reply::Commands(commands)) => {
            let commands: Vec<Value> = commands.commands.iter().filter_map(command).collect();
            Some(json!({"sessionUpdate": "available_commands_update", "availableCommands": commands}))
        }
        Ok(reply) => reply.state().map(plan),
        Err(_) => None,
    }
}

fn plan(state: &SessionState) -> Value {
    json!({"sessionUpdate": "plan", "entries": entries(&state.todo_phases)})
}

/// The plan of a session that is opened. None if it has no todos.
pub(crate) fn stored_plan(state: &SessionState) -> Option<Value> {
    (!state.todo_phases.is_empty()).then(|| plan(state))
}

/// None while the tokens in the context are unknown.
fn usage(stats: &SessionStats) -> Option<Value> {
    let context = stats.context_usage.as_ref()?;
    Some(json!({
        "sessionUpdate": "usage_update",
        "used": context.tokens?,
        "size": context.context_window,
        "cost": {"amount": stats.cost, "currency": "USD"},
    }))
}

fn command(command: &Value) -> Option<Value> {
    let name = command.get("name").and_then(Value::as_str)?;
    let description = command.get("description").and_then(Value::as_str);
    Some(json!({"name": name, "description": description.unwrap_or_default()}))
}

fn entries(phases: &[TodoPhase]) -> Vec<Value> {
    let tasks = phases.iter().flat_map(|phase| &phase.tasks);
    // Abandoned items are no part of the plan any more.
    let tasks = tasks.filter(|task| task.status != TodoStatus::Abandoned);
    let entry =
        |status: &str, content: &str| json!({"content": content, "priority": "medium", "status": status});
    tasks
        .map(|task| entry(task.status.as_str(), &task.content))
        .collect()
}
