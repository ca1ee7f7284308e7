//! When `edit` and `write` change a file: late enough for a client that reads it at `tool_execution_start`.

use std::time::Duration;

use pinion_tools::{ToolContext, ToolOutcome, ToolRequest, Toolbox, ToolsConfig, limits};
use process::Reaper;
use serde_json::json;
use tokio::time::Instant;

fn toolbox() -> Toolbox {
    Toolbox::new(ToolsConfig::default(), Reaper::direct())
}

async fn call(toolbox: &Toolbox, dir: &std::path::Path, name: &str, args: serde_json::Value) -> ToolOutcome {
    let request = ToolRequest {
        name: name.to_owned(),
        args: args.as_object().cloned().unwrap_or_default(),
    };
    let context = ToolContext {
        cwd: dir.to_path_buf(),
        ..ToolContext::default()
    };
    toolbox.run(request, context).await
}

#[tokio::test(start_paused = true)]
async fn changes_wait_for_reading_clients() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = toolbox();
    let edits = json!({"path": "a", "edits": [{"oldText": "one", "newText": "two"}]});
    for (name, args) in [("write", json!({"path": "a", "content": "one"})), ("edit", edits)] {
        let start = Instant::now();
        assert!(!call(&toolbox, dir.path(), name, args).await.is_error);
        assert!(start.elapsed() >= Duration::from_millis(5), "{name}");
    }
    assert_eq!(std::fs::read_to_string(dir.path().join("a")).unwrap(), "two");
}

#[tokio::test(start_paused = true)]
async fn parallel_changes_share_delay_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let toolbox = toolbox();
    let start = Instant::now();
    let writes = (0..50).map(|n| {
        let args = json!({"path": "a", "content": n.to_string()});
        let (toolbox, dir) = (toolbox.clone(), dir.path().to_path_buf());
        tokio::spawn(async move { call(&toolbox, &dir, "write", args).await })
    });
    for write in writes.collect::<Vec<_>>() {
        assert!(!write.await.unwrap().is_error);
    }
    assert!(
        start.elapsed() < 2 * limits::CHANGE_DELAY,
        "{:?}",
        start.elapsed()
    );
    assert_eq!(std::fs::read_to_string(dir.path().join("a")).unwrap(), "49");
}
