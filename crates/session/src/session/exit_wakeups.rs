//! Background processes that end by themselves may wake an idle session, if the user's settings or the host allow it: a run begins
//! with the news for the model. How often that may happen without a prompt is bounded, so that a model that starts the next process each
//! time cannot go on for ever.

use std::sync::Arc;

use wire::{CustomMessage, Message, UserContent};

use crate::strings;

use super::Session;
use super::clock::now_ms;
use super::tool_calls::Exits;

/// The type of the message that tells the model.
const MESSAGE: &str = "process_exit";

/// Begins a run if processes have ended that the model does not know of. The session is idle, and nothing waits.
pub(super) async fn wake(session: &mut Session) {
    let text = match session.tools.processes().take_exits() {
        Exits::None => return,
        Exits::TooMany(most) => {
            let notice = strings::too_many_wakeups(most);
            return session.outbox.notice("warning", notice).await;
        }
        Exits::Some(text) => text,
    };
    if let Err(reason) = session.check_model() {
        let notice = strings::not_woken(&reason);
        return session.outbox.notice("warning", notice).await;
    }
    let message = Message::Custom(CustomMessage {
        custom_type: MESSAGE.to_owned(),
        content: UserContent::Text(text),
        display: true,
        details: None,
        timestamp: now_ms(),
        extra: wire::Extra::default(),
    });
    session.begin_run(vec![Arc::new(message)]).await;
}
