//! Frames of the client: answers to dialogs, and to requests of client tools.

use pinion_core::Input;
use wire::Response;
use wire::hosted::Frame;

use crate::outbox::ClientId;

use super::Session;
use super::tool_calls::CallNews;

impl Session {
    /// Takes an answer. One to a question that is not open (any more) is ignored.
    pub(super) async fn on_frame(&mut self, frame: Frame) {
        if let Frame::UiResponse(response) = &frame {
            return self.dialogs.answered(response);
        }
        match self.client_tools.answer(frame) {
            // What the client sends next may depend on what follows from its answer.
            Ok(Some(slot)) => {
                let report = self.calls.settle(slot).await;
                if let Some((slot, CallNews::Input(input))) =
                    report.and_then(|report| self.calls.accept(report))
                {
                    self.drive(Input::Tool(slot, input)).await;
                }
            }
            Ok(None) => {}
            Err(error) => self.complain(error).await,
        }
    }

    /// A frame cannot be used. There is no command to answer, so the client gets what it gets for a line that cannot be read.
    async fn complain(&self, error: String) {
        let response = Response {
            id: None,
            command: Some("parse".into()),
            outcome: Err(error),
        };
        let _gone = self.outbox.response(ClientId::default(), response).await;
    }
}
