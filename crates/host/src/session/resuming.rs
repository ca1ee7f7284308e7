//! `continue`: one more request after a run that died. Whether one did is decided in `pinion_core`.

use pinion_core::Input;
use wire::reply::Accepted;
use wire::table::Respond;

use crate::outbox::Responder;
use crate::strings;

use super::Session;
use super::prompting::started;

impl Session {
    pub(super) async fn resume(&mut self, responder: Responder<Accepted>) {
        let refusal = if !self.machine.is_idle() {
            Some(strings::CONTINUE_BUSY.to_owned())
        } else if !self.machine.can_continue() {
            Some(strings::NOTHING_TO_CONTINUE.to_owned())
        } else {
            self.check_model().err()
        };
        if let Some(refusal) = refusal {
            responder.refuse(refusal).await;
            return;
        }
        responder.respond(Ok(started())).await;
        self.hear();
        let full = self.context_is_full();
        self.drive(Input::Continue { full }).await;
    }
}
