//! Rules that watch answers: given to the machine before the first request of a branch. Finding them is the business of
//! `config::resources`, matching them that of `agent`.

use agent::Change;
use agent::ttsr::TtsrSettings;
use config::resources::Resources;
use store::SessionLog;
use wire::EntryBody;

/// The rules for the machine, and the problems of their files. Each problem is reported once.
pub(super) fn read(
    resources: &mut Resources,
    settings: TtsrSettings,
    log: &SessionLog,
) -> (Change, Vec<String>) {
    // Asked first, since the next line reads the files.
    let is_new = !resources.has_read_rules();
    let rules = resources.rules();
    let branch = log.branch(log.leaf_id());
    let told = branch.iter().flat_map(|entry| match &entry.body {
        EntryBody::TtsrInjection(body) => body.injected_rules.clone(),
        _ => Vec::new(),
    });
    let change = Change::Rules {
        rules,
        settings,
        told: told.collect(),
    };
    let problems = resources.rule_problems().iter().filter(|_| is_new);
    (change, problems.map(ToString::to_string).collect())
}
