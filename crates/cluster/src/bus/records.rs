//! Records of commands and calls: a worker notes that it begins a command before the agent gets it, and stores the response before clients
//! can see it. So a command that arrives twice is not run twice.

use std::time::Instant;

use store::{SessionId, StoreError};

use super::{Bus, Fault, Publication, Until};

/// What a record says before the response.
const BEGUN: &[u8] = b"begun";

/// The state of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// Noted now for the first time; the sequence is the fence for its response.
    New(u64),
    /// Begun before, without a response; with the sequence of that note.
    Before(u64),
    /// Answered before, with this response.
    Answered(String),
}

/// Commands that are not recorded: they change nothing, so that they can run again.
pub(crate) const RECORDED: fn(&str) -> bool =
    |command| !(command.starts_with("get_") || command.starts_with("list_") || command == "replay");

impl Bus {
    fn record_subject(&self, session: &SessionId, key: &str) -> String {
        format!("{}.{key}", self.subject("record", session))
    }

    /// Notes that a command begins.
    pub(crate) async fn begin(&self, session: &SessionId, key: &str, until: &Until) -> Result<Begun, Fault> {
        let subject = self.record_subject(session, key);
        let unavailable = |e: StoreError| Fault::Unavailable(e.to_string());
        loop {
            let publication = Publication::new(subject.clone(), BEGUN, Some(0));
            match self.records.publish(publication, until).await {
                Ok(sequence) => return Ok(Begun::New(sequence)),
                Err(Fault::Fenced) => {}
                Err(fault) => return Err(fault),
            }
            match self.records.last(&subject).await.map_err(unavailable)? {
                Some(found) if found.payload == BEGUN => return Ok(Begun::Before(found.sequence)),
                Some(found) => {
                    return Ok(Begun::Answered(
                        String::from_utf8_lossy(&found.payload).into_owned(),
                    ));
                }
                // Its age ended in between.
                None if !until.is_over(Instant::now()) => {}
                None => return Err(Fault::Unavailable("the record of a command is gone".to_owned())),
            }
        }
    }

    fn call_subject(&self, session: &SessionId, key: &str) -> String {
        format!("{}.{key}", self.subject("call", session))
    }

    /// Notes that a tool call begins. Returns the sequence of the note.
    pub(crate) async fn note_call(
        &self,
        session: &SessionId,
        key: &str,
        until: &Until,
    ) -> Result<u64, Fault> {
        let publication = Publication::new(self.call_subject(session, key), BEGUN, None);
        self.calls.publish(publication, until).await
    }

    /// True if a call with this key has begun in the open run.
    pub(crate) async fn has_call(&self, session: &SessionId, key: &str) -> Result<bool, StoreError> {
        Ok(self.calls.last(&self.call_subject(session, key)).await?.is_some())
    }

    /// Removes the notes of a session's calls, up to a sequence if one is given.
    pub(crate) async fn forget_calls(
        &self,
        session: &SessionId,
        last: Option<u64>,
    ) -> Result<(), StoreError> {
        self.calls.purge(&self.call_subject(session, "*"), last).await
    }

    /// Stores the response of a command that was begun. A response too large for a message is kept only in the events.
    pub(crate) async fn answer(
        &self,
        session: &SessionId,
        key: &str,
        response: &str,
        begun: u64,
        until: &Until,
    ) -> Result<(), Fault> {
        if response.len() > crate::limits::COMMAND_BYTES {
            return Ok(());
        }
        let publication = Publication::new(
            self.record_subject(session, key),
            response.to_owned(),
            Some(begun),
        );
        self.records.publish(publication, until).await.map(drop)
    }
}
