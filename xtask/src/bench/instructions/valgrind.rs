//! Counting with valgrind: the command line, the number in its log, and the names of what influences it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::super::subject::Subject;

/// Valgrind's name and version; `None` if it cannot be run.
pub(super) fn version() -> Option<String> {
    first_line("valgrind", &["--version"]).ok()
}

/// The things that counts depend on, apart from the code: valgrind, compiler, C library, CPU model.
pub(super) fn environment(valgrind: &str) -> Result<String> {
    let cpu = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown CPU", |(_, model)| model.trim());
    Ok(format!(
        "{valgrind}; {}; {}; {model}",
        first_line("rustc", &["--version"])?,
        first_line("ldd", &["--version"])?
    ))
}

fn first_line(program: &str, args: &[&str]) -> Result<String> {
    let out = Command::new(program).args(args).output()?;
    if !out.status.success() {
        bail!("{program} {} failed", args.join(" "));
    }
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Words in front of a program that make valgrind count it. Each process writes a log of its own; programs that it starts are not
/// counted.
fn prefix(logs: &Path) -> Vec<String> {
    vec![
        "--tool=cachegrind".to_owned(),
        "--cache-sim=no".to_owned(),
        "--cachegrind-out-file=/dev/null".to_owned(),
        format!("--log-file={}/%p", logs.display()),
    ]
}

/// Compiles the library that lets the agent start its own program (see `own_program.c`).
fn own_program(folder: &Path) -> Result<PathBuf> {
    let (source, library) = (folder.join("own_program.c"), folder.join("own_program.so"));
    std::fs::write(&source, include_str!("own_program.c"))?;
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .status()
        .context("cannot run the C compiler cc")?;
    if !built.success() {
        bail!("cc could not compile own_program.c");
    }
    Ok(library)
}

/// The agent below valgrind; `env` sets what the library needs.
pub(super) fn subject(agent: &Path, logs: &Path) -> Result<Subject> {
    let mut subject = Subject::ours(PathBuf::from("env"));
    let mut args = vec![
        format!("LD_PRELOAD={}", own_program(logs)?.display()),
        format!("PINION_COUNTED={}", agent.display()),
        "valgrind".to_owned(),
    ];
    args.extend(prefix(logs));
    args.push(agent.display().to_string());
    args.append(&mut subject.args);
    subject.args = args;
    Ok(subject)
}

/// Instructions of any program that ends by itself.
#[cfg(test)]
pub(super) fn of_program(program: &str, args: &[&str]) -> Result<u64> {
    let logs = tempfile::tempdir()?;
    let mut child = Command::new("valgrind")
        .args(prefix(logs.path()))
        .arg(program)
        .args(args)
        .spawn()?;
    if !child.wait()?.success() {
        bail!("{program} failed");
    }
    count(logs.path(), child.id())
}

/// The count in the log of an ended process.
pub(super) fn count(logs: &Path, process: u32) -> Result<u64> {
    let log = std::fs::read_to_string(logs.join(process.to_string()))
        .with_context(|| format!("valgrind has no log of process {process}"))?;
    parse(&log).with_context(|| format!("valgrind counted nothing: {log}"))
}

/// The number of a line like `==7== I   refs:      3,872,733`.
pub(super) fn parse(log: &str) -> Option<u64> {
    let (_, rest) = log.lines().find_map(|line| line.split_once("refs:"))?;
    rest.trim().replace(',', "").parse().ok()
}
