//! The sentences with which a policy denies a call. The model reads them, and clients match on them.

use wire::state::PermissionMode;

/// A call that a rule forbids.
pub(crate) fn denied_by(rule: &str) -> String {
    format!("Permission denied: the rule {rule} forbids this call. Do not try to get around it.")
}

/// A command line that rules which forbid commands cannot look into.
pub(crate) const UNCLEAR_COMMAND: &str = "Permission denied: there are rules that forbid commands, and what this command line \
    runs cannot be seen in it. Write the commands out.";

/// A call that changes something in a session that must not.
pub(crate) fn read_only(tool: &str) -> String {
    if tool == "bash" {
        "Permission denied: this session is read-only, and only commands that are allowed by a rule may run."
            .to_owned()
    } else {
        format!("Permission denied: this session is read-only, {tool} may not be used.")
    }
}

/// What a mode forbids, for the system prompt; nothing in modes that forbid nothing by themselves.
pub(crate) fn mode_limit(mode: PermissionMode) -> Option<&'static str> {
    match mode {
        PermissionMode::Off | PermissionMode::Auto => None,
        PermissionMode::Ask => Some(
            "The user is asked before a call that does more than read, unless a rule allows it. Do not repeat a denied call in \
             another form.",
        ),
        PermissionMode::ReadOnly => Some(
            "This session is read-only: files cannot be changed, and only commands that are allowed by a rule may run.",
        ),
    }
}

/// The calls that rules deny, for the system prompt. `more` rules are not named.
pub(crate) fn deny_rules(rules: &[&str], more: usize) -> String {
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!(
        "The user's rules deny calls: {}{more}. Do not try to get around them.",
        rules.join(", ")
    )
}
