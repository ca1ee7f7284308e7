//! `-p` and `--mode json` refuse to run when something named a model, provider, key or server and none of it can be used:
//! the offline model's answer would look like an answer of the model that was meant.

use std::sync::Arc;

use anyhow::bail;
use models::{Registry, StartRequest, default_problem, scope, unusable};
use session::Session;
use session::extensions::{has_extensions, with_extension_models};

use crate::args::Args;
use crate::setup::Setup;

/// Provider id of the models that need no configuration.
pub(super) const OFFLINE: &str = "offline";

/// Checks the model that was chosen for a new session.
///
/// # Errors
/// A list of the named models, providers, keys and servers that cannot be used, with reason and solution.
pub(super) async fn check(args: &Args, setup: &Setup, session: &Session) -> anyhow::Result<()> {
    // What these name has been found, or an extension brings it.
    if args.model.is_some() || args.provider.is_some() || args.replay.is_some() {
        return Ok(());
    }
    let agent = &setup.agent;
    let request = &agent.options.start;
    let resumed = !args.no_session
        && (args.session.is_some() || args.fork.is_some() || args.continue_latest || args.resume);
    let is_offline = session.model().provider == OFFLINE;
    if !is_offline && (resumed || problem(&agent.registry, request).is_none()) {
        return Ok(());
    }
    let registry = if has_extensions(agent) {
        with_extension_models(agent).await.0
    } else {
        Arc::clone(&agent.registry)
    };
    if !is_offline {
        return match problem(&registry, request) {
            Some(problem) => bail!("{problem}"),
            None => Ok(()),
        };
    }
    if registry.models().iter().any(|model| model.provider != OFFLINE) {
        return Ok(());
    }
    let named = unusable(&registry, request);
    if named.is_empty() {
        return Ok(());
    }
    let list: String = named.iter().map(|reason| format!("- {reason}\n")).collect();
    bail!("No model can be used.\n{list}Check the configuration with: pinion doctor")
}

/// Says why another model answers than the scope or the settings name.
fn problem(registry: &Registry, request: &StartRequest) -> Option<String> {
    if request.models.is_empty() {
        return default_problem(registry, request);
    }
    let (usable, _) = scope(registry, &request.models, request.newest_patterns);
    usable.is_empty().then(|| {
        let list = request.models.join(", ");
        format!(
            "No usable model matches {list} (--models, or enabledModels in the settings). List the models: pinion \
             --list-models"
        )
    })
}
