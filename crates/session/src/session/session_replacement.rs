//! The session that takes the place of another one: its log is opened or made, then settings, model, machine and tools follow. When
//! something fails, the old session is still there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use models::Start;
use store::{Context, ForkScope, SessionLog, StoreError};
use wire::state::Durability;
use wire::{EntryBody, SessionRule};

use crate::error::SessionError;
use crate::off_thread::off_thread;
use crate::strings;

use super::change_request::{Change, Changed, DONE};
use super::driver::Driver;
use super::extension_loading;
use super::session_core::SessionCore;
use super::session_file::{Empty, NewSession, open_log, stored_cwd};
use super::storage::same_file;

/// Header and file of the session that a change begins, while the old one is still there; none if they are not known yet.
pub(super) fn next(core: &SessionCore, change: &Change) -> Option<NewSession> {
    let cwd = &core.workspace.cwd;
    match change {
        // The settings of another directory may name a place of their own.
        Change::New(params, _) if params.cwd.as_ref().is_some_and(|other| Path::new(other) != cwd) => None,
        Change::New(params, _) => Some(beside(core, params.parent_session.as_deref())),
        Change::NewIn(dir) => Some(NewSession::new(Some(dir.clone()), cwd, None, None)),
        Change::Fork { .. } | Change::At(_) | Change::Clone(_) => Some(child(core)),
        Change::Switch(..) | Change::Reload => None,
    }
}

/// A session in the same directory, with its file where the next one goes.
fn beside(core: &SessionCore, parent: Option<&str>) -> NewSession {
    let dir = core.view().next_session_dir(&core.agent);
    NewSession::new(dir, &core.workspace.cwd, parent, None)
}

/// A session that the current one is the parent of.
fn child(core: &SessionCore) -> NewSession {
    beside(core, core.conversation.log.file_text().as_deref())
}

/// A session in another directory, whose settings say where the file is.
async fn elsewhere(core: &SessionCore, cwd: &Path, parent: Option<String>) -> NewSession {
    let (agent, cwd) = (Arc::clone(&core.agent), cwd.to_owned());
    let new = move || {
        let dir = agent.fitting(&cwd).session_dir(&cwd);
        NewSession::new(dir, &cwd, parent.as_deref(), None)
    };
    off_thread(new).await
}

/// Makes the change. `next` is the session that begins, if [`next`] knew it.
pub(super) async fn make(
    driver: &mut Driver,
    change: Change,
    next: Option<NewSession>,
) -> Result<Changed, SessionError> {
    let durability = driver.core.conversation.log.durability();
    match change {
        Change::New(params, entries) => {
            let cwd = (params.cwd).map_or_else(|| driver.core.workspace.cwd.clone(), PathBuf::from);
            let next = match next {
                Some(next) => next,
                None => elsewhere(&driver.core, &cwd, params.parent_session).await,
            };
            begin_anew(
                driver,
                cwd,
                next,
                entries,
                params.durability.unwrap_or(durability),
            )
            .await?;
        }
        Change::NewIn(dir) => {
            let cwd = driver.core.workspace.cwd.clone();
            let next = next.unwrap_or_else(|| NewSession::new(Some(dir), &cwd, None, None));
            begin_anew(driver, cwd, next, Vec::new(), durability).await?;
        }
        Change::Switch(path, spare) => switch_to(driver, path, spare).await?,
        Change::Fork {
            before,
            text,
            keeps_messages,
            ..
        } => {
            let next = next.unwrap_or_else(|| child(&driver.core));
            fork_off(driver, next, before, keeps_messages).await?;
            return Ok(Changed {
                text: Some(text),
                cancelled: false,
            });
        }
        Change::At(entry) => {
            let next = next.unwrap_or_else(|| child(&driver.core));
            branch_off(driver, next, entry).await?;
        }
        // The leaf may have moved while the run ended.
        Change::Clone(leaf) => {
            let next = next.unwrap_or_else(|| child(&driver.core));
            let leaf = driver.core.conversation.log.leaf_id().map_or(leaf, str::to_owned);
            branch_off(driver, next, leaf).await?;
        }
        Change::Reload => {
            driver
                .core
                .agent
                .extensions
                .rewrite_models(&driver.core.agent.registry);
            extension_loading::renew_processes(driver);
            driver.core.reload(driver.extensions.guards.faults());
        }
    }
    Ok(DONE)
}

/// Begins an empty session.
async fn begin_anew(
    driver: &mut Driver,
    cwd: PathBuf,
    next: NewSession,
    entries: Vec<wire::Entry>,
    durability: Durability,
) -> Result<(), SessionError> {
    let begin = move || {
        let mut log = next.log()?;
        log.set_durability(durability);
        let says = |entry: &wire::Entry| matches!(entry.body, EntryBody::Message(_));
        let says_something = entries.iter().any(says);
        log.append_made(entries)?;
        // A session without messages leaves no file (docs/internals/decisions/05-file-with-first-prompt.md).
        if says_something {
            log.ensure_on_disk()?;
        }
        Ok::<_, SessionError>(log)
    };
    let log = off_thread(begin).await?;
    replace_and_store_start(driver, log, cwd, true).await
}

async fn fork_off(
    driver: &mut Driver,
    next: NewSession,
    before: Option<String>,
    keeps_messages: bool,
) -> Result<(), SessionError> {
    // Copied before the log is replaced, which begins the machine anew.
    let old = keeps_messages.then(|| {
        (
            driver.core.machine.messages().to_vec(),
            driver.core.conversation.kept,
        )
    });
    match before {
        Some(before) => branch_off(driver, next, before).await?,
        None => {
            let cwd = driver.core.workspace.cwd.clone();
            let durability = driver.core.conversation.log.durability();
            begin_anew(driver, cwd, next, Vec::new(), durability).await?;
        }
    }
    // Only the file begins anew: the conversation stays as the model has it.
    if let Some((messages, kept)) = old {
        driver.core.apply(agent::Change::Conversation(messages));
        driver.core.conversation.kept = kept;
    }
    Ok(())
}

async fn branch_off(driver: &mut Driver, next: NewSession, leaf: String) -> Result<(), SessionError> {
    let durability = driver.core.conversation.log.durability();
    let fork = move |old: &mut SessionLog| {
        let mut log = old.fork(next.path, next.header, ForkScope::Path(&leaf))?;
        log.set_durability(durability);
        let answered = |entry: &Arc<wire::Entry>| matches!(&entry.body, EntryBody::Message(body) if body.message.as_assistant().is_some());
        // A copy is written at once, as in pi (behaviour.md 9.6), which stores nothing before the first answer (pi-core.md 2.4).
        if log.entries().iter().any(answered) {
            log.ensure_on_disk()?;
        }
        Ok::<_, StoreError>(log)
    };
    let log = driver.core.conversation.log.run(fork).await?;
    replace(driver, log, driver.core.workspace.cwd.clone(), false).await
}

async fn switch_to(driver: &mut Driver, path: PathBuf, spare: Option<PathBuf>) -> Result<(), SessionError> {
    let is_current = is_current(driver.core.conversation.log.path(), &path).await;
    if is_current
        && driver
            .core
            .conversation
            .log
            .run(SessionLog::catch_up)
            .await
            .is_ok()
    {
        // It is open already; what others have written is read, and the rest begins anew.
        let cwd = stored_cwd(
            &driver.core.conversation.log,
            &path,
            &driver.core.agent.cwd,
            spare.as_deref(),
        )?;
        let context = driver
            .core
            .conversation
            .log
            .context(driver.core.conversation.log.leaf_id());
        driver.core.fit_agent(&cwd).await;
        let start = choose_for(driver, &context, false).await?;
        driver.core.workspace.cwd = cwd;
        take_up(driver, context, start).await;
        return Ok(());
    }
    if !is_current {
        return open_other(driver, path, spare).await;
    }
    let log = &mut driver.core.conversation.log;
    if log.waiting() > 0 {
        // The file can be written no more, so that only this session has them.
        let error = strings::unstored_entries(log.waiting(), log.error());
        return Err(SessionError::Unstored(error));
    }
    // Another program put something else in its place, and our own lock may be in the way.
    log.run(|log| store::unlock(log)).await;
    let opened = open_other(driver, path, spare).await;
    if opened.is_err() {
        // The session stays as it is. Entries that the file cannot take wait, and clients learn of them.
        drop(driver.core.conversation.log.run(store::lock_again).await);
    }
    opened
}

/// Goes on in a file whose session is not open.
async fn open_other(driver: &mut Driver, path: PathBuf, spare: Option<PathBuf>) -> Result<(), SessionError> {
    // Its log is still locked by this process and has entries that the file lacks, so the file cannot be opened.
    if let Some(log) = driver.core.conversation.log.take_left(&path).await {
        let cwd = stored_cwd(&log, &path, &driver.core.agent.cwd, spare.as_deref());
        // No error: the log has been taken out, and entries that only it has would be dropped with it.
        let cwd = cwd.unwrap_or_else(|_| driver.core.workspace.cwd.clone());
        return replace(driver, log, cwd, false).await;
    }
    let cwd = driver.core.workspace.cwd.clone();
    let opening = move || open_log(&path, &cwd, spare.as_deref(), Empty::IsRefused);
    let (mut log, cwd) = off_thread(opening).await?;
    // What the client chose stays when it goes on in another file.
    log.set_durability(driver.core.conversation.log.durability());
    if log.entries().is_empty() {
        replace_and_store_start(driver, log, cwd, false).await
    } else {
        replace(driver, log, cwd, false).await
    }
}

/// Replaces the log as [`replace`] does, and stores the model and the level that the session begins with.
async fn replace_and_store_start(
    driver: &mut Driver,
    log: SessionLog,
    cwd: PathBuf,
    is_new: bool,
) -> Result<(), SessionError> {
    replace(driver, log, cwd, is_new).await?;
    let core = &mut driver.core;
    core.conversation.store_start(false, &core.outbox).await;
    Ok(())
}

/// Another log takes the place of the current one. Queue modes stay; queues, model and level start anew: from the
/// command line for an empty session, or from what the client chose since, else from what the session says.
async fn replace(
    driver: &mut Driver,
    log: SessionLog,
    cwd: PathBuf,
    is_new: bool,
) -> Result<(), SessionError> {
    // Before the model is chosen, since the settings of the directory say which models there are.
    driver.core.fit_agent(&cwd).await;
    let context = log.context(log.leaf_id());
    let mut start = match choose_for(driver, &context, is_new).await {
        Ok(start) => start,
        Err(error) => {
            // Closing its file here would block the thread of all sessions.
            driver.core.conversation.log.leave(log);
            return Err(error);
        }
    };
    // Nothing that the client chose becomes the user's default in today's pi.
    if is_new && !driver.core.follows(SessionRule::NewSessionsTakeSettings) {
        let flags = &driver.core.agent.options.start;
        let is_unresolved = driver.extensions.providers.is_unresolved();
        driver
            .core
            .conversation
            .choice
            .keep_chosen(flags, is_unresolved, &mut start);
    }
    // Everything that can fail has been done: the old session is left only now.
    driver.core.conversation.log.replace(log);
    driver.core.workspace.cwd = cwd;
    take_up(driver, context, start).await;
    Ok(())
}

/// Returns true if the session has this file.
pub(super) async fn is_current(current: Option<&Path>, path: &Path) -> bool {
    let (current, path) = (current.map(Path::to_path_buf), path.to_path_buf());
    off_thread(move || current.is_some_and(|current| same_file(&current, &path))).await
}

/// What the log says now takes the place of everything that the session was about.
async fn take_up(driver: &mut Driver, context: Context, start: Start) {
    // Late reports of the old session's calls must not reach the new one.
    driver.turn.calls.reset();
    let ui = driver.dialogs.ui();
    driver.core.take_up(context, start, ui).await;
}

/// Chooses model, level and scope for another conversation. An unknown model of the command line may come from an extension
/// that loads later.
async fn choose_for(driver: &mut Driver, context: &Context, flags: bool) -> Result<Start, SessionError> {
    match driver.core.agent.choose_off_thread(context, flags).await {
        Err(error) if driver.extensions.may_resolve(&error) => {
            driver.core.agent.choose_without_flags_off_thread(context).await
        }
        chosen => chosen,
    }
}
