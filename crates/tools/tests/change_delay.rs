//! When `edit` and `write` change a file: late enough for a client that reads it at `tool_execution_start`.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use pinion_tools::{StartLine, ToolContext, ToolOutcome, ToolRequest, Toolbox, ToolsConfig, limits};
use process::Reaper;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

fn toolbox() -> Toolbox {
    Toolbox::new(ToolsConfig::default(), Reaper::direct())
}

/// A line that is written once the sender has sent true.
#[derive(Debug)]
struct Line(watch::Receiver<bool>);

impl StartLine for Line {
    fn written(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut written = self.0.clone();
        Box::pin(async move { drop(written.wait_for(|written| *written).await) })
    }
}

async fn call(toolbox: &Toolbox, dir: &Path, name: &str, args: Value) -> ToolOutcome {
    call_after(toolbox, dir, name, args, None).await
}

async fn call_after(
    toolbox: &Toolbox,
    dir: &Path,
    name: &str,
    args: Value,
    start_line: Option<Arc<dyn StartLine>>,
) -> ToolOutcome {
    let request = ToolRequest {
        name: name.to_owned(),
        args: args.as_object().cloned().unwrap_or_default(),
    };
    let context = ToolContext {
        cwd: dir.to_path_buf(),
        start_line,
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

/// The clock stands still unless everything waits, so a call that counted from its own beginning would be over.
#[tokio::test(start_paused = true)]
async fn delay_counts_from_written_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a");
    std::fs::write(&file, "one").unwrap();
    let edits = json!({"path": "a", "edits": [{"oldText": "one", "newText": "two"}]});
    for (name, args, new) in [
        ("edit", edits, "two"),
        ("write", json!({"path": "a", "content": "three"}), "three"),
    ] {
        let old = std::fs::read_to_string(&file).unwrap();
        let (line, written) = watch::channel(false);
        let (toolbox, path) = (toolbox(), dir.path().to_path_buf());
        let call = tokio::spawn(async move {
            let line: Arc<dyn StartLine> = Arc::new(Line(written));
            call_after(&toolbox, &path, name, args, Some(line)).await
        });
        tokio::time::sleep(100 * limits::CHANGE_DELAY).await;
        assert!(!call.is_finished(), "{name}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), old, "{name}");
        let start = Instant::now();
        line.send(true).unwrap();
        assert!(!call.await.unwrap().is_error, "{name}");
        assert!(start.elapsed() >= limits::CHANGE_DELAY, "{name}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), new, "{name}");
    }
}
