//! Background processes on the wire (docs/guides/background-processes.md).

use serde::{Deserialize, Serialize};

/// State of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ProcessStatus {
    /// It runs.
    Running,
    /// It ended by itself.
    Exited,
    /// It was killed.
    Killed,
}

/// A background process of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProcessInfo {
    /// Id in the session: `p1`, `p2`, ...
    pub process_id: String,
    /// The command line.
    pub command: String,
    /// Process id of the system.
    pub pid: u32,
    /// Whether it has a terminal.
    pub terminal: bool,
    /// Its state.
    pub status: ProcessStatus,
    /// Exit code. Absent while it runs, and if a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Bytes that it has printed.
    pub output_bytes: u64,
    /// When it started, in Unix milliseconds.
    pub started_at: i64,
    /// When it ended, in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
}

/// Response to `list_processes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessesReply {
    /// The processes, oldest first. Of ended ones, the newest 50 are kept.
    pub processes: Vec<ProcessInfo>,
    /// Whether the end of a process may wake the session when it is idle: the setting `processes.wake`, or what `set_process_wakeups` set.
    pub wakeups: bool,
}

/// Parameters of `read_process`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReadProcessParams {
    /// The process.
    #[serde(alias = "process_id")]
    pub process_id: String,
    /// Where to begin, in bytes since the start of the process: `nextByte` of the response before. Default: 0.
    #[serde(default, alias = "from_byte", skip_serializing_if = "Option::is_none")]
    pub from_byte: Option<u64>,
    /// Most bytes of the response. Default and maximum: 512 KiB.
    #[serde(default, alias = "max_bytes", skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Send the event `process_output` once, as soon as the process has printed more. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<bool>,
}

/// Response to `read_process`: a part of the output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProcessData {
    /// The process.
    pub process: ProcessInfo,
    /// Where the text begins.
    pub from_byte: u64,
    /// Where the next text begins.
    pub next_byte: u64,
    /// Bytes after the position that was asked for which are not kept any more.
    pub dropped_bytes: u64,
    /// The output as it is, escape sequences included. Bytes that are no UTF-8 are replaced.
    pub text: String,
}

/// Parameters of `write_process`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WriteProcessParams {
    /// The process.
    #[serde(alias = "process_id")]
    pub process_id: String,
    /// What to write to its input.
    pub data: String,
}

/// Parameters of `resize_process`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResizeProcessParams {
    /// The process, which must have a terminal.
    #[serde(alias = "process_id")]
    pub process_id: String,
    /// Characters of a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

/// Parameters of `kill_process`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct KillProcessParams {
    /// The process.
    #[serde(alias = "process_id")]
    pub process_id: String,
}
