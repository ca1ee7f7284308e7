//! What a process holds: memory, open files, threads and children, from `/proc`.

use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::bench::meter;

/// What the process holds at a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    /// Resident memory of the program itself, bytes.
    pub(super) resident: u64,
    /// Open file descriptors.
    pub(super) files: u64,
    /// Threads.
    pub(super) threads: u64,
    /// Living descendants: guardian, extension, MCP servers, tools.
    pub(super) children: u64,
    /// Seconds since the soak began.
    pub(super) seconds: f64,
}

/// Resources of the process while it is idle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    /// Prompts answered up to then.
    pub(super) prompts: u64,
    pub(super) sample: Sample,
}

impl Rest {
    /// For the report.
    pub(super) fn line(&self) -> String {
        let Sample {
            resident,
            files,
            threads,
            children,
            ..
        } = self.sample;
        format!(
            "soak: at rest after {} prompts: {} kB resident, {files} open files, {threads} threads, {children} children",
            self.prompts,
            resident / 1000
        )
    }
}

/// Measures a process.
///
/// # Errors
/// When it has ended.
pub(super) fn sample(pid: u32, begun: Instant) -> Result<Sample> {
    let count = |folder: &str| -> Result<u64> {
        let entries = std::fs::read_dir(format!("/proc/{pid}/{folder}"))
            .with_context(|| format!("the agent has ended, or /proc/{pid}/{folder} may not be read"))?;
        Ok(u64::try_from(entries.count())?)
    };
    let usage = meter::usage(pid);
    Ok(Sample {
        resident: usage.resident,
        files: count("fd")?,
        threads: count("task")?,
        children: u64::try_from(meter::tree(pid).len())?.saturating_sub(1),
        seconds: begun.elapsed().as_secs_f64(),
    })
}
