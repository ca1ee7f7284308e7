//! The processes of a session's extensions and what their extensions registered. Each process has a place: its number among the
//! others. How the processes are started and loaded is in `loading`.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::task::Poll;

use config::extensions::{Found, Key};
use config::resources::CommandInfo;
use extensions::line::{Command, Failure, Opened, Registered};
use extensions::{ExtensionPool, ExtensionProcess, ProcessError, ProcessMessage};
use serde::Serialize;
use serde_json::{Map, Value, json};
use wire::reply::{Shortcut, Shortcuts};
use wire::table::Respond;
use wire::{Reply, ToolResult};

use crate::limits;

use super::super::asker::Asker;
use super::failures::failure;
use super::json::put;
use super::link::{Link, Progress};

/// The processes of a session's extensions.
#[derive(Default)]
pub(crate) struct ExtensionLinks {
    /// The extensions to load, in the order in which handlers run.
    pub(super) found: Vec<Found>,
    /// The name of the session towards the processes.
    pub(super) handle: String,
    /// The processes, as one. `None` without extensions.
    pub(super) pool: Option<ExtensionPool>,
    /// The processes of the session that this one replaced: calls of its extensions may still be owed an answer.
    pub(super) left: Option<ExtensionPool>,
    /// The processes, each for itself.
    pub(super) links: Vec<Link>,
    /// Registrations of all places, in order.
    pub(super) registered: Vec<Registered>,
}

/// A slash command of an extension.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SlashCommand {
    /// The path of the extension.
    pub(super) extension: String,
    /// The name that the extension registered.
    pub(super) name: String,
    /// The name by which it was called.
    pub(crate) called: String,
    pub(super) args: String,
}

impl ExtensionLinks {
    /// Nothing is loaded yet.
    pub(super) fn new(found: Vec<Found>) -> Self {
        Self {
            found,
            ..Self::default()
        }
    }

    /// Plans the processes for the extensions that were found: the TypeScript host first, then programs in their order. A
    /// process that checked calls before remains a guard as long as it is to be loaded.
    pub(super) fn arrange(&mut self, start: &Value) {
        let before = std::mem::take(&mut self.links);
        let mut links: Vec<Link> = Vec::new();
        for Found { source, runs, .. } in &self.found {
            // An extension that cannot run is reported by `Loading::begin`.
            let Ok(key) = runs else { continue };
            let place = links.iter().position(|link| link.runs(key));
            let place = place.unwrap_or_else(|| {
                let mut link = Link::new(key.clone(), start.clone());
                link.guards = before.iter().any(|old| old.guards && old.runs(key));
                // The places may still move, since no process was started at them.
                let at = if *key == Key::TypeScript { 0 } else { links.len() };
                links.insert(at, link);
                at
            });
            if let Some(link) = links.get_mut(place) {
                link.sources.push(source.clone());
            }
        }
        self.links = links;
        // The same pool goes on: calls of the processes before are still owed an answer.
        let pool = self.left.take().unwrap_or_default();
        pool.clear();
        // The extension that asked for this session is answered even if the session has no extensions.
        let place = if self.links.is_empty() {
            &mut self.left
        } else {
            &mut self.pool
        };
        *place = Some(pool);
    }

    /// Plans more extensions. Returns the places to start, and the places that have to load more. New processes come last,
    /// since the others keep their numbers.
    pub(super) fn arrange_more(&mut self, more: &[Found], start: &Value) -> (Vec<usize>, Vec<usize>) {
        let (mut begin, mut load) = (Vec::new(), Vec::new());
        for found in more {
            let Ok(key) = &found.runs else { continue };
            let place = self.links.iter().position(|link| link.runs(key));
            let place = place.unwrap_or_else(|| {
                self.links.push(Link::new(key.clone(), start.clone()));
                begin.push(self.links.len() - 1);
                self.links.len() - 1
            });
            let known = &self.found;
            let Some(link) = self.links.get_mut(place) else {
                continue;
            };
            link.sources.push(found.source.clone());
            // Handlers run in the order in which the extensions were found.
            link.sources
                .sort_by_key(|source| known.iter().position(|found| found.source.path == source.path));
            // A process that is only started now loads all its extensions with `open`.
            if !begin.contains(&place) && !load.contains(&place) {
                load.push(place);
            }
        }
        (begin, load)
    }

    /// The key of the process at a place.
    pub(crate) fn key(&self, place: usize) -> Option<&Key> {
        self.links.get(place).map(|link| &link.key)
    }

    /// The keys of all processes.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.links.iter().map(|link| &link.key)
    }

    /// The name of the session towards the processes.
    pub(crate) fn handle(&self) -> &str {
        &self.handle
    }

    /// The processes, if the session has extensions.
    pub(crate) fn pool(&self) -> Option<&ExtensionPool> {
        self.pool.as_ref()
    }

    /// Registrations of all places, in order.
    pub(crate) fn registered(&self) -> &[Registered] {
        &self.registered
    }

    /// Takes the process at a place and what it says about the session from now on.
    pub(super) fn connect(&mut self, place: usize, process: ExtensionProcess) {
        let (Some(pool), Some(link)) = (&self.pool, self.links.get_mut(place)) else {
            return;
        };
        link.messages = Some(pool.put(place, process, &self.handle));
        // A new process knows nothing; it gets all entries with the header.
        link.entries = 0;
        // `open` asks for all of them.
        link.requested = link.paths().into_iter().collect();
    }

    /// Waits for the next message of a process. Never resolves without processes. Cancel-safe.
    pub(super) async fn next_message(&mut self) -> (usize, ProcessMessage) {
        poll_fn(|context| {
            for (place, link) in self.links.iter_mut().enumerate() {
                let Some(messages) = &mut link.messages else {
                    continue;
                };
                match messages.poll_recv(context) {
                    Poll::Ready(Some(message)) => return Poll::Ready((place, message)),
                    // A closed channel would be ready at every poll.
                    Poll::Ready(None) => link.messages = None,
                    Poll::Pending => {}
                }
            }
            Poll::Pending
        })
        .await
    }

    /// A message that a process has already sent, and its place.
    pub(crate) fn try_next_message(&mut self) -> Option<(usize, ProcessMessage)> {
        let mut links = self.links.iter_mut().enumerate();
        links.find_map(|(place, link)| Some((place, link.messages.as_mut()?.try_recv().ok()?)))
    }

    /// Stops reading messages of all processes.
    pub(super) fn disconnect(&mut self) {
        for link in &mut self.links {
            link.messages = None;
        }
    }

    /// Translates the numbers of calls in a message to ours. `None` for the withdrawal of a call that was answered already.
    pub(crate) fn accept(&self, place: usize, message: ProcessMessage) -> Option<ProcessMessage> {
        self.pool.as_ref()?.heard(place, message)
    }

    /// Sends changes of the session's state, and entries that no file has, to the processes.
    pub(crate) fn send_state(&mut self, changed: &Map<String, Value>) {
        if let Some(pool) = self.pool.as_ref().filter(|_| !changed.is_empty()) {
            pool.state(&self.handle, changed);
        }
    }

    /// Sends each process the entries that it has not been sent. The first ones come with the session's header.
    pub(crate) fn send_entries<E: Serialize, H: Serialize>(&mut self, entries: &[E], header: &H) {
        let Some(pool) = &self.pool else { return };
        for (place, link) in self.links.iter_mut().enumerate() {
            // A process that is being started again gets them all when it is there.
            if !pool.is_there(place) {
                continue;
            }
            if let Some(new) = entries.get(link.entries..).filter(|new| !new.is_empty()) {
                let header = (link.entries == 0).then_some(header);
                // An entry that cannot be written as JSON is in no file either.
                let _sent = pool.entries(place, &self.handle, link.entries, &new, header);
                link.entries = entries.len();
            }
        }
    }

    /// Adds registrations of extensions at a place that were just loaded.
    pub(super) fn register(&mut self, place: usize, loaded: Vec<Registered>) {
        let Some(pool) = &self.pool else { return };
        let mut registered = pool.registered_at(place);
        // A `changed` that followed the answer may be handled before it, and is newer (`accept_messages`).
        let is_new = |new: &Registered| registered.iter().all(|known| known.path != new.path);
        let loaded: Vec<Registered> = loaded.into_iter().filter(is_new).collect();
        registered.extend(loaded);
        // In the order in which the extensions were found.
        registered.sort_by_key(|registered| {
            // An extension that was found in a directory is listed under the directory.
            let path = registered.given.as_ref().unwrap_or(&registered.path);
            self.found.iter().position(|found| found.source.path == *path)
        });
        pool.register(place, registered);
        self.refresh_registered();
    }

    /// Replaces the registrations of one extension at a place. Returns false if there is no such place.
    pub(super) fn change_registered(&mut self, place: usize, registered: Registered) -> bool {
        let (Some(link), Some(pool)) = (self.links.get(place), &self.pool) else {
            return false;
        };
        pool.change(place, link.completed(registered));
        self.refresh_registered();
        true
    }

    /// Takes the list of models that a provider of an extension has found.
    pub(crate) fn set_models(&mut self, provider: &str, models: Value) {
        if let Some(pool) = &self.pool {
            pool.models_found(provider, models);
            self.registered = pool.registered();
        }
    }

    /// Takes the registrations from the pool, and which places check calls.
    pub(super) fn refresh_registered(&mut self) {
        let pool = self.pool.as_ref();
        self.registered = pool.map(ExtensionPool::registered).unwrap_or_default();
        for (place, link) in self.links.iter_mut().enumerate() {
            // A process that ended has no registrations; it remains a guard until it has loaded again.
            if let Some(pool) = pool.filter(|pool| pool.is_there(place))
                && link.progress != Progress::Loading
            {
                link.guards = pool.hears(place, "tool_call");
            }
        }
    }

    /// A process has ended. Returns the calls of its extensions that need no answer any more, and the failure to report. It
    /// names the extension that the process was running, if it is known.
    pub(super) fn lose(&mut self, place: usize, reason: &str) -> Option<(Vec<u64>, Failure)> {
        let link = self.links.get_mut(place)?;
        // What the process still had to say is of no use: its calls have ended with it.
        link.messages = None;
        // To its extensions this is no new session.
        link.start = json!({"type": "session_start", "reason": "reload"});
        link.progress = Progress::Loading;
        let has_one = matches!(link.key, Key::Program(_)) || link.sources.len() == 1;
        let own = link.paths();
        let pool = self.pool.as_ref();
        let (calls, suspects) = pool.map(|pool| pool.lose(place)).unwrap_or_default();
        self.refresh_registered();
        // With a single extension there is no doubt, whether or not it was busy.
        let suspects = if has_one { own } else { suspects };
        let (path, over) = match suspects.as_slice() {
            [] => ("<runtime>", String::new()),
            [path] => (path.as_str(), String::new()),
            several => ("<runtime>", format!(" (it was busy with {})", several.join(", "))),
        };
        let error = format!("The extension process ended: {reason}{over}");
        Some((calls, failure(path, "process", error)))
    }

    /// Returns true if an extension registers models at one of these places.
    pub(crate) fn brings_models(&self, places: &[usize]) -> bool {
        self.pool.as_ref().is_some_and(|pool| {
            let mut registered = places.iter().flat_map(|place| pool.registered_at(*place));
            registered.any(|extension| !extension.providers.is_empty())
        })
    }

    /// Returns true if an extension listens to the event.
    pub(crate) fn hears(&self, event: &str) -> bool {
        let listens = |extension: &Registered| extension.events.iter().any(|name| name == event);
        self.pool.is_some() && self.registered.iter().any(listens)
    }

    /// Returns true if the process at a place has extensions that listen to the event.
    pub(super) fn hears_at(&self, place: usize, event: &str) -> bool {
        let pool = self.pool.as_ref();
        pool.is_some_and(|pool| pool.hears(place, event))
    }

    /// Returns true if a process that checks calls is not there.
    pub(crate) fn misses_a_guard(&self) -> bool {
        let mut links = self.links.iter().enumerate();
        links.any(|(place, link)| link.guards && !self.hears_at(place, "tool_call"))
    }

    /// Returns true while a process is being started or loading.
    pub(super) fn is_loading(&self) -> bool {
        let mut links = self.links.iter();
        links.any(|link| !matches!(link.progress, Progress::Ready | Progress::Unavailable))
    }

    /// Returns true if the session has begun for at least one process, and for all that have loaded.
    pub(super) fn has_begun(&self) -> bool {
        let mut links = self.links.iter();
        links.clone().any(|link| link.progress == Progress::Ready)
            && links.all(|link| !matches!(link.progress, Progress::Starting | Progress::Loaded))
    }

    /// Returns true if the session begins, or has begun, for the process at a place.
    pub(crate) fn has_begun_at(&self, place: usize) -> bool {
        matches!(self.progress(place), Some(Progress::Starting | Progress::Ready))
    }

    /// Returns true if a process was started again since the session began.
    pub(crate) fn has_restarted(&self) -> bool {
        self.links.iter().any(Link::is_restarted)
    }

    /// The places of processes that have loaded and wait for the session to begin.
    pub(super) fn loaded(&self) -> Vec<usize> {
        let links = self.links.iter().enumerate();
        let loaded = links.filter(|(_, link)| link.progress == Progress::Loaded);
        loaded.map(|(place, _)| place).collect()
    }

    /// Paths of extensions that are not loaded yet.
    pub(super) fn unloaded(&self) -> Vec<String> {
        let links = self.links.iter();
        let loading = links.filter(|link| link.progress == Progress::Loading);
        loading.flat_map(Link::paths).collect()
    }

    pub(super) fn progress(&self, place: usize) -> Option<Progress> {
        self.links.get(place).map(|link| link.progress)
    }

    pub(super) fn set_progress(&mut self, place: usize, progress: Progress) {
        if let Some(link) = self.links.get_mut(place) {
            link.progress = progress;
        }
    }

    /// The slash command in a text, if an extension has registered it.
    pub(crate) fn command(&self, text: &str) -> Option<SlashCommand> {
        let line = text.strip_prefix('/')?;
        let (name, args) = line.split_once(' ').unwrap_or((line, ""));
        let mut named = self.named_commands().into_iter();
        let (_, owner, command) = named.find(|(invocation, ..)| invocation == name)?;
        Some(SlashCommand {
            extension: owner.path.clone(),
            name: command.name.clone(),
            called: name.to_owned(),
            args: args.to_owned(),
        })
    }

    /// The commands of all extensions with the names that call them. As in pi, commands of the same name are called by their number:
    /// `name:1`, `name:2`.
    fn named_commands(&self) -> Vec<(String, &Registered, &Command)> {
        let extensions = self.registered.iter();
        let commands: Vec<_> = extensions
            .flat_map(|extension| {
                let commands = extension.commands.iter().take(limits::REGISTRATIONS);
                commands.map(move |command| (extension, command))
            })
            .collect();
        let mut count: HashMap<&str, usize> = HashMap::new();
        for (_, command) in &commands {
            *count.entry(&command.name).or_default() += 1;
        }
        let mut number: HashMap<&str, usize> = HashMap::new();
        let mut taken = HashSet::new();
        let named = commands.into_iter().map(|(extension, command)| {
            let number = number.entry(&command.name).or_default();
            *number += 1;
            let is_alone = count.get(command.name.as_str()) == Some(&1);
            let first = if is_alone {
                command.name.clone()
            } else {
                format!("{}:{number}", command.name)
            };
            // Another command may have a number in its own name.
            let further = (*number + 1..).map(|number| format!("{}:{number}", command.name));
            let mut names = std::iter::once(first).chain(further);
            let name = names.find(|name| !taken.contains(name)).unwrap_or_default();
            taken.insert(name.clone());
            (name, extension, command)
        });
        named.collect()
    }

    /// The slash commands of all extensions, by the names that call them.
    pub(crate) fn commands(&self) -> Vec<CommandInfo> {
        let info = |path: &String| {
            let mut found = self.found.iter();
            found
                .find(|found| found.source.path == *path)
                .map(|found| &found.info)
        };
        let named = self.named_commands().into_iter();
        let shown = named.filter_map(|(name, extension, command)| {
            let given = || extension.given.as_ref().and_then(info);
            let info = info(&extension.path).or_else(given)?;
            Some(CommandInfo {
                name,
                ..CommandInfo::of_extension(command, info)
            })
        });
        shown.collect()
    }

    /// The shortcuts of all extensions. If two register the same keys, the first one counts.
    pub(crate) fn shortcuts(&self) -> Shortcuts {
        let mut shortcuts: Vec<Shortcut> = Vec::new();
        for extension in &self.registered {
            for key in extension.shortcuts.iter().take(limits::REGISTRATIONS) {
                if shortcuts.iter().all(|known| known.shortcut != key.shortcut) {
                    shortcuts.push(Shortcut {
                        shortcut: key.shortcut.clone(),
                        description: key.description.clone(),
                        extension_path: extension.path.clone(),
                    });
                }
            }
        }
        Shortcuts { shortcuts }
    }

    /// Answers a call of an extension. Does nothing for a call without an id.
    pub(crate) fn answer(&self, id: Option<u64>, outcome: Result<Value, String>) {
        // The caller of a session change that did not happen has been left already.
        let (Some(id), Some(pool)) = (id, self.pool.as_ref().or(self.left.as_ref())) else {
            return;
        };
        match outcome {
            Ok(value) => drop(pool.answer(id, &value)),
            Err(error) => pool.refuse(id, &error),
        }
    }

    /// A call that a tool of an extension made has ended.
    pub(crate) fn answer_nested(&mut self, request: u64, result: ToolResult, is_error: bool) {
        let mut answer = json!(result);
        put(&mut answer, "isError", json!(is_error));
        self.answer(Some(request), Ok(answer));
    }

    /// A call that a tool of an extension made has come further.
    pub(crate) fn update_nested(&self, request: u64, partial: &ToolResult) {
        if let Some(process) = self.pool() {
            // Text that is no JSON is no update.
            let _sent = process.update_now(request, partial);
        }
    }

    /// Replies to a client or to an extension.
    pub(crate) async fn reply<R: Into<Reply> + Serialize>(
        &mut self,
        asker: Asker<R>,
        outcome: Result<R, String>,
    ) {
        match asker {
            Asker::Client(responder) => responder.respond(outcome).await,
            Asker::Extension(id) => {
                let value = |reply| serde_json::to_value(reply).unwrap_or_default();
                self.answer(id, outcome.map(value));
            }
        }
    }
}

/// The registrations in the answer to `open` or `extensions.load`. Null stands for none.
pub(super) fn opened(answer: Result<Value, ProcessError>) -> Result<Opened, ProcessError> {
    answer.and_then(|value| match value {
        Value::Null => Ok(Opened::default()),
        value => serde_json::from_value(value).map_err(|error| ProcessError::Odd(error.to_string())),
    })
}
