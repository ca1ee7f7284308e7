//! Going on in another session: a new one, an opened file, a fork, a clone (pi-core.md 2.9). Who may refuse it is asked first, then the
//! run of the old one ends properly; its messages are on disk before the answer leaves.

use std::path::Path;
use std::sync::Arc;

use agent::Input;
use serde_json::{Value, json};
use store::{Listing, StoreError};
use wire::command::{BranchParams, ForkParams, NewSessionParams, NoParams, SwitchParams};
use wire::event::ChangeReason;
use wire::omp::{ContinueSessionParams, ContinuedSession};
use wire::reply::{Cancelled, Commands, Forked};
use wire::table::Respond;
use wire::{Event, SessionCommand, SessionRule};

use crate::limits;
use crate::off_thread::off_thread;
use crate::outbox::Responder;
use crate::strings;

use super::change_request::{Change, ChangeAsker, Changed, question, word};
use super::deferred::{DeferredAction, DeferredActions};
use super::dialogs::NoAnswer;
use super::driver::Driver;
use super::extension_loading;
use super::extensions::{Continuation, cancels, command_list, put};
use super::file_search::directory;
use super::newest_pi::with_home;
use super::router::refuse;
use super::session_core::SessionCore;
use super::session_file::{NewSession, closed, is_locked};
use super::session_replacement::{self, is_current};
use super::shell_commands;
use super::storage::same_file;

pub(super) async fn new_session(
    driver: &mut Driver,
    responder: Responder<Cancelled>,
    params: NewSessionParams,
) -> Option<DeferredAction> {
    let params = match resolved(&driver.core, params) {
        Ok(params) => params,
        Err(error) => {
            responder.refuse(error).await;
            return None;
        }
    };
    change(
        driver,
        ChangeAsker::Session(responder),
        Change::New(params, Vec::new()),
    )
    .await
}

pub(super) async fn switch_session(
    driver: &mut Driver,
    responder: Responder<Cancelled>,
    params: SwitchParams,
) -> Option<DeferredAction> {
    let path = with_home(&driver.core.agent, params.session_path);
    // Relative paths start at the working directory of the session, and not at that of the process (behaviour.md 9.4).
    let path = driver.core.workspace.cwd.join(path);
    let spare = params.is_page.then(|| driver.core.agent.home.clone());
    // Before the run is ended for nothing. Only pages: elsewhere a missing file begins a new session, as in pi (behaviour.md 9.4).
    let is_checked = params.is_page && !is_current(driver.core.conversation.log.path(), &path).await;
    let wanted = path.clone();
    if is_checked && let Err(error) = off_thread(move || store::check_session(&wanted)).await {
        let error = match error {
            StoreError::Missing { .. } => strings::NO_SESSION_FILE.to_owned(),
            other => other.to_string(),
        };
        responder.refuse(error).await;
        return None;
    }
    change(
        driver,
        ChangeAsker::Session(responder),
        Change::Switch(path, spare),
    )
    .await
}

/// Goes on in the newest session of a directory (dialects.md 14).
pub(super) async fn continue_session(
    driver: &mut Driver,
    responder: Responder<ContinuedSession>,
    params: ContinueSessionParams,
) -> Option<DeferredAction> {
    let Some(current) = driver.core.conversation.log.path().map(Path::to_path_buf) else {
        responder.refuse(strings::NOT_STORED).await;
        return None;
    };
    let dir = driver.core.workspace.cwd.join(params.session_dir);
    let listed = dir.clone();
    // On another thread, since the list reads the beginning of every session file of the directory.
    let found = off_thread(move || {
        let sessions = store::list(&listed, Listing::Plain)?;
        let newest = sessions.into_iter().find(|session| session.message_count > 0);
        let is_current = newest
            .as_ref()
            .is_some_and(|newest| same_file(&newest.path, &current));
        let is_there = current.parent().is_some_and(|parent| same_file(parent, &listed));
        Ok::<_, StoreError>((newest.map(|newest| newest.path), is_current, is_there))
    });
    let is_unused = driver.core.machine.messages().is_empty();
    let next = match found.await {
        Err(error) => {
            responder.refuse(error.to_string()).await;
            return None;
        }
        // The newest session is open already: nothing is ended, and no events follow.
        Ok((Some(_), true, _)) => {
            responder.respond(Ok(driver.core.view().continued(true))).await;
            return None;
        }
        Ok((Some(newest), ..)) => Change::Switch(newest, None),
        // Nothing happens if the current session is the empty session that would begin (dialects.md 14).
        Ok((None, _, true)) if is_unused => {
            responder.respond(Ok(driver.core.view().continued(false))).await;
            return None;
        }
        Ok((None, ..)) => Change::NewIn(dir),
    };
    let resumed = matches!(next, Change::Switch(..));
    change(driver, ChangeAsker::Continue(responder, resumed), next).await
}

pub(super) async fn fork(
    driver: &mut Driver,
    responder: Responder<Forked>,
    params: ForkParams,
) -> Option<DeferredAction> {
    let entry = driver.core.conversation.log.entry(&params.entry_id).cloned();
    fork_at(driver, responder, entry, strings::BAD_FORK).await
}

/// The older name of `fork` (dialects.md 5, rows 5 and 6).
pub(super) async fn branch(
    driver: &mut Driver,
    responder: Responder<Forked>,
    params: BranchParams,
) -> Option<DeferredAction> {
    let BranchParams {
        entry_id,
        entry_index,
    } = params;
    let (entry, refusal) = match (entry_id, entry_index) {
        (None, Some(index)) => {
            // Line 0 is the header.
            let at = usize::try_from(index).ok().and_then(|line| line.checked_sub(1));
            let entry = at.and_then(|at| driver.core.conversation.log.entries().get(at));
            (entry.cloned(), strings::BAD_BRANCH_INDEX)
        }
        (id, _) => {
            let entry = id.and_then(|id| driver.core.conversation.log.entry(&id).cloned());
            (entry, strings::BAD_BRANCH)
        }
    };
    fork_at(driver, responder, entry, refusal).await
}

/// A client wants everything read again that files say about the session.
pub(super) async fn reload(driver: &mut Driver, responder: Responder<Commands>) -> Option<DeferredAction> {
    if !driver.core.machine.is_idle() {
        let error = strings::RELOAD_BUSY.to_owned();
        responder.refuse(error).await;
        return None;
    }
    change(driver, ChangeAsker::Reload(responder), Change::Reload).await
}

async fn fork_at(
    driver: &mut Driver,
    responder: Responder<Forked>,
    entry: Option<Arc<wire::Entry>>,
    refusal: &str,
) -> Option<DeferredAction> {
    let user = entry.and_then(|entry| Change::fork(&entry));
    match user {
        Some(fork) => change(driver, ChangeAsker::Fork(responder), fork).await,
        None => {
            responder.refuse(refusal).await;
            None
        }
    }
}

pub(super) async fn clone_session(
    driver: &mut Driver,
    responder: Responder<Cancelled>,
) -> Option<DeferredAction> {
    match driver.core.conversation.log.leaf_id().map(str::to_owned) {
        Some(leaf) if !driver.core.machine.messages().is_empty() => {
            change(driver, ChangeAsker::Session(responder), Change::Clone(leaf)).await
        }
        _ => {
            let refusal = match driver.core.follows(SessionRule::ClonesSavedSessionsOnly) {
                true => strings::NOT_SAVED,
                false => strings::NOTHING_TO_CLONE,
            };
            responder.refuse(refusal).await;
            None
        }
    }
}

/// Asks whether the session may be left; then it is.
pub(super) async fn change(
    driver: &mut Driver,
    asker: ChangeAsker,
    change: Change,
) -> Option<DeferredAction> {
    if let Some((name, event)) = question(&change)
        && driver.extensions.has_listener(name)
    {
        driver.extensions.ask(
            &mut driver.core,
            name,
            &event,
            Continuation::Change(asker, change),
        );
        return None;
    }
    Some(change_now(driver, asker, change).await)
}

pub(super) async fn on_change(
    driver: &mut Driver,
    asker: ChangeAsker,
    mut change: Change,
    answer: Value,
) -> Option<DeferredAction> {
    if let Change::Fork { keeps_messages, .. } = &mut change {
        // The file begins anew, and the messages stay in memory (dialects.md 12).
        *keeps_messages = answer.get("skipConversationRestore") == Some(&json!(true));
    }
    if !cancels(&answer) {
        return Some(change_now(driver, asker, change).await);
    }
    let text = match change {
        // Clients of the older command put the text into their editor all the same (dialects.md 10.2).
        Change::Fork { text, .. } if asker.asked("branch") => Some(text),
        _ => None,
    };
    let refused = Changed {
        text,
        cancelled: true,
    };
    reply(driver, asker, Ok(refused)).await;
    None
}

/// The run has ended: waits until no other process has the file of the next session open, then leaves this one. The session works
/// meanwhile, and an abort ends the wait.
pub(super) async fn leave_when_closed(
    driver: &mut Driver,
    waiting: &mut DeferredActions,
    asker: ChangeAsker,
    change: Change,
) -> Option<DeferredAction> {
    let log = &driver.core.conversation.log;
    if let Change::Switch(path, _) = &change
        // This process has these files open.
        && !log.has_left()
        && !is_current(log.path(), path).await
        && is_locked(path.clone()).await
    {
        let closed = closed(path.clone());
        let wait = async move {
            closed.await;
            Ok(extensions::Answer::default())
        };
        driver
            .extensions
            .questions
            .ask(Continuation::Closed(asker, change), wait);
        return None;
    }
    leave(driver, waiting, asker, change).await
}

/// The run has ended: extensions hear that the session is left, for a moment, then it is.
pub(super) async fn leave(
    driver: &mut Driver,
    waiting: &mut DeferredActions,
    asker: ChangeAsker,
    change: Change,
) -> Option<DeferredAction> {
    // Before extensions hear of it: a session whose entries would be lost is not left at all.
    if change.leaves_file()
        && let Err(error) = driver.core.stored(true).await
    {
        reply(driver, asker, Err(error)).await;
        return None;
    }
    let next = session_replacement::next(&driver.core, &change);
    if !driver.extensions.has_listener("session_shutdown") {
        return carry_out(driver, waiting, asker, change, next).await;
    }
    let mut event = json!({"type": "session_shutdown", "reason": word(&change)});
    // The file of a new session is named before it exists, as in today's pi.
    let target = match &change {
        Change::Switch(path, _) => Some(path),
        _ => next.as_ref().and_then(|next| next.path.as_ref()),
    };
    if let Some(path) = target {
        put(&mut event, "targetSessionFile", json!(path));
    }
    driver.extensions.sync_state(&mut driver.core);
    // This does not wait for executables; the wait for the processes is below.
    driver
        .extensions
        .tell_hooks(&driver.core, "session_shutdown", &event);
    let answer = driver
        .extensions
        .listeners(&driver.core, "session_shutdown", &event)
        .ask("session_shutdown", &event);
    driver
        .extensions
        .questions
        .ask(Continuation::Leave(asker, change, next), async move {
            // A handler that hangs delays the change, but cannot prevent it.
            let answer = tokio::time::timeout(limits::FAREWELL, answer).await;
            answer.unwrap_or_else(|_| Ok(extensions::Answer::default()))
        });
    None
}

async fn change_now(driver: &mut Driver, asker: ChangeAsker, change: Change) -> DeferredAction {
    if change.ends_shells() {
        // Running commands are killed when the change is deferred (`defer`). The others would begin in the next session.
        shell_commands::give_up(driver).await;
    }
    // The run ends in order first: its messages belong to the file that is left.
    driver.drive(Input::Abort).await;
    DeferredAction::Change(asker, change)
}

/// The run has ended: makes the change and answers. The response to a reload waits until everything is loaded. `waiting` is what
/// waits for the session to be idle.
pub(super) async fn carry_out(
    driver: &mut Driver,
    waiting: &mut DeferredActions,
    asker: ChangeAsker,
    change: Change,
    next: Option<NewSession>,
) -> Option<DeferredAction> {
    let reason = change.reason();
    // Today's pi tells nothing of a queue that goes with its session.
    let is_silent = driver.core.follows(SessionRule::QueuesEndSilently);
    let had_queued = !driver.core.machine.queues().is_empty() && !is_silent;
    let mut reloaded = None;
    let ends_processes = change.ends_shells();
    let (word, previous) = (
        word(&change),
        reason.and(driver.core.conversation.log.file_text()),
    );
    // Before the log changes: the processes must not get entries of another session under this one's name.
    extension_loading::leave(driver, word);
    let outcome = session_replacement::make(driver, change, next).await;
    // A change that failed leaves the old session as it was, with its dialogs and its processes.
    if let (Ok(_), Some(reason)) = (&outcome, reason) {
        driver
            .dialogs
            .end_all(NoAnswer::SessionChanged, &driver.core.outbox)
            .await;
        if ends_processes {
            // They were started by calls of the session that is left.
            driver.core.tools.processes().end().await;
        }
        refuse_left(driver, waiting).await;
        if had_queued {
            // The queue of the old session is gone; clients that show it need the event.
            let (steering, follow_up) = driver.core.machine.queues().texts();
            driver
                .core
                .outbox
                .tell(Event::QueueUpdate { steering, follow_up })
                .await;
        }
        // After the dialogs and the queue of the old session are gone, so that a client sees no trace of them in the new one.
        driver.core.tell_changed(reason).await;
        driver.core.report_warnings().await;
    }
    match (asker, outcome) {
        // Answered when the session has begun for its extensions, too.
        (ChangeAsker::Extension(Some(id)), Ok(_)) => driver.extensions.loading.owe(id),
        (ChangeAsker::Reload(responder), Ok(_)) => {
            driver.core.tell_changed(ChangeReason::Reload).await;
            reloaded = Some(responder);
        }
        (asker, outcome) => reply(driver, asker, outcome.map_err(|error| error.to_string())).await,
    }
    // Also after a failure: the processes have left the session above, and it goes on.
    extension_loading::reopen(driver, word, previous).await;
    let responder = reloaded?;
    // What there is to call is known when they are all there.
    let answer = SessionCommand::GetCommands(NoParams::default());
    let (mcp, host) = driver.core.mcp(driver.dialogs.ui());
    mcp.reload(host).await;
    driver.start_servers(&answer).await;
    Some(DeferredAction::Reloaded(responder))
}

/// What extensions still wanted of the session that was left is not done in the session that takes its place.
async fn refuse_left(driver: &mut Driver, waiting: &mut DeferredActions) {
    driver.extensions.next_turn().clear();
    for action in waiting.take(DeferredAction::is_of_extension) {
        match action {
            // The session that it waited for was idle when it was left.
            DeferredAction::Idle(id) => driver.extensions.links.answer(id, Ok(Value::Null)),
            action => refuse(driver, action, strings::SESSION_LEFT.to_owned()).await,
        }
    }
}

/// With the directory that was asked for, if there is one: nothing is ended for a directory that is not there.
fn resolved(core: &SessionCore, params: NewSessionParams) -> Result<NewSessionParams, String> {
    let home = core.agent.options.resources.home.as_deref();
    let cwd = params.cwd.filter(|cwd| !cwd.is_empty());
    let cwd = cwd
        .map(|cwd| directory(&cwd, &core.workspace.cwd, home))
        .transpose()?;
    Ok(NewSessionParams {
        cwd: cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
        ..params
    })
}

/// Replies to the client or the extension that asked for another session.
pub(super) async fn reply(driver: &mut Driver, asker: ChangeAsker, outcome: Result<Changed, String>) {
    match asker {
        ChangeAsker::Session(responder) => {
            // A change that an extension has cancelled is a success for the client (behaviour.md 12.7).
            let cancelled = |changed: Changed| Cancelled {
                cancelled: changed.cancelled,
            };
            responder.respond(outcome.map(cancelled)).await;
        }
        ChangeAsker::Continue(responder, resumed) => {
            let continued = driver.core.view().continued(resumed);
            let continued = |changed: Changed| ContinuedSession {
                cancelled: changed.cancelled,
                resumed: resumed && !changed.cancelled,
                ..continued
            };
            responder.respond(outcome.map(continued)).await;
        }
        ChangeAsker::Fork(responder) => {
            let forked = |changed: Changed| Forked {
                text: changed.text,
                cancelled: changed.cancelled,
            };
            responder.respond(outcome.map(forked)).await;
        }
        ChangeAsker::Reload(responder) => {
            responder
                .respond(outcome.map(|_| command_list(&driver.extensions, &driver.core)))
                .await
        }
        ChangeAsker::Extension(id) => {
            let cancelled = |changed: Changed| json!({ "cancelled": changed.cancelled });
            driver.extensions.links.answer(id, outcome.map(cancelled));
        }
    }
}
