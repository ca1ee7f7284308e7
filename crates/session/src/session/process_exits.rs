//! Runs that begin because background processes have ended, if the host allows that.

use std::sync::Arc;

use wire::{CustomMessage, Message, UserContent};

use crate::strings;

use super::clock::now_ms;
use super::driver::Driver;
use super::extension_models::check_model;
use super::prompt_delivery::begin_run;
use super::tool_calls::Exits;

/// The type of the message with which the model hears of ended processes.
const EXIT_MESSAGE: &str = "process_exit";

/// Begins a run if processes have ended that the model does not know of. The session is idle, and nothing waits.
pub(super) async fn wake(driver: &mut Driver) {
    let ended = match driver.core.tools.processes().take_exits() {
        Exits::None => return,
        Exits::TooMany(most) => {
            let notice = strings::too_many_wakeups(most);
            return driver.core.outbox.notice("warning", notice).await;
        }
        Exits::Some(ended) => ended,
    };
    // As for a prompt: limits, missing credentials and texts that cannot be read also keep this run from beginning.
    let texts = driver.core.load_texts().await;
    if let Err(reason) = texts.and_then(|()| check_model(driver)) {
        let notice = strings::not_woken(&reason);
        return driver.core.outbox.notice("warning", notice).await;
    }
    // Not a user message, since the user has not said it.
    let message = Message::Custom(CustomMessage {
        custom_type: EXIT_MESSAGE.to_owned(),
        // Only now: output that no run brings to the model stays unread for it.
        content: UserContent::Text(ended.into_text()),
        display: true,
        details: None,
        timestamp: now_ms(),
        extra: wire::Extra::default(),
    });
    begin_run(driver, vec![Arc::new(message)]).await;
}
