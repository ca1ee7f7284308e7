//! `--list-models [SEARCH] [--json]`: the usable models, those of local servers among them.

use std::process::ExitCode;

use models::{Registry, list_models, search_models};

use crate::environment::{complain, say, say_exactly};

/// Asks the local servers and prints the list.
pub(super) fn run(registry: &Registry, search: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    registry.look_for_local(None);
    for server in registry.local_servers().iter().filter(|server| server.wants_key) {
        let name = server.kind.map_or(server.id.as_str(), |kind| kind.name());
        complain(&format!(
            "Warning: the {name} server at {} lists its models only to those who have its key. {}",
            server.url,
            registry.no_key(&server.id),
        ));
    }
    if json {
        say_exactly(&serde_json::to_string(&search_models(registry, search))?);
    } else {
        say(&list_models(registry, search));
    }
    Ok(ExitCode::SUCCESS)
}
