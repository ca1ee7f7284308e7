//! The reply of `get_state`. Clients of today's oh-my-pi also show what the model gets before the conversation.

use wire::omp::StateWithPrompt;
use wire::state::SessionState;
use wire::table::Respond;
use wire::{Reply, SessionRule};

use crate::outbox::Responder;

use super::driver::Driver;

/// Replies with the state of the session.
pub(super) async fn respond(driver: &mut Driver, responder: Responder<SessionState>) {
    let state = driver.core.state();
    if !driver.core.follows(SessionRule::ShowsPrompt) {
        return responder.respond(Ok(state)).await;
    }
    // An extension may have replaced the prompt for the active run.
    let replaced = driver.extensions.prompt().map(str::to_owned);
    let system_prompt = replaced.unwrap_or_else(|| driver.core.system_prompt());
    let state = StateWithPrompt {
        state,
        system_prompt: vec![system_prompt],
        dump_tools: driver.core.tools.specs(),
    };
    responder
        .taking(|outcome: Result<StateWithPrompt, String>| outcome.map(Reply::from))
        .respond(Ok(state))
        .await;
}
