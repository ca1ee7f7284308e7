//! The recorded session: every command that works without faults and dialogs, in a sensible order.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};
use testkit::workspace::Workspace;

use super::{PATIENCE, Stage};

/// Files and settings of the session.
pub(super) fn furnish(workspace: &Workspace) -> Result<()> {
    workspace.write("Cargo.toml", "[package]\nname = \"gears\"\n")?;
    workspace.write(
        workspace.agent_dir().join("prompts/fix.md"),
        "---\ndescription: Fix a file\n---\nFix $1.\n",
    )?;
    workspace.write_settings(&json!({
        "retry": {"baseDelayMs": 10, "provider": {"maxRetries": 0}},
        "compaction": {"keepRecentTokens": 1},
    }))?;
    Ok(())
}

/// Plays it.
pub(super) fn play(stage: &mut Stage<'_>) -> Result<()> {
    connection(stage)?;
    conversation(stage)?;
    settings(stage)?;
    queues(stage)?;
    trouble(stage)?;
    tree(stage)?;
    sessions(stage)
}

fn connection(stage: &mut Stage<'_>) -> Result<()> {
    stage.get("get_protocol")?;
    stage.ask(json!({"type": "hello", "dialect": "pi", "heartbeat": 30, "deltas": false, "events": null}))?;
    Ok(())
}

/// Each block comes in one piece: pieces that arrive together would be merged, now so, now so.
fn conversation(stage: &mut Stage<'_>) -> Result<()> {
    let look = Reply::new()
        .thinking(["The manifest says it."], "c2lnbmVk")
        .then_text(["I look at the manifest."])
        .tool_chunks("toolu_01", "read", ["{\"path\": \"Cargo.toml\"}"]);
    stage.server.push(look);
    stage.server.push(Reply::text(["The crate is called gears."]));
    stage.run(json!({"type": "prompt", "message": "What is the crate called?"}))?;
    for kind in [
        "get_state",
        "get_messages",
        "get_last_assistant_text",
        "get_context_usage",
        "get_commands",
    ] {
        stage.get(kind)?;
    }
    stage.ask(json!({"type": "get_session_stats", "byModel": true}))?;
    stage.ask(json!({"type": "bash", "command": "echo hello", "excludeFromContext": true}))?;
    stage.ask(json!({"type": "set_session_name", "name": "Gears"}))?;
    stage.ask(json!({"type": "export_html", "outputPath": "session.html"}))?;
    Ok(())
}

fn settings(stage: &mut Stage<'_>) -> Result<()> {
    stage.get("get_available_models")?;
    stage.ask(json!({"type": "set_model", "provider": "mock-anthropic", "modelId": "claude-mock"}))?;
    stage.get("cycle_model")?;
    stage.ask(json!({"type": "set_model", "provider": "mock-anthropic", "modelId": "claude-mock"}))?;
    stage.get("get_available_thinking_levels")?;
    stage.ask(json!({"type": "set_thinking_level", "level": "high"}))?;
    stage.get("cycle_thinking_level")?;
    stage.ask(json!({"type": "set_steering_mode", "mode": "all"}))?;
    stage.ask(json!({"type": "set_follow_up_mode", "mode": "one-at-a-time"}))?;
    stage.ask(json!({"type": "set_interrupt_mode", "mode": "wait"}))?;
    stage.ask(json!({"type": "set_auto_compaction", "enabled": true}))?;
    stage.ask(json!({"type": "set_auto_retry", "enabled": true}))?;
    Ok(())
}

fn queues(stage: &mut Stage<'_>) -> Result<()> {
    stage.ask(json!({"type": "steer", "message": "Look at the tests, too."}))?;
    stage.ask(json!({"type": "follow_up", "message": "Then run them."}))?;
    let queue = stage.get("get_queue")?;
    let id = |at: &str| queue.pointer(at).cloned().context("nothing is queued");
    stage.ask(
        json!({"type": "edit_queued", "queuedId": id("/items/1/id")?, "message": "Then run all of them."}),
    )?;
    stage.ask(json!({"type": "remove_queued", "queuedId": id("/items/0/id")?}))?;
    stage.get("clear_queue")?;
    Ok(())
}

fn trouble(stage: &mut Stage<'_>) -> Result<()> {
    stage.server.push(Reply::error(ErrorKind::Overloaded));
    stage.server.push(Reply::text(["Better now."]));
    stage.run(json!({"type": "prompt", "message": "Are you there?"}))?;
    stage.server.push(Reply::error(ErrorKind::Auth));
    stage.run(json!({"type": "prompt", "message": "Still?"}))?;
    stage.server.push(Reply::text(["Here again."]));
    stage.run(json!({"type": "continue"}))?;
    stage.get("abort_retry")?;
    stage.get("abort_bash")?;
    stage.get("abort")?;
    stage.server.push(Reply::text(["At once."]));
    stage.run(json!({"type": "abort_and_prompt", "message": "Drop that."}))?;
    // One summary of what came before the turn that is cut, one of its beginning.
    for summary in [
        "## Goal\nFind the name of the crate.",
        "The user said to drop it.",
    ] {
        stage.server.push(Reply::text([summary]));
    }
    // A compaction is no run: it is over when it is answered.
    stage.ask(json!({"type": "compact", "customInstructions": "Keep the names of files."}))?;
    Ok(())
}

fn tree(stage: &mut Stage<'_>) -> Result<()> {
    let users = stage.get("get_fork_messages")?;
    stage.get("get_branch_messages")?;
    let last = last_of(&users, "messages", "entryId")?;
    stage.ask(json!({"type": "get_entries", "since": last}))?;
    stage.ask(json!({"type": "set_entry_label", "targetId": last, "label": "before the rewrite"}))?;
    stage.ask(json!({"type": "navigate_tree", "targetId": last}))?;
    stage.ask(json!({"type": "get_tree"}))?;
    Ok(())
}

fn sessions(stage: &mut Stage<'_>) -> Result<()> {
    stage.ask(json!({"type": "list_sessions", "scope": "cwd"}))?;
    let state = stage.get("get_state")?;
    let first = state.get("sessionFile").cloned().context("no session file")?;
    let users = stage.get("get_fork_messages")?;
    let last = last_of(&users, "messages", "entryId")?;
    stage.ask(json!({"type": "fork", "entryId": last}))?;
    stage.ask(json!({"type": "switch_session", "sessionPath": first}))?;
    stage.ask(json!({"type": "branch", "entryId": last}))?;
    stage.get("clone")?;
    stage.ask(json!({"type": "new_session", "parentSession": first}))?;
    stage.ask(json!({"type": "hello", "deltas": true, "sequence": true}))?;
    stage.server.push(Reply::text(["Bye."]));
    stage.run(json!({"type": "prompt", "message": "Goodbye"}))?;
    let seen = stage.agent.totals();
    stage.ask(json!({"type": "replay", "after": 9}))?;
    // The events that come again are the end of the output; nothing may be cut off.
    stage.get("get_context_usage")?;
    anyhow::ensure!(stage.agent.totals().0 > seen.0, "nothing came again");
    let _quiet = stage
        .agent
        .wait_quiet(std::time::Duration::from_millis(50), PATIENCE);
    Ok(())
}

fn last_of(data: &Value, list: &str, key: &str) -> Result<Value> {
    let items = data.get(list).and_then(Value::as_array);
    let last = items.and_then(|items| items.last());
    last.and_then(|item| item.get(key))
        .cloned()
        .with_context(|| format!("no {list} in {data}"))
}
