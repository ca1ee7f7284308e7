//! Runs the blocks that are marked `sh,run` or `bash,run`: each in an empty directory with a home of its own, with the agent as `pinion` on
//! `PATH`. A block fails when it ends with an error or takes longer than [`LONGEST`].

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::Report;
use super::page::{Block, Page};

/// Longest time of a block.
const LONGEST: Duration = Duration::from_secs(120);

pub(super) fn check(pages: &[Page], agent: &Path, report: &mut Report) -> Result<()> {
    for page in pages {
        let blocks = page.blocks.iter().filter(|block| block.has("run"));
        for block in blocks.filter(|block| matches!(block.language.as_str(), "sh" | "bash")) {
            report.count("run");
            if let Err(why) = run(block, agent)? {
                report.wrong.push(format!("{}: {why}", page.place(block.line)));
            }
        }
    }
    Ok(())
}

fn run(block: &Block, agent: &Path) -> Result<std::result::Result<(), String>> {
    let place = tempfile::tempdir().context("no temporary directory")?;
    let [home, bin, work] = ["home", "bin", "work"].map(|name| place.path().join(name));
    for folder in [&home, &bin, &work] {
        fs::create_dir(folder)?;
    }
    symlink(agent, bin.join("pinion"))?;
    let log = place.path().join("log");
    let output = fs::File::create(&log)?;
    let path = std::env::var("PATH").unwrap_or_default();
    let mut child = Command::new(&block.language)
        .args(["-eu", "-c", &block.text])
        .current_dir(&work)
        .env("HOME", &home)
        .env("PATH", format!("{}:{path}", bin.display()))
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("cannot run {}", block.language))?;
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() > LONGEST {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let words = fs::read_to_string(&log).unwrap_or_default();
    Ok(match status {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("the block ends with {status}\n{}", words.trim_end())),
        None => Err(format!(
            "the block runs longer than {LONGEST:?}\n{}",
            words.trim_end()
        )),
    })
}
