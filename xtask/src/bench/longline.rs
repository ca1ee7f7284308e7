//! An input line longer than any limit: how soon it is refused, and what memory that takes.

use std::io::Write as _;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::limits::{LONG_LINE, LONG_LINE_MB, LONG_LINE_MS, RUNS};
use super::report::Row;
use super::runner::{Stage, mb};
use super::subject::Subject;

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let mut line = br#"{"id":"long","type":"get_state","padding":""#.to_vec();
    line.resize(LONG_LINE, b'x');
    line.extend_from_slice(b"\"}\n{\"id\":\"after\",\"type\":\"get_state\"}\n");
    let (mut walls, mut peaks, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    let stage = Stage::new()?;
    for _ in 0..RUNS {
        let mut agent = stage.start(subject)?;
        agent.call("get_state", None)?;
        let mut pipe = agent.stdin.take().context("no stdin")?;
        let started = Instant::now();
        let (first, after, written) = thread::scope(|scope| {
            let writer = scope.spawn(|| pipe.write_all(&line));
            let first = agent.wait(|head| head.kind() == "response");
            let answered = first.as_ref().is_ok_and(|head| head.answers("after"));
            let after = if answered {
                None
            } else {
                Some(agent.wait(|head| head.answers("after")))
            };
            (first, after, writer.join())
        });
        let first = first?;
        let end = after.transpose()?.map_or(first.at, |head| head.at);
        ensure!(matches!(written, Ok(Ok(()))), "the line could not be written");
        answers.push(first.text.contains(r#""success":false"#));
        walls.push(end.duration_since(started).as_secs_f64() * 1e3);
        peaks.push(mb(agent.usage().peak_all));
    }
    let refused = if answers.iter().all(|refused| *refused) {
        "refused"
    } else {
        "NOT refused"
    };
    Ok(vec![
        Row::new(
            "longline",
            "64 MiB line until the next one is answered",
            "ms",
            walls,
        )
        .at_most(LONG_LINE_MS)
        .note(refused),
        Row::new("longline", "most memory (limit 32 MiB + 20 MB)", "MB", peaks).at_most(LONG_LINE_MB),
    ])
}
