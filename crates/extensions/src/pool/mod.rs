//! The processes that a session's extensions live in, as one: who listens is asked one after the other and their answers are
//! combined (`crate::combining`, in `round`), calls go to the process whose extension is meant, and calls of theirs get numbers that are unique.
//! Processes are asked in the order of their places: the TypeScript host first, then programs as they were found.

mod round;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::round::Round;
use crate::combining::{Rule, rule};
use crate::error::ProcessError;
use crate::line::{Era, Provider, Registered, Source};
use crate::process::{Answer, ExtensionProcess, PendingAnswer, ProcessMessage, Updates};

/// The method that asks a provider for its models.
const REFRESH_MODELS: &str = "provider.refreshModels";

/// The paths of the extensions that a request concerns.
type ExtensionPaths = Arc<[String]>;

/// The processes of a session's extensions. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ExtensionPool {
    shared: Arc<Mutex<PoolState>>,
}

#[derive(Debug, Default)]
struct PoolState {
    links: Vec<Link>,
    /// Number of the last call of theirs.
    last: u64,
    /// Calls of theirs that are owed an answer, by our number.
    calls: HashMap<u64, Call>,
}

/// A call of theirs.
#[derive(Debug)]
struct Call {
    place: usize,
    process: ExtensionProcess,
    /// The process' own number.
    id: u64,
}

/// A process at its place.
#[derive(Debug, Default)]
struct Link {
    process: Option<ExtensionProcess>,
    registered: Vec<Registered>,
    /// Who listens, by event.
    listeners: HashMap<String, ExtensionPaths>,
}

impl ExtensionPool {
    /// No process is at any place any more; calls of theirs are still owed an answer.
    pub fn clear(&self) {
        self.lock().links.clear();
    }

    /// There is a process at this place now. What it says about the session comes out; each goes through
    /// [`heard`](Self::heard) before anything else is done with it.
    #[must_use]
    pub fn put(
        &self,
        place: usize,
        process: ExtensionProcess,
        session: &str,
    ) -> mpsc::Receiver<ProcessMessage> {
        let said = process.attach(session);
        let mut state = self.lock();
        if state.links.len() <= place {
            state.links.resize_with(place + 1, Link::default);
        }
        if let Some(link) = state.links.get_mut(place) {
            *link = Link {
                process: Some(process),
                ..Link::default()
            };
        }
        said
    }

    /// Removes the process at a place after its end. Returns the numbers of its open calls, and the extensions that it
    /// was running.
    pub fn lose(&self, place: usize) -> (Vec<u64>, Vec<String>) {
        let mut state = self.lock();
        let link = state.links.get_mut(place).map(std::mem::take).unwrap_or_default();
        let calls = state
            .calls
            .extract_if(|_, call| call.place == place || call.process.is_gone());
        let calls: Vec<u64> = calls.map(|(number, _)| number).collect();
        let suspects = link.process.map(|process| process.suspects()).unwrap_or_default();
        (calls, suspects)
    }

    /// Returns true if there is a process at this place.
    #[must_use]
    pub fn is_there(&self, place: usize) -> bool {
        self.lock().process(place).is_some()
    }

    /// What the extensions at a place registered, all of them.
    pub fn register(&self, place: usize, registered: Vec<Registered>) {
        if let Some(link) = self.lock().links.get_mut(place) {
            link.register(registered);
        }
    }

    /// What one extension at a place registered, anew.
    pub fn change(&self, place: usize, changed: Registered) {
        if let Some(link) = self.lock().links.get_mut(place) {
            let mut registered = std::mem::take(&mut link.registered);
            match registered.iter_mut().find(|known| known.path == changed.path) {
                Some(known) => *known = changed,
                None => registered.push(changed),
            }
            link.register(registered);
        }
    }

    /// A provider of theirs has found out which models it has.
    pub fn models_found(&self, provider: &str, models: Value) {
        let mut state = self.lock();
        let extensions = state.links.iter_mut().flat_map(|link| link.registered.iter_mut());
        let providers = extensions.flat_map(|extension| extension.providers.iter_mut());
        // The extension that was asked for them (`PoolState::meant`).
        let mut answering = providers.filter(|known| known.name == provider && known.answers(REFRESH_MODELS));
        if let Some(provider) = answering.next_back()
            && let Value::Object(config) = &mut provider.config
        {
            config.insert("models".to_owned(), models);
        }
    }

    /// The registrations of a place.
    #[must_use]
    pub fn registered_at(&self, place: usize) -> Vec<Registered> {
        let state = self.lock();
        let link = state.links.get(place);
        link.map(|link| link.registered.clone()).unwrap_or_default()
    }

    /// Everything that is registered, in the order of the places.
    #[must_use]
    pub fn registered(&self) -> Vec<Registered> {
        let state = self.lock();
        let all = state.links.iter().flat_map(|link| link.registered.iter());
        all.cloned().collect()
    }

    /// Returns true if an extension at this place listens to the event.
    #[must_use]
    pub fn hears(&self, place: usize, event: &str) -> bool {
        let state = self.lock();
        let link = state.links.get(place);
        link.is_some_and(|link| link.process.is_some() && link.listeners.contains_key(event))
    }

    /// Converts a line of a process to our numbers. None: it withdraws a call that was answered already.
    #[must_use]
    pub fn heard(&self, place: usize, said: ProcessMessage) -> Option<ProcessMessage> {
        let mut state = self.lock();
        match said {
            ProcessMessage::Call {
                id: Some(theirs),
                method,
                params,
            } => {
                let process = state.process(place)?.clone();
                state.last += 1;
                let ours = state.last;
                let id = theirs;
                state.calls.insert(ours, Call { place, process, id });
                let id = Some(ours);
                Some(ProcessMessage::Call { id, method, params })
            }
            ProcessMessage::Withdrawn(theirs) => {
                let mut calls = state.calls.iter();
                let (ours, _) = calls.find(|(_, call)| call.place == place && call.id == theirs)?;
                let ours = *ours;
                state.calls.remove(&ours);
                Some(ProcessMessage::Withdrawn(ours))
            }
            said => Some(said),
        }
    }

    /// Answers a call of theirs.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn answer(&self, id: u64, value: &impl Serialize) -> Result<(), ProcessError> {
        match self.caller(id) {
            Some((process, id)) => process.answer(id, value),
            None => Ok(()),
        }
    }

    /// Refuses a call of theirs.
    pub fn refuse(&self, id: u64, message: &str) {
        if let Some((process, id)) = self.caller(id) {
            process.refuse(id, message);
        }
    }

    /// Sends progress of a call of an extension, once its process has room for it.
    ///
    /// # Errors
    /// When the value cannot be written as JSON, or the call is no longer open.
    pub async fn update(&self, id: u64, value: &impl Serialize) -> Result<(), ProcessError> {
        let (process, id) = self.waiting(id).ok_or_else(gone)?;
        process.update(id, value).await
    }

    /// Sends progress of a call without waiting; later updates replace unsent ones.
    ///
    /// # Errors
    /// When the value cannot be written as JSON, or the call is no longer open.
    pub fn update_now(&self, id: u64, value: &impl Serialize) -> Result<(), ProcessError> {
        let (process, id) = self.waiting(id).ok_or_else(gone)?;
        process.update_now(id, value)
    }

    /// Who made a call that is owed an answer.
    fn waiting(&self, id: u64) -> Option<(ExtensionProcess, u64)> {
        let state = self.lock();
        let call = state.calls.get(&id)?;
        Some((call.process.clone(), call.id))
    }

    fn caller(&self, id: u64) -> Option<(ExtensionProcess, u64)> {
        let call = self.lock().calls.remove(&id)?;
        Some((call.process, call.id))
    }

    /// Loads extensions at a place for a session.
    ///
    /// # Errors
    /// When there is no process, or a value cannot be written as JSON.
    pub fn open_session(
        &self,
        place: usize,
        session: &str,
        extensions: &[Source],
        flags: &Map<String, Value>,
        state: &impl Serialize,
        era: Era,
    ) -> Result<PendingAnswer, ProcessError> {
        let whose: ExtensionPaths = extensions.iter().map(|source| source.path.clone()).collect();
        let process = self.at(place)?;
        let asking = process.open_session(session, extensions, flags, state, era)?;
        Ok(asking.blaming(&whose))
    }

    /// Forgets a session everywhere; resolves when all have.
    #[must_use]
    pub fn close_session(&self, session: &str, reason: &str) -> PendingAnswer {
        let pool = self.lock().pool();
        let askings: Vec<PendingAnswer> = pool
            .iter()
            .map(|process| process.close_session(session, reason))
            .collect();
        let all = async move {
            for asking in askings {
                // Who is gone has forgotten it.
                let _closed = asking.await;
            }
            Ok(Answer::default())
        };
        PendingAnswer::several(all, CancellationToken::new())
    }

    /// Tells all that the run of a session was aborted.
    pub fn abort(&self, session: &str) {
        for process in self.lock().pool() {
            process.abort(session);
        }
    }

    /// Tells all what changed of a session.
    pub fn state(&self, session: &str, state: &Map<String, Value>) {
        for process in self.lock().pool() {
            process.state(session, state);
        }
    }

    /// Tells one of entries that no file has.
    ///
    /// # Errors
    /// When they cannot be written as JSON.
    pub fn entries(
        &self,
        place: usize,
        session: &str,
        from: usize,
        entries: &impl Serialize,
        header: Option<&impl Serialize>,
    ) -> Result<(), ProcessError> {
        self.at(place)?.entries(session, from, entries, header)
    }

    /// Tells those who listen of something that happened.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn tell(&self, session: &str, name: &str, event: &impl Serialize) -> Result<(), ProcessError> {
        for (process, _) in self.lock().listeners(name) {
            process.tell(session, name, event)?;
        }
        Ok(())
    }

    /// Sends an event to the process at a place, even if no extension there listens.
    ///
    /// # Errors
    /// When there is no process, or the event cannot be written as JSON.
    pub fn tell_at(
        &self,
        place: usize,
        session: &str,
        name: &str,
        event: &impl Serialize,
    ) -> Result<(), ProcessError> {
        self.at(place)?.tell(session, name, event)
    }

    /// Asks those at one place who listen to an event.
    ///
    /// # Errors
    /// When there is no process, or the event cannot be written as JSON.
    pub fn event_at(
        &self,
        place: usize,
        session: &str,
        name: &str,
        event: &impl Serialize,
    ) -> Result<PendingAnswer, ProcessError> {
        let whose = self.lock().whose(place, name);
        Ok(self.at(place)?.event(session, name, event)?.blaming(&whose))
    }

    /// Sends an event to all listeners, one after the other, and combines their answers.
    ///
    /// # Errors
    /// When the event cannot be written as JSON, or there is no listener.
    pub fn event(
        &self,
        session: &str,
        name: &str,
        event: &impl Serialize,
    ) -> Result<PendingAnswer, ProcessError> {
        let mut listeners = self.lock().listeners(name).into_iter();
        let Some((first, whose)) = listeners.next() else {
            return Err(gone());
        };
        let asking = first.event(session, name, event)?.blaming(&whose);
        let rest: Vec<(ExtensionProcess, ExtensionPaths)> = listeners.collect();
        // Who named a path has to be known; one process alone may not say so.
        if rest.is_empty() && rule(name) != Rule::Collect {
            return Ok(asking);
        }
        let event = serde_json::to_value(event).map_err(|error| ProcessError::Odd(error.to_string()))?;
        let cancel = CancellationToken::new();
        let round = Round::new(session, name, event, cancel.clone());
        Ok(PendingAnswer::several(round.go((asking, whose), rest), cancel))
    }

    /// Has something done by the process whose extension is meant. News of it goes to `updates`.
    ///
    /// # Errors
    /// When there is no process, or the parameters cannot be written as JSON.
    pub fn call(
        &self,
        session: &str,
        method: &str,
        params: &impl Serialize,
        updates: Option<mpsc::Sender<Value>>,
    ) -> Result<PendingAnswer, ProcessError> {
        let params = serde_json::to_value(params).map_err(|error| ProcessError::Odd(error.to_string()))?;
        let (process, whose) = self.whom(method, &params)?;
        Ok(process.call(session, method, &params, updates)?.blaming(&whose))
    }

    /// Calls a method of the process at a place on behalf of these extensions.
    ///
    /// # Errors
    /// When there is no process, or the parameters cannot be written as JSON.
    pub fn call_at(
        &self,
        place: usize,
        session: &str,
        method: &str,
        params: &impl Serialize,
        whose: &[Source],
    ) -> Result<PendingAnswer, ProcessError> {
        let whose: ExtensionPaths = whose.iter().map(|source| source.path.clone()).collect();
        let asking = self.at(place)?.call(session, method, params, None)?;
        Ok(asking.blaming(&whose))
    }

    /// Calls a method whose updates all count, in their order. They end before the answer arrives.
    ///
    /// # Errors
    /// When there is no process, or the parameters cannot be written as JSON.
    pub fn stream(
        &self,
        session: &str,
        method: &str,
        params: &impl Serialize,
    ) -> Result<(PendingAnswer, Updates), ProcessError> {
        let params = serde_json::to_value(params).map_err(|error| ProcessError::Odd(error.to_string()))?;
        let (process, whose) = self.whom(method, &params)?;
        let (asking, updates) = process.stream(session, method, &params)?;
        Ok((asking.blaming(&whose), updates))
    }

    fn whom(&self, method: &str, params: &Value) -> Result<(ExtensionProcess, ExtensionPaths), ProcessError> {
        let meant = self.lock().meant(method, params);
        let (place, whose) = meant.ok_or_else(gone)?;
        Ok((self.at(place)?, whose))
    }

    fn at(&self, place: usize) -> Result<ExtensionProcess, ProcessError> {
        self.lock().process(place).cloned().ok_or_else(gone)
    }

    /// A table has no broken state, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn gone() -> ProcessError {
    ProcessError::Gone("it has just ended".to_owned())
}

impl PoolState {
    fn process(&self, place: usize) -> Option<&ExtensionProcess> {
        self.links.get(place)?.process.as_ref()
    }

    fn pool(&self) -> Vec<ExtensionProcess> {
        self.links
            .iter()
            .filter_map(|link| link.process.clone())
            .collect()
    }

    fn listeners(&self, event: &str) -> Vec<(ExtensionProcess, ExtensionPaths)> {
        let there = self.links.iter().filter_map(|link| {
            let whose = link.listeners.get(event)?;
            Some((link.process.clone()?, Arc::clone(whose)))
        });
        there.collect()
    }

    fn whose(&self, place: usize, event: &str) -> ExtensionPaths {
        let link = self.links.get(place);
        let whose = link.and_then(|link| link.listeners.get(event));
        whose.cloned().unwrap_or_default()
    }

    /// Returns the place and the extension of a call: the named extension, else the owner of the named item. A call
    /// that names no item goes to the first place. A call for an item of an ended process goes to none.
    fn meant(&self, method: &str, params: &Value) -> Option<(usize, ExtensionPaths)> {
        let named = |name: &str| params.get(name).and_then(Value::as_str);
        let names = ["extension", "provider", "shortcut", "name"];
        let Some((what, name)) = names.iter().find_map(|what| Some((*what, named(what)?))) else {
            return Some((0, ExtensionPaths::default()));
        };
        let has = |extension: &Registered| match what {
            "extension" => extension.path == name || extension.given.as_deref() == Some(name),
            "provider" => {
                let mut providers = extension.providers.iter();
                providers.any(|provider| provider.name == name && provider.answers(method))
            }
            "shortcut" => extension.shortcuts.iter().any(|key| key.shortcut == name),
            _ if method.starts_with("command.") => {
                extension.commands.iter().any(|command| command.name == name)
            }
            _ => extension.tools.iter().any(|tool| tool.name == name),
        };
        let links = self.links.iter().enumerate();
        let extensions =
            links.flat_map(|(place, link)| link.registered.iter().map(move |extension| (place, extension)));
        let mut owners = extensions.filter(|(_, extension)| has(extension));
        // What a later extension says of a provider counts, and so do its functions.
        let owner = match what {
            "provider" => owners.next_back(),
            _ => owners.next(),
        };
        let (place, extension) = owner?;
        Some((place, Arc::from([extension.path.clone()])))
    }
}

impl Provider {
    /// Returns true if its extension has a function for the method.
    fn answers(&self, method: &str) -> bool {
        let member = match method {
            "provider.stream" => "streams",
            REFRESH_MODELS => "refreshes",
            _ => return self.config.get("oauth").is_some_and(Value::is_object),
        };
        self.config.get(member) == Some(&Value::Bool(true))
    }
}

impl Link {
    fn register(&mut self, registered: Vec<Registered>) {
        let mut listeners: HashMap<&str, Vec<String>> = HashMap::new();
        for extension in &registered {
            for event in &extension.events {
                listeners.entry(event).or_default().push(extension.path.clone());
            }
        }
        let listeners = listeners.into_iter();
        self.listeners = listeners
            .map(|(event, whose)| (event.to_owned(), ExtensionPaths::from(whose)))
            .collect();
        self.registered = registered;
    }
}
