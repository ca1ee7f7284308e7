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

/// oh-my-pi's `--approval-mode`. Its `write` asks for commands only, which `ask` covers. Rules hold in its `yolo`, too.
fn set_approval_mode(args: &mut Args, value: String) -> Result<(), UsageError> {
    args.permission_mode = match value.as_str() {
        "always-ask" | "write" => Some(PermissionMode::Ask),
        "yolo" => Some(PermissionMode::Auto),
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

/// As in oh-my-pi, an empty text is the same as no option.
fn set_cwd(args: &mut Args, value: String) -> Result<(), UsageError> {
    args.foreign.cwd = Some(value).filter(|dir| !dir.is_empty());
    Ok(())
}

/// Options of oh-my-pi that are errors here, and what to do in their place. They are no options of ours, since extensions may declare
/// options of these names.
const REFUSED: [(&str, &str); 19] = [
    (
        "--add-dir",
        "Pinion has one working directory. The setting sandbox.writable opens others to sandboxed commands",
    ),
    ("--advisor", NOT_HERE),
    ("--alias", NOT_HERE),
    (
        "--config",
        "Settings are in settings.json of the agent directory; PI_CODING_AGENT_DIR selects another one",
    ),
    ("--external-thinking", NOT_HERE),
    ("--from-claude", NOT_HERE),
    ("--from-codex", NOT_HERE),
    (
        "--plan",
        "Pinion has no plan mode; --permission-mode read-only denies changes",
    ),
    ("--plan-yolo", NOT_HERE),
    ("--plan-yolo-into", NOT_HERE),
    (
        "--plugin-dir",
        "Name its parts with --extension, --skill and --prompt-template",
    ),
    ("--prewalk", NOT_HERE),
    ("--prewalk-into", NOT_HERE),
    (
        "--print-thoughts",
        "Use --mode json, whose events contain the reasoning",
    ),
    (
        "--profile",
        "Set PI_CODING_AGENT_DIR to the agent directory of the profile: ~/.omp/profiles/NAME/agent",
    ),
    ("--prompt-cache-key", "Use --provider-session-id"),
    ("--service-tier", "Pinion has no service tiers"),
    ("--skills", "Name the skills one by one: --no-skills --skill PATH"),
    (
        "--trusted-extension",
        "Use --no-extensions --extension PATH, which loads no other extension",
    ),
];
const NOT_HERE: &str = "Leave it out: Pinion does not have this feature of oh-my-pi";

/// What to do in the place of an option that only oh-my-pi has.
pub(super) fn instead_of(option: &str) -> Option<&'static str> {
    let found = REFUSED.iter().find(|(name, _)| *name == option);
    found.map(|(_, instead)| *instead)
}

/// The options, in the order of the help text.
pub(super) const FOREIGN: &[Flag] = &[
    value(
        &["--cwd"],
        "DIR",
        set_cwd,
        "Work in this directory, as if started there",
    ),
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
        "always-ask and write: --permission-mode ask; yolo: auto",
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
    switch(&["--no-prewalk"], |_| {}, NO_EFFECT),
    switch(&["--hide-thinking"], |_| {}, NO_EFFECT),
    switch(&["--allow-home"], |_| {}, NO_EFFECT),
    switch(&["--auto-approve", "--yolo"], |_| {}, NO_EFFECT),
];
