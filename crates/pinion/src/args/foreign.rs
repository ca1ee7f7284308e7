//! Options of pi, oh-my-pi and xcsh that clients of these agents pass. Those without a meaning here are accepted without
//! effect. An option that restricts the agent is never accepted without effect: it is either implemented or an error.

use wire::state::PermissionMode;

use super::error::UsageError;
use super::flags::{Flag, switch, value};
use super::{Args, set};

const NO_EFFECT: &str = "No effect";
const SELECTS_DIALECT: &str = "Select the RPC dialect xcsh; no other effect";

/// Names that other agents' clients pass to `--tools`. Tools with these names do not exist here.
pub(crate) const FOREIGN_TOOLS: [&str; 20] = [
    "ask",
    "ast_edit",
    "ast_grep",
    "browser",
    "calc",
    "debug",
    "eval",
    "fetch",
    "glob",
    "job",
    "lsp",
    "notebook",
    "python",
    "report_finding",
    "search",
    "ssh",
    "task",
    "todo",
    "web_fetch",
    "web_search",
];

fn ignore(_: &mut Args, _: String) -> Result<(), UsageError> {
    Ok(())
}

/// oh-my-pi's `--approval-mode`. Its `write` asks for commands only, which `ask` covers.
fn set_approval_mode(args: &mut Args, value: String) -> Result<(), UsageError> {
    args.permission_mode = match value.as_str() {
        "always-ask" | "write" => Some(PermissionMode::Ask),
        "yolo" => Some(PermissionMode::Off),
        _ => {
            return Err(UsageError::InvalidValue {
                flag: "--approval-mode",
                value,
                wanted: "use always-ask, write or yolo".into(),
            });
        }
    };
    Ok(())
}

/// The options, in the order of the help text.
pub(super) const FOREIGN: &[Flag] = &[
    switch(
        &["--no-rules"],
        set::set_no_rules,
        "Do not load rules that watch answers",
    ),
    value(
        &["--provider-session-id"],
        "ID",
        set::set_provider_session,
        "Session id sent to the provider",
    ),
    value(
        &["--approval-mode"],
        "MODE",
        set_approval_mode,
        "always-ask and write: --permission-mode ask; yolo: off",
    ),
    switch(&["--no-title"], set::set_vendor, SELECTS_DIALECT),
    switch(&["--no-pty"], set::set_vendor, SELECTS_DIALECT),
    switch(&["--no-lsp"], set::set_vendor, SELECTS_DIALECT),
    switch(
        &["--no-ui"],
        set::set_no_ui,
        "With --mode rpc: ask the client nothing; dialogs return their default",
    ),
    value(&["--theme"], "PATH", ignore, NO_EFFECT),
    value(&["--use-theme"], "NAME", ignore, NO_EFFECT),
    value(&["--tui-mode"], "MODE", ignore, NO_EFFECT),
    value(&["--smol"], "MODEL", ignore, NO_EFFECT),
    value(&["--slow"], "MODEL", ignore, NO_EFFECT),
    switch(&["--no-themes"], |_| {}, NO_EFFECT),
    switch(&["--hide-thinking"], |_| {}, NO_EFFECT),
    switch(&["--allow-home"], |_| {}, NO_EFFECT),
    switch(&["--auto-approve", "--yolo"], |_| {}, NO_EFFECT),
];
