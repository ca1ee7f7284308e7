//! Which sub-agents a session has: the working ones, and where the conversations of the others are.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::Semaphore;
use wire::state::PermissionMode;
use wire::subagent::{Subagent, SubagentLevel, SubagentMessages, SubagentMessagesParams};

use crate::off_thread::off_thread;
use crate::requests::RequestSender;
use crate::{limits, strings};

/// The sub-agents of a session. Clones share them.
#[derive(Clone)]
pub(crate) struct SubagentRegister {
    shared: Arc<Mutex<Known>>,
    /// Places for sub-agents that work at the same time.
    places: Arc<Semaphore>,
    most: u32,
}

#[derive(Default)]
struct Known {
    working: Vec<Working>,
    /// Ids and session files, oldest first.
    transcripts: VecDeque<(String, String)>,
    level: SubagentLevel,
    count: usize,
}

struct Working {
    subagent: Subagent,
    /// Nothing else keeps a sender: without this one the session of the sub-agent ends.
    requests: Option<RequestSender>,
    /// The mode that was chosen before there was a session to tell.
    mode: Option<PermissionMode>,
}

impl Working {
    /// Has the session of the sub-agent go on with this mode, or end.
    fn set_mode(&mut self, mode: PermissionMode) {
        let Some(requests) = &self.requests else {
            // Its session is not open yet; `opened` passes the mode on.
            self.mode = Some(mode);
            return;
        };
        // Its queue is full. It must not go on with a looser mode, so its session ends.
        if !requests.set_mode(mode) {
            self.requests = None;
        }
    }
}

impl Default for SubagentRegister {
    fn default() -> Self {
        Self::new(config::settings::limits::PARALLEL_SUBAGENTS)
    }
}

impl SubagentRegister {
    /// A register without sub-agents. At most `most` work at the same time.
    pub(crate) fn new(most: u32) -> Self {
        // At least one, or the first task would wait for a place without end.
        let most = most.clamp(1, limits::SUBAGENTS);
        Self {
            shared: Arc::default(),
            places: Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(1))),
            most,
        }
    }

    /// The map stays valid if a holder of the lock panics: every change is one call.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place; for all places if the sub-agent must work alone.
    pub(super) async fn place(&self, alone: bool) -> Option<tokio::sync::OwnedSemaphorePermit> {
        // All places together: it begins when the others have ended, and none begins at the same time.
        let places = if alone { self.most } else { 1 };
        Arc::clone(&self.places).acquire_many_owned(places).await.ok()
    }

    /// The number of the next sub-agent.
    pub(super) fn next_index(&self) -> usize {
        let mut known = self.known();
        known.count += 1;
        known.count - 1
    }

    /// A sub-agent begins, or came further.
    pub(super) fn update(&self, subagent: Subagent) {
        let mut known = self.known();
        match known
            .working
            .iter_mut()
            .find(|one| one.subagent.id == subagent.id)
        {
            // Only the description: the queue and a mode that waits must stay.
            Some(one) => one.subagent = subagent,
            None => known.working.push(Working {
                subagent,
                requests: None,
                mode: None,
            }),
        }
    }

    /// The session of a sub-agent was opened. It has the mode that its owner had when the call began.
    pub(super) fn opened(&self, id: &str, file: Option<&str>, requests: RequestSender) {
        let mut known = self.known();
        if let Some(one) = known.working.iter_mut().find(|one| one.subagent.id == id) {
            one.requests = Some(requests);
            // Before the prompt, which is sent by the caller: a task may wait long for its place.
            if let Some(mode) = one.mode.take() {
                one.set_mode(mode);
            }
        }
        if let Some(file) = file {
            // Bounded, like everything that grows with the work of a session: the oldest conversation is forgotten.
            known.transcripts.push_back((id.to_owned(), file.to_owned()));
            if known.transcripts.len() > limits::SUBAGENT_TRANSCRIPTS {
                known.transcripts.pop_front();
            }
        }
    }

    /// A sub-agent has ended. Its session ends, too.
    pub(super) fn ended(&self, id: &str) {
        self.known().working.retain(|one| one.subagent.id != id);
    }

    /// The sub-agents that work.
    pub(crate) fn working(&self) -> Vec<Subagent> {
        self.known()
            .working
            .iter()
            .map(|one| one.subagent.clone())
            .collect()
    }

    /// How much clients want to know.
    pub(crate) fn level(&self) -> SubagentLevel {
        self.known().level
    }

    /// Sets how much clients want to know.
    pub(crate) fn set_level(&self, level: SubagentLevel) {
        self.known().level = level;
    }

    /// Where the session of a sub-agent takes requests; none once it has to end. A caller that keeps it keeps the session.
    pub(super) fn requests(&self, id: &str) -> Option<RequestSender> {
        let known = self.known();
        let one = known.working.iter().find(|one| one.subagent.id == id)?;
        one.requests.clone()
    }

    /// The permission mode of the session changes, and with it that of its sub-agents. A sub-agent that cannot be told ends.
    pub(crate) fn set_mode(&self, mode: PermissionMode) {
        for one in &mut self.known().working {
            one.set_mode(mode);
        }
    }

    /// The messages of a sub-agent that has a session file.
    ///
    /// # Errors
    /// A sentence for the client: none is named, it is unknown, or its file cannot be read.
    pub(crate) async fn messages(&self, params: SubagentMessagesParams) -> Result<SubagentMessages, String> {
        // In a block, so that the lock is released before the file is read.
        let file = {
            let known = self.known();
            let mut transcripts = known.transcripts.iter();
            let found = match (&params.subagent_id, &params.session_file) {
                (Some(id), _) => transcripts.find(|(known, _)| known == id),
                // Only files of sub-agents are read, even if the client names another path.
                (None, Some(file)) => transcripts.find(|(_, known)| known == file),
                (None, None) => return Err(strings::WHICH_SUBAGENT.to_owned()),
            };
            let found = found.map(|(_, file)| file.clone());
            found.ok_or_else(|| strings::unknown_subagent(params.subagent_id.as_deref()))?
        };
        let from = params.from_byte.unwrap_or(0);
        off_thread(move || read_transcript(file, from)).await
    }
}

/// Complete lines of a session file from a position on.
fn read_transcript(session_file: String, from: u64) -> Result<SubagentMessages, String> {
    let mut read = SubagentMessages {
        session_file,
        from_byte: from,
        next_byte: from,
        reset: false,
        entries: Vec::new(),
        messages: Vec::new(),
    };
    let mut file = match std::fs::File::open(Path::new(&read.session_file)) {
        Ok(file) => file,
        // The file is created with the first prompt (docs/internals/decisions/05-file-with-first-prompt.md).
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(read),
        Err(error) => return Err(error.to_string()),
    };
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    // The position belongs to another state of the file, so the client gets it from its beginning.
    if from > size {
        (read.from_byte, read.next_byte, read.reset) = (0, 0, true);
    }
    file.seek(SeekFrom::Start(read.from_byte))
        .map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    let mut file = BufReader::new(file);
    // Bounded, since one response holds all of it. The client reads on at `nextByte`.
    let mut bounded = file.by_ref().take(limits::SUBAGENT_TRANSCRIPT_BYTES);
    let got = bounded.read_to_end(&mut text);
    got.map_err(|error| error.to_string())?;
    if bounded.limit() == 0 && !text.contains(&b'\n') {
        // A line that is longer comes as a whole. Otherwise the client would never come past it.
        let most = u64::try_from(store::limits::MAX_LINE).unwrap_or(u64::MAX);
        let rest = file.take(most).read_until(b'\n', &mut text);
        rest.map_err(|error| error.to_string())?;
    }
    // A line that is still being written is left for the next read.
    let complete = text
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    for line in text
        .get(..complete)
        .unwrap_or_default()
        .split(|byte| *byte == b'\n')
    {
        // A damaged line is no entry, here as everywhere.
        let Ok(entry) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        if entry.get("type").and_then(Value::as_str) == Some("message")
            && let Some(message) = entry.get("message")
        {
            read.messages.push(message.clone());
        }
        read.entries.push(entry);
    }
    read.next_byte += u64::try_from(complete).unwrap_or(0);
    Ok(read)
}

#[cfg(test)]
mod tests {
    use wire::SessionCommand;
    use wire::subagent::{AgentSource, SubagentStatus};

    use super::*;
    use crate::requests::{SessionRequest, request_queue};

    fn read(text: &[u8], from: u64) -> SubagentMessages {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.jsonl");
        std::fs::write(&file, text).unwrap();
        read_transcript(file.to_string_lossy().into_owned(), from).unwrap()
    }

    #[test]
    fn unwritten_transcript_is_empty() {
        let read = read_transcript("/no/such/file.jsonl".to_owned(), 7).unwrap();
        assert_eq!((read.from_byte, read.next_byte, read.reset), (7, 7, false));
        assert!(read.entries.is_empty());
    }

    #[test]
    fn cut_line_waits_for_the_next_read() {
        let whole = b"{\"type\":\"message\",\"message\":{\"role\":\"user\"}}\n";
        let text = [&whole[..], b"{\"type\":\"mess"].concat();
        let read = read(&text, 0);
        assert_eq!((read.entries.len(), read.messages.len()), (1, 1));
        assert_eq!(read.next_byte, whole.len() as u64);
    }

    #[test]
    fn line_over_the_bound_is_read_whole() {
        let long = "x".repeat(usize::try_from(limits::SUBAGENT_TRANSCRIPT_BYTES).unwrap());
        let first = format!("{{\"type\":\"label\",\"label\":\"{long}\"}}\n");
        let text = format!("{first}{{\"type\":\"label\"}}\n");
        let begin = read(text.as_bytes(), 0);
        assert_eq!((begin.entries.len(), begin.next_byte), (1, first.len() as u64));
        let rest = read(text.as_bytes(), begin.next_byte);
        assert_eq!((rest.entries.len(), rest.next_byte), (1, text.len() as u64));
    }

    #[test]
    fn damaged_line_is_skipped() {
        let read = read(b"no json\n{\"type\":\"label\"}\n", 0);
        assert_eq!((read.entries.len(), read.messages.len()), (1, 0));
        assert_eq!(read.next_byte, 25);
    }

    #[test]
    fn position_beyond_the_file_begins_again() {
        let read = read(b"{\"type\":\"label\"}\n", 1000);
        assert!(read.reset);
        assert_eq!((read.from_byte, read.entries.len()), (0, 1));
    }

    fn subagent(id: &str) -> Subagent {
        Subagent {
            id: id.to_owned(),
            index: 0,
            agent: "general".to_owned(),
            agent_source: AgentSource::Bundled,
            description: None,
            status: SubagentStatus::Pending,
            task: "look".to_owned(),
            session_file: None,
            parent_tool_call_id: "c1".to_owned(),
            last_update: 0,
            progress: None,
        }
    }

    #[tokio::test]
    async fn mode_before_opening_reaches_the_session() {
        let register = SubagentRegister::default();
        register.update(subagent("general-0"));
        register.set_mode(PermissionMode::ReadOnly);
        let (requests, mut queue) = request_queue();
        register.opened("general-0", None, requests);
        register.ended("general-0");
        match queue.next(false).await {
            Some(SessionRequest::Command(_, SessionCommand::SetPermissionMode(params))) => {
                assert_eq!(params.mode, PermissionMode::ReadOnly);
            }
            other => panic!("{other:?}"),
        }
        assert!(queue.next(false).await.is_none());
    }

    #[tokio::test]
    async fn subagent_that_cannot_be_told_ends() {
        let register = SubagentRegister::default();
        register.update(subagent("general-0"));
        let (requests, mut queue) = request_queue();
        register.opened("general-0", None, requests);
        for _ in 0..limits::MAILBOX {
            register.set_mode(PermissionMode::Ask);
        }
        assert!(register.requests("general-0").is_some());
        register.set_mode(PermissionMode::ReadOnly);
        assert!(register.requests("general-0").is_none());
        let mut told = 0;
        while queue.next(false).await.is_some() {
            told += 1;
        }
        assert_eq!(told, limits::MAILBOX);
    }

    #[tokio::test]
    async fn transcript_needs_a_known_name() {
        let register = SubagentRegister::default();
        let ask = |params: SubagentMessagesParams| register.messages(params);
        let refused = ask(SubagentMessagesParams::default()).await.unwrap_err();
        assert_eq!(refused, strings::WHICH_SUBAGENT);
        let refused = ask(SubagentMessagesParams {
            subagent_id: Some("general-9".to_owned()),
            ..SubagentMessagesParams::default()
        });
        assert!(refused.await.unwrap_err().contains("general-9"));
        let refused = ask(SubagentMessagesParams {
            session_file: Some("/etc/passwd".to_owned()),
            ..SubagentMessagesParams::default()
        });
        assert!(refused.await.is_err(), "only files of sub-agents are read");
    }

    #[tokio::test]
    async fn lone_subagent_takes_all_places() {
        let register = SubagentRegister::new(2);
        let first = register.place(false).await;
        let alone = register.place(true);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut alone = std::pin::pin!(alone);
        assert!(alone.as_mut().poll(&mut context).is_pending());
        drop(first);
        assert!(alone.await.is_some());
        assert_eq!((register.next_index(), register.next_index()), (0, 1));
    }
}
