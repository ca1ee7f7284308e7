//! What checkpoints cost: how much longer turns that change a file take with them.

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::llm::Reply;

use super::limits::{LONG_RUNS, UNDO_BYTES, UNDO_MS, UNDO_TURNS};
use super::report::{Row, median};
use super::runner::{Runner, Stage};
use super::subject::Subject;
use super::tools::gap;

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let files = subject.with(&["--checkpoints", "files"]);
    let worktree = subject.with(&["--checkpoints", "worktree"]);
    let (mut plain, mut copies, mut trees) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..LONG_RUNS {
        let without = turn(subject)?;
        copies.push(turn(&files)? - without);
        trees.push(turn(&worktree)? - without);
        plain.push(without);
    }
    let title = format!(
        "a turn that edits a file of {} KB, without checkpoints",
        UNDO_BYTES / 1_000
    );
    Ok(vec![
        Row::new("undo", &title, "ms", plain),
        Row::new("undo", "the same with `files`: more", "ms", copies)
            .at_most(UNDO_MS)
            .note("medians of turns as the server sees them"),
        Row::new("undo", "the same with `worktree`: more", "ms", trees)
            .at_most(UNDO_MS)
            .note("medians of turns as the server sees them"),
    ])
}

/// The median time of a turn, ms.
fn turn(subject: &Subject) -> Result<f64> {
    let stage = Stage::new()?;
    let mut agent = stage.start(subject)?;
    agent.warm_up(&stage)?;
    let file = stage.workspace.cwd().join("file.txt");
    std::fs::write(
        &file,
        format!("turn 0\n{}", "line of text\n".repeat(UNDO_BYTES / 13)),
    )?;
    let begin = stage.server.requests().len();
    for turn in 0..UNDO_TURNS {
        let (old, new) = (format!("turn {turn}\n"), format!("turn {}\n", turn + 1));
        let edits = json!([{"oldText": old, "newText": new}]);
        let call = json!({"path": "file.txt", "edits": edits});
        stage
            .server
            .push(Reply::tool(format!("call_{turn}"), "edit", call));
    }
    stage.server.push(Reply::text(["done"]));
    Runner::prompt(&mut agent)?;
    let text = std::fs::read_to_string(&file)?;
    ensure!(
        text.starts_with(&format!("turn {UNDO_TURNS}\n")),
        "the file was not edited"
    );
    let log = stage.server.requests();
    let gaps: Vec<f64> = log
        .get(begin..)
        .unwrap_or_default()
        .windows(2)
        .filter_map(|pair| gap(pair.first()?, pair.last()?))
        .collect();
    ensure!(gaps.len() == UNDO_TURNS, "{} turns", gaps.len());
    Ok(median(&gaps))
}
