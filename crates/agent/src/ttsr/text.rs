//! Texts about rules for the model.

use std::fmt::Write as _;
use std::sync::Arc;

use wire::Rule;

/// One block for each rule.
pub(super) fn injection(rules: &[Arc<Rule>]) -> String {
    let mut out = String::new();
    for rule in rules {
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        let Rule {
            name, path, content, ..
        } = rule.as_ref();
        let _infallible = write!(
            out,
            "<system-interrupt reason=\"rule\" rule=\"{name}\" path=\"{path}\">\nWhat you were writing goes against a rule \
             of this project. It was not the user who interrupted you. Follow the rule and go on with the task:\n\n{}\n\
             </system-interrupt>",
            content.trim()
        );
    }
    out
}
