//! Whether the project of a session is trusted: the answer for clients, and their decision. The source of the decision is the business of
//! `config::trust`.

use agent::LoopSettings;
use config::trust::{DecidedBy, ProjectAccess, held_back};
use wire::command::ProjectTrustParams;
use wire::reply::ProjectTrust;
use wire::state::{HeldBack, TrustState};

use crate::factory::Agent;

/// The trust in the project for `get_state`; `None` if nothing of the project is held back.
pub(super) fn state(agent: &Agent) -> Option<TrustState> {
    let held = held_back(&agent.project(), &agent.settings, agent.options.dialect.into());
    // The settings were read under an earlier decision. The new one counts from the next session or reload on.
    let pending = agent.decision().access != agent.settings.project;
    (!held.is_empty() || pending).then(|| TrustState {
        trusted: agent.settings.project == ProjectAccess::Full,
        decided_by: agent.settings.decided_by.word().to_owned(),
        held_back: held
            .into_iter()
            .map(|held| HeldBack {
                kind: held.kind.to_owned(),
                path: held.path.to_string_lossy().into_owned(),
                keys: held.keys,
            })
            .collect(),
        pending,
    })
}

/// The reply of `get_project_trust`.
pub(super) fn describe(agent: &Agent) -> ProjectTrust {
    ProjectTrust {
        cwd: agent.cwd.to_string_lossy().into_owned(),
        // This reply names the decision also if nothing is held back.
        project_trust: state(agent).unwrap_or_else(|| TrustState {
            trusted: agent.settings.project == ProjectAccess::Full,
            decided_by: agent.settings.decided_by.word().to_owned(),
            held_back: Vec::new(),
            pending: false,
        }),
    }
}

/// Notes the decision of a client. Loaded resources stay as they are until the next session or reload.
///
/// # Errors
/// When the decision cannot be stored.
pub(super) fn decide(agent: &Agent, params: ProjectTrustParams) -> Result<ProjectTrust, String> {
    let trust = &agent.trust;
    // Stored first: a client that gets an error must not find the decision in force.
    if params.remember {
        let stored = trust.file().set(&agent.cwd, params.trusted);
        stored.map_err(|problem| problem.to_string())?;
    }
    trust.set(&agent.cwd, params.trusted, DecidedBy::Client);
    Ok(describe(agent))
}

/// The loop settings after the settings of the agent changed: a setting that a client or an extension switched stays.
pub(super) fn follow(mut current: LoopSettings, before: LoopSettings, after: LoopSettings) -> LoopSettings {
    follow_one(
        &mut current.steering_mode,
        &before.steering_mode,
        after.steering_mode,
    );
    follow_one(
        &mut current.follow_up_mode,
        &before.follow_up_mode,
        after.follow_up_mode,
    );
    follow_one(
        &mut current.interrupt_mode,
        &before.interrupt_mode,
        after.interrupt_mode,
    );
    follow_one(&mut current.retry, &before.retry, after.retry);
    follow_one(&mut current.limits, &before.limits, after.limits);
    // `silent_answers`, `failures` and `results` depend on the dialect of the process alone, which no settings change.
    current
}

/// Sets a value that still is as the settings had it to what they say now.
pub(super) fn follow_one<T: PartialEq>(current: &mut T, before: &T, after: T) {
    if current == before {
        *current = after;
    }
}
