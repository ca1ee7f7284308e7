//! Measures what the store costs: `cargo run --release -p pinion-store --example measure -- list SESSIONS-ROOT`, `open FILE` or
//! `append FILE`. Prints wall and CPU time and memory; a file given to `append` is copied first.
#![expect(clippy::print_stderr, reason = "a program for a terminal")]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use pinion_store::{Listing, SessionLog, StoreError, list_all, load_texts, open_deferred};
use wire::{EntryBody, Message};

/// A line of `/proc/self/status`.
fn status(name: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    line.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .unwrap_or_default()
}

/// CPU time of the main thread so far, in milliseconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let spent = stat.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    spent.unwrap_or_default() / 1e6
}

/// Says what some work cost, and gives its result.
fn measured<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (time, before) = (Instant::now(), cpu());
    let result = work();
    let (wall, spent, peak) = (time.elapsed(), cpu() - before, status("VmHWM"));
    eprintln!("{what:<24} {wall:>10.1?}  main thread {spent:>7.1} ms CPU  {peak}");
    result
}

fn listing(root: &Path) -> Result<(), StoreError> {
    let cache = std::env::temp_dir().join(format!("pinion-measure-{}", std::process::id()));
    for _ in 0..3 {
        measured("list, no cache", || list_all(root, Listing::Plain))?;
        drop(std::fs::remove_file(&cache));
        let cold = measured("list, cache to be made", || {
            list_all(root, Listing::Cached(&cache))
        })?;
        let warm = measured("list, cached", || list_all(root, Listing::Cached(&cache)))?;
        measured("list with texts", || list_all(root, Listing::WithTexts))?;
        eprintln!("{} sessions, the same: {}", warm.len(), warm == cold);
    }
    drop(std::fs::remove_file(&cache));
    Ok(())
}

fn opening(file: &Path) -> Result<(), StoreError> {
    for _ in 0..3 {
        let mut log = measured("open without texts", || open_deferred(file, "/", true))?;
        measured("read texts", || load_texts(&mut log))?;
        drop(log);
        let (log, damage) = measured("open", || SessionLog::open(file, "/"))?;
        let context = measured("context", || log.context(log.leaf_id()));
        let json = measured("to JSON", || serde_json::to_vec(&context.messages))?;
        eprintln!("{} entries, {} bytes, {damage}", log.entries().len(), json.len());
    }
    Ok(())
}

fn appending(file: &Path) -> Result<(), StoreError> {
    let copy = std::env::temp_dir().join(format!("pinion-measure-{}.jsonl", std::process::id()));
    std::fs::copy(file, &copy).map_err(|source| StoreError::Io {
        action: "cannot copy",
        path: file.to_path_buf(),
        source,
    })?;
    let (mut log, _) = SessionLog::open(&copy, "/")?;
    for _ in 0..3 {
        measured("1000 appends", || {
            (0..1000).try_for_each(|n| {
                let body = EntryBody::message(Arc::new(Message::user("a".repeat(400), n)));
                log.append(body).map(drop)
            })
        })?;
    }
    eprintln!("{} entries", log.entries().len());
    drop(std::fs::remove_file(&copy));
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["list", root] => listing(Path::new(root)),
        ["open", file] => opening(Path::new(file)),
        ["append", file] => appending(Path::new(file)),
        _ => {
            eprintln!("usage: measure list SESSIONS-ROOT | open FILE | append FILE");
            return ExitCode::FAILURE;
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
