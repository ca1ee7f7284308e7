//! The sentences with which a policy denies a call. The model reads them, and clients match on them.

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
