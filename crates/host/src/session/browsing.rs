//! Looking at other sessions, and at what can be called (dialects.md 2).

use std::path::{Path, PathBuf};

use store::{Listing, SessionSummary};
use wire::command::{ListParams, ListScope};
use wire::reply::{Commands, ContextUsageReply, ForkMessage, ForkMessages, ListedSession, Sessions};
use wire::table::Respond;
use wire::{EntryBody, Message};

use crate::outbox::Responder;

use super::Session;
use super::drive::now_ms;

/// What listings remember, below the agent directory. It may be deleted at any time.
const SESSION_CACHE: &str = "cache/sessions";

impl Session {
    /// User messages with text, of all branches; with their lines in the file for clients of the older `branch`.
    pub(super) fn fork_messages(&self, with_index: bool) -> ForkMessages {
        let entries = self.log.entries().iter().enumerate();
        let messages = entries.filter_map(|(at, entry)| match &entry.body {
            EntryBody::Message(body) => match body.message.as_ref() {
                Message::User(user) => {
                    let text = user.content.text();
                    (!text.is_empty()).then(|| ForkMessage {
                        entry_id: entry.id.clone(),
                        // Line 0 is the header.
                        entry_index: with_index.then_some(at + 1),
                        text,
                    })
                }
                _ => None,
            },
            _ => None,
        });
        ForkMessages {
            messages: messages.collect(),
        }
    }

    pub(super) fn commands(&self) -> Commands {
        Commands {
            commands: self.all_commands(),
        }
    }

    pub(super) fn get_context_usage(&self) -> ContextUsageReply {
        ContextUsageReply {
            usage: self.context_usage(),
        }
    }

    /// Lists sessions beside the session: two thousand files must not hold up a stream. All texts are only read when they are
    /// asked for; everything else comes from a cache where nothing changed.
    pub(super) fn list_sessions(&self, responder: Responder<Sessions>, params: ListParams) {
        let own = self.session_dir();
        let cwd = self.cwd.to_string_lossy().into_owned();
        let current = self.listed_first();
        let root = store::paths::sessions_root(&self.agent.agent_dir);
        let cache = self.agent.agent_dir.join(SESSION_CACHE);
        tokio::spawn(async move {
            let listing = tokio::task::spawn_blocking(move || {
                let how = if params.texts {
                    Listing::WithTexts
                } else {
                    Listing::Cached(&cache)
                };
                match params.scope {
                    ListScope::All => all(&root, &own, how),
                    ListScope::Cwd => {
                        let mut found = store::list(&own, how)?;
                        found.retain(|session| session.cwd.is_empty() || session.cwd == cwd);
                        Ok(found)
                    }
                }
            });
            let outcome = match listing.await {
                Ok(Ok(found)) => {
                    let mut sessions: Vec<ListedSession> = found.into_iter().map(listed).collect();
                    if let Some(current) = current {
                        put_first(&mut sessions, current);
                    }
                    Ok(Sessions { sessions })
                }
                Ok(Err(error)) => Err(store::StoreError::to_string(&error)),
                Err(error) => Err(error.to_string()),
            };
            responder.respond(outcome).await;
        });
    }

    /// This session as it is listed before all others once somebody has said something in it: pages go on with the first one
    /// that is listed, and would end its run otherwise (web.md R1).
    fn listed_first(&self) -> Option<ListedSession> {
        let messages = self.machine.messages();
        let first = messages.iter().find_map(|message| match message.as_ref() {
            Message::User(user) => Some(user.content.text()),
            _ => None,
        })?;
        // One that is not kept could not be gone to.
        let path = self.file_text()?;
        let header = self.log.header();
        Some(ListedSession {
            path,
            id: header.id.clone(),
            cwd: self.cwd.to_string_lossy().into_owned(),
            name: self.log.session_name().map(str::to_owned),
            parent_session_path: header.parent_session.clone(),
            created: header.timestamp.clone(),
            modified: store::ms_to_iso(now_ms()),
            message_count: u64::try_from(messages.len()).unwrap_or(u64::MAX),
            first_message: first,
            all_messages_text: String::new(),
        })
    }

    /// Where the sessions of this working directory are.
    fn session_dir(&self) -> PathBuf {
        let kept = self.agent.session_dir(&self.cwd);
        kept.unwrap_or_else(|| store::paths::session_dir(&self.agent.agent_dir, &self.cwd.to_string_lossy()))
    }
}

/// The sessions of every directory in the usual place, and those of a directory elsewhere.
fn all(root: &Path, own: &Path, how: Listing<'_>) -> Result<Vec<SessionSummary>, store::StoreError> {
    let mut found = store::list_all(root, how)?;
    if !own.starts_with(root) {
        found.extend(store::list(own, how)?);
        found.sort_by_key(|session| std::cmp::Reverse(session.modified));
    }
    Ok(found)
}

/// The session with this id goes to the front, as it is listed, else as it is.
fn put_first(sessions: &mut Vec<ListedSession>, current: ListedSession) {
    let found = sessions.iter().position(|session| session.id == current.id);
    let current = found.map_or(current, |place| sessions.remove(place));
    sessions.insert(0, current);
}

fn listed(found: SessionSummary) -> ListedSession {
    ListedSession {
        path: found.path.to_string_lossy().into_owned(),
        id: found.id,
        cwd: found.cwd,
        name: found.name,
        parent_session_path: found.parent_session_path,
        created: store::ms_to_iso(found.created),
        modified: store::ms_to_iso(found.modified),
        message_count: found.message_count,
        first_message: found.first_message,
        all_messages_text: found.all_messages_text.unwrap_or_default(),
    }
}
