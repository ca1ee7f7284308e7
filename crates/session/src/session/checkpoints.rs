//! What files were before the turns of a session that changed them. The crate `checkpoints` keeps and restores them; here is which
//! turns there are, and which of them a command means.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use ::checkpoints::{Checkpoints, Pending, PendingCall, Scope, Turn, directory_of};
use permissions::Source;
use store::SessionLog;
use tools::{ChangeRecorder, PendingChange};
use wire::changes::{
    ChangeScope, Changes, ChangesParams, Checkpoints as Kind, RewindParams, RewindTarget, Rewound,
    UnrewindParams,
};
use wire::command::{NavigateParams, UserMessageTarget};
use wire::reply::Navigated;
use wire::{Entry, EntryBody, Message, Reply};

use crate::off_thread::off_thread;
use crate::strings;

/// Built-in tools that change no file, or report the files that they change.
const KNOWN_TOOLS: [&str; 6] = ["read", "grep", "find", "ls", "edit", "write"];

/// Tools of the session that reach no file. The calls of a sub-agent are noted one by one.
const HARMLESS_TOOLS: [&str; 4] = [
    agent::todo::TOOL,
    agent::output::TOOL,
    fetch::TOOL,
    agent::TASK_TOOL,
];

/// Begins the checkpoint of a call; the error is the text for the model.
pub(crate) type CallBegins = Pin<Box<dyn Future<Output = Result<CallCheckpoint, String>> + Send>>;

/// The checkpoints of a session, wherever its file is now.
#[derive(Default)]
pub(super) struct SessionCheckpoints {
    open: Option<Checkpoints>,
    /// The agent's directory, whose files no checkpoint contains.
    agent_dir: PathBuf,
    /// The turn of the session that this one works for.
    lent: Option<TurnCheckpoint>,
}

/// The checkpoint of one turn.
#[derive(Debug, Clone)]
pub(crate) struct TurnCheckpoint(Turn);

/// The checkpoint of a call that reports no changes. Dropping it stores what the call has changed: the session
/// may give the call up.
#[derive(Debug)]
pub(crate) struct CallCheckpoint {
    turn: Turn,
    /// None once the end is stored.
    call: Option<PendingCall>,
}

impl SessionCheckpoints {
    /// No checkpoints are open yet. No checkpoint contains files of the agent's directory.
    pub(super) fn new(agent_dir: PathBuf) -> Self {
        Self {
            agent_dir,
            ..Self::default()
        }
    }

    /// The checkpoints of the session with this log.
    ///
    /// # Errors
    /// When there are none, as a sentence for the client.
    fn of(&mut self, log: &SessionLog, kind: Kind) -> Result<&Checkpoints, String> {
        if kind == Kind::Off {
            return Err(strings::CHECKPOINTS_OFF.to_owned());
        }
        let dir = log.path().map(directory_of);
        let dir = dir.ok_or_else(|| strings::NO_CHECKPOINTS_IN_MEMORY.to_owned())?;
        // The session may have gone on in another file, which has checkpoints of its own.
        let open = self.open.take().filter(|open| open.dir() == dir);
        let scope = || {
            let sessions = dir.parent().map(Path::to_path_buf);
            (kind == Kind::Worktree).then(|| Scope {
                root: PathBuf::from(&log.header().cwd),
                // The agent itself writes there while calls run.
                excluded: sessions.into_iter().chain([self.agent_dir.clone()]).collect(),
            })
        };
        let open = open.unwrap_or_else(|| Checkpoints::new(&dir, scope()));
        Ok(self.open.insert(open))
    }

    /// Changes belong to the turn of another session from now on.
    pub(super) fn lend(&mut self, checkpoint: Option<TurnCheckpoint>) {
        self.lent = checkpoint;
    }

    /// The checkpoint of the turn at the end of the conversation; none if the session has no checkpoints.
    pub(super) fn turn(&mut self, log: &SessionLog, kind: Kind) -> Option<TurnCheckpoint> {
        // Changes of a sub-agent belong to the turn of its owner, which `rewind` restores as a whole.
        if let Some(lent) = &self.lent {
            return Some(lent.clone());
        }
        let turn = turn_at(log, log.leaf_id()?)?;
        // A session without checkpoints runs its calls without them.
        let open = self.of(log, kind).ok()?;
        Some(TurnCheckpoint(open.turn(&turn)))
    }

    /// Compares files. The future reads them.
    ///
    /// # Errors
    /// When there are no checkpoints or no such entry.
    pub(super) fn changes(
        &mut self,
        log: &SessionLog,
        kind: Kind,
        params: &ChangesParams,
    ) -> Result<impl Future<Output = Result<Changes, String>> + Send + 'static, String> {
        let open = self.of(log, kind)?.clone();
        if let Some(id) = params.entry_id.as_deref() {
            must_exist(log, id)?;
        }
        let turns = turns(log, params);
        Ok(async move {
            let changes = off_thread(move || open.changes(turns.as_ref())).await;
            changes.map_err(|error| error.to_string())
        })
    }

    /// Restores files. Where the conversation goes is the caller's business.
    ///
    /// # Errors
    /// When there are no checkpoints or no such entry, or the journal cannot be written.
    pub(super) async fn rewind(
        &mut self,
        log: &SessionLog,
        kind: Kind,
        params: &RewindParams,
    ) -> Result<Rewound, String> {
        must_exist(log, &params.entry_id)?;
        let open = self.of(log, kind)?.clone();
        let above = log.branch(Some(&params.entry_id));
        // All entries of the branch: the journal knows which of them are turns.
        let kept = above.iter().map(|entry| entry.id.clone());
        // When the entry was the last one, its own calls had not run yet, so their changes go, too.
        let kept: HashSet<String> = kept.filter(|id| *id != params.entry_id).collect();
        let (what, force) = (params.what, params.force);
        let leaf = log.leaf_id().map(str::to_owned);
        // Only a rewind that moves the conversation can take it back.
        let leaf = leaf.filter(|_| what != RewindTarget::Files);
        // Also without files the journal notes the rewind, since `unrewind` gets the old end of the conversation from there.
        let files = what != RewindTarget::Conversation;
        let rewound = off_thread(move || open.rewind(&kept, files, leaf, force)).await;
        rewound.map_err(|error| error.to_string())
    }

    /// Takes the newest rewind of files back. Returns where the conversation goes, too.
    ///
    /// # Errors
    /// When there are no checkpoints or nothing to take back, or the journal cannot be written.
    pub(super) async fn unrewind(
        &mut self,
        log: &SessionLog,
        kind: Kind,
        params: &UnrewindParams,
    ) -> Result<(Rewound, Option<String>), String> {
        let open = self.of(log, kind)?.clone();
        let force = params.force;
        let undone = off_thread(move || open.unrewind(force)).await;
        let (rewound, leaf) = undone.map_err(|error| error.to_string())?;
        // The journal is a file of its own, so it may name an entry that the session file does not have.
        Ok((rewound, leaf.filter(|leaf| log.entry(leaf).is_some())))
    }
}

impl TurnCheckpoint {
    /// What `edit` and `write` report their changes to.
    pub(crate) fn recorder(self) -> Arc<dyn ChangeRecorder> {
        Arc::new(self)
    }

    /// Begins the checkpoint of a call that may change files without a report. `None` if the tool does not. The call must not run if that
    /// fails.
    pub(crate) fn begin_call(&self, tool: &str, source: &Source) -> Option<CallBegins> {
        let is_known = KNOWN_TOOLS.contains(&tool) || HARMLESS_TOOLS.contains(&tool);
        // An extension may replace a tool by one of the same name, of which nothing is known.
        if *source == Source::BuiltIn && is_known {
            return None;
        }
        let (turn, name) = (self.0.clone(), tool.to_owned());
        Some(Box::pin(async move {
            let begun = off_thread(move || {
                let call = turn.begin_call(&name);
                call.map(|call| CallCheckpoint {
                    turn,
                    call: Some(call),
                })
            });
            begun.await.map_err(|error| strings::checkpoint_failed(&error))
        }))
    }
}

impl CallCheckpoint {
    /// Stores what the call has changed.
    pub(crate) async fn end(mut self) {
        if let Some(call) = self.call.take() {
            let turn = self.turn.clone();
            off_thread(move || end_call(&turn, call)).await;
        }
    }
}

impl Drop for CallCheckpoint {
    /// A call that was given up may still run: what it changes later belongs to the next call.
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            let turn = self.turn.clone();
            // `drop` cannot wait for the disk.
            tokio::task::spawn_blocking(move || end_call(&turn, call));
        }
    }
}

fn end_call(turn: &Turn, call: PendingCall) {
    // A rewind then keeps the files as changed by others.
    if let Err(error) = turn.end_call(call) {
        tracing::warn!(%error, "the checkpoint of a call could not be completed");
    }
}

impl ChangeRecorder for TurnCheckpoint {
    fn begin(&self, path: &Path) -> Result<Box<dyn PendingChange>, String> {
        let pending = self
            .0
            .begin(path)
            .map_err(|error| strings::checkpoint_failed(&error))?;
        let turn = self.0.clone();
        Ok(Box::new(TurnChange { turn, pending }))
    }
}

/// A change of a file in a turn.
struct TurnChange {
    turn: Turn,
    pending: Pending,
}

impl PendingChange for TurnChange {
    fn end(self: Box<Self>) {
        // The change then counts as interrupted, and the reply of `rewind` lists the file.
        if let Err(error) = self.turn.end(self.pending) {
            tracing::warn!(%error, "a checkpoint could not be completed");
        }
    }
}

/// The place of the tree that a rewind goes to.
pub(super) fn place(entry_id: String, user_message: UserMessageTarget) -> NavigateParams {
    NavigateParams {
        target_id: entry_id,
        user_message,
        ..NavigateParams::default()
    }
}

/// The reply of a rewind of files and conversation.
///
/// # Errors
/// When the conversation could not be rewound.
pub(super) fn moved(rewound: Rewound, moved: Result<Navigated, String>) -> Result<Reply, String> {
    let moved = moved?;
    let rewound = Rewound {
        editor_text: moved.editor_text,
        cancelled: moved.cancelled,
        ..rewound
    };
    Ok(rewound.into())
}

fn must_exist(log: &SessionLog, id: &str) -> Result<(), String> {
    match log.entry(id) {
        Some(_) => Ok(()),
        None => Err(strings::entry_not_found(id)),
    }
}

/// The turns that a command means; `None` for all of the session.
fn turns(log: &SessionLog, params: &ChangesParams) -> Option<HashSet<String>> {
    let leaf = log.leaf_id();
    let entry = params.entry_id.as_deref().or(leaf);
    match params.scope {
        ChangeScope::Session => None,
        ChangeScope::Turn => {
            let branch = log.branch(entry);
            let named = params.entry_id.is_some();
            let is_turn = |entry: &&Arc<Entry>| is_answer(entry, !named);
            // Without an entry, the newest turn that can have changed something is meant.
            let turn = branch.iter().rev().find(is_turn);
            Some(turn.map(|entry| entry.id.clone()).into_iter().collect())
        }
        ChangeScope::Run => {
            // The run goes on behind the entry, if the entry is part of the conversation.
            let mut branch = log.branch(leaf);
            let mut at = branch.iter().position(|one| Some(one.id.as_str()) == entry);
            if at.is_none() {
                branch = log.branch(entry);
                at = branch.len().checked_sub(1);
            }
            let at = at.unwrap_or(0);
            let head = branch.iter().take(at + 1);
            let begin = head.clone().rposition(|entry| is_prompt(entry)).unwrap_or(0);
            let run = branch.iter().enumerate().skip(begin);
            // Up to the next prompt. The entry itself may be one, too.
            let run = run.take_while(|(index, entry)| *index <= at || !is_prompt(entry));
            Some(run.map(|(_, entry)| entry.id.clone()).collect())
        }
    }
}

/// The answer that a call at this place belongs to.
fn turn_at(log: &SessionLog, leaf: &str) -> Option<String> {
    let at = log.entry(leaf)?;
    let mut entry = at;
    while follows_answer(entry)
        && let Some(parent) = entry.parent_id.as_deref().and_then(|id| log.entry(id))
    {
        entry = parent;
    }
    match is_answer(entry, false) {
        true => Some(entry.id.clone()),
        false => Some(at.id.clone()),
    }
}

/// Returns true for what may lie between an answer and a call of it: results of other calls of the batch, and what clients and
/// extensions store meanwhile.
fn follows_answer(entry: &Entry) -> bool {
    match &entry.body {
        EntryBody::Message(body) => matches!(*body.message, Message::ToolResult(_)),
        EntryBody::ThinkingLevelChange(_)
        | EntryBody::ModelChange(_)
        | EntryBody::Custom(_)
        | EntryBody::TtsrInjection(_)
        | EntryBody::Label(_)
        | EntryBody::SessionInfo(_)
        | EntryBody::Other(_) => true,
        _ => false,
    }
}

fn is_prompt(entry: &Entry) -> bool {
    matches!(&entry.body, EntryBody::Message(body) if matches!(*body.message, Message::User(_)))
}

/// Returns true for an answer of the model; with `calls` only if it calls tools.
fn is_answer(entry: &Entry, calls: bool) -> bool {
    let EntryBody::Message(body) = &entry.body else {
        return false;
    };
    match body.message.as_ref() {
        Message::Assistant(answer) => !calls || answer.tool_calls().next().is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(value: serde_json::Value) -> EntryBody {
        EntryBody::message(Arc::new(serde_json::from_value(value).unwrap()))
    }

    fn answer(calls: bool) -> EntryBody {
        let call = json!([{"type": "toolCall", "id": "1", "name": "bash", "arguments": {}}]);
        let mut answer = serde_json::to_value(Message::Assistant(wire::AssistantMessage::begin(
            "api", "p", "m", 1,
        )))
        .unwrap();
        answer["content"] = if calls { call } else { json!([]) };
        message(answer)
    }

    fn result() -> EntryBody {
        message(json!({
            "role": "toolResult", "toolCallId": "1", "toolName": "bash", "content": [], "isError": false, "timestamp": 1
        }))
    }

    /// Two runs: a prompt, a turn with a call, its result, the last answer; then a prompt and an answer.
    fn two_runs() -> (SessionLog, Vec<String>) {
        let header = store::new_header("/", None);
        let mut log = SessionLog::create(None, header).unwrap();
        let prompt = || EntryBody::message(Arc::new(Message::user("do", 1)));
        let bodies = [
            prompt(),
            answer(true),
            result(),
            answer(false),
            prompt(),
            answer(false),
        ];
        let ids = bodies.map(|body| log.append(body).unwrap().id.clone());
        (log, ids.to_vec())
    }

    fn meant(log: &SessionLog, scope: ChangeScope, entry: Option<&String>) -> Option<HashSet<String>> {
        turns(
            log,
            &ChangesParams {
                scope,
                entry_id: entry.cloned(),
            },
        )
    }

    fn set(ids: &[String]) -> Option<HashSet<String>> {
        Some(ids.iter().cloned().collect())
    }

    #[test]
    fn turn_without_entry_is_newest_with_calls() {
        let (log, ids) = two_runs();
        assert_eq!(meant(&log, ChangeScope::Turn, None), set(&ids[1..2]));
        assert_eq!(
            meant(&log, ChangeScope::Turn, Some(&ids[3])),
            set(&ids[3..4]),
            "the named one"
        );
        assert_eq!(
            meant(&log, ChangeScope::Turn, Some(&ids[0])),
            set(&[]),
            "no answer yet"
        );
        assert_eq!(meant(&log, ChangeScope::Session, None), None, "all turns");
    }

    #[test]
    fn run_reaches_from_its_prompt_to_the_next() {
        let (log, ids) = two_runs();
        assert_eq!(meant(&log, ChangeScope::Run, Some(&ids[2])), set(&ids[..4]));
        assert_eq!(meant(&log, ChangeScope::Run, None), set(&ids[4..]));
        assert_eq!(meant(&log, ChangeScope::Run, Some(&ids[4])), set(&ids[4..]));
    }

    #[test]
    fn call_belongs_to_answer_before_its_results() {
        let (log, ids) = two_runs();
        assert_eq!(turn_at(&log, &ids[2]), Some(ids[1].clone()));
        assert_eq!(turn_at(&log, &ids[1]), Some(ids[1].clone()));
        assert_eq!(turn_at(&log, "none"), None);
        let mut log = log;
        log.set_leaf(Some(&ids[2])).unwrap();
        let name = serde_json::from_value(json!({"name": "work"})).unwrap();
        let name = log.append(EntryBody::SessionInfo(name)).unwrap();
        assert_eq!(turn_at(&log, &name.id), Some(ids[1].clone()), "named meanwhile");
    }

    #[test]
    fn unknown_entry_is_refused() {
        let (log, ids) = two_runs();
        assert_eq!(must_exist(&log, &ids[0]), Ok(()));
        assert_eq!(must_exist(&log, "none"), Err(strings::entry_not_found("none")));
    }
}
