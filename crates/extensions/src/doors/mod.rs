//! The processes that a session's extensions live in, as one: who listens is asked one after the other and their answers are
//! combined (`combine`), calls go to the process whose extension is meant, and calls of theirs get numbers that are unique.
//! Processes are asked in the order of their places: the TypeScript host first, then programs as they were found.

pub mod combine;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::door::{Answer, Asking, Door, Said};
use crate::error::DoorError;
use crate::line::{Failure, Registered, Source};

/// Paths of extensions.
type Whose = Arc<[String]>;

/// The processes of a session's extensions. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Doors {
    book: Arc<Mutex<Book>>,
}

#[derive(Debug, Default)]
struct Book {
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
    door: Door,
    /// The process' own number.
    id: u64,
}

/// A process at its place.
#[derive(Debug, Default)]
struct Link {
    door: Option<Door>,
    registered: Vec<Registered>,
    /// Who listens, by event.
    listeners: HashMap<String, Whose>,
}

impl Doors {
    /// No process is at any place any more; calls of theirs are still owed an answer.
    pub fn clear(&self) {
        self.book().links.clear();
    }

    /// There is a process at this place now. What it says about the session comes out; each goes through
    /// [`heard`](Self::heard) before anything else is done with it.
    #[must_use]
    pub fn put(&self, place: usize, door: Door, session: &str) -> mpsc::Receiver<Said> {
        let said = door.attach(session);
        let mut book = self.book();
        if book.links.len() <= place {
            book.links.resize_with(place + 1, Link::default);
        }
        if let Some(link) = book.links.get_mut(place) {
            *link = Link {
                door: Some(door),
                ..Link::default()
            };
        }
        said
    }

    /// The process at a place is gone. Gives the numbers of calls that nobody waits for any more, and the extensions that it was
    /// busy with.
    pub fn lose(&self, place: usize) -> (Vec<u64>, Vec<String>) {
        let mut book = self.book();
        let link = book.links.get_mut(place).map(std::mem::take).unwrap_or_default();
        let calls = book
            .calls
            .extract_if(|_, call| call.place == place || call.door.is_gone());
        let calls: Vec<u64> = calls.map(|(number, _)| number).collect();
        let suspects = link.door.map(|door| door.suspects()).unwrap_or_default();
        (calls, suspects)
    }

    /// Is there a process at this place?
    #[must_use]
    pub fn is_there(&self, place: usize) -> bool {
        self.book().door(place).is_some()
    }

    /// What the extensions at a place registered, all of them.
    pub fn register(&self, place: usize, registered: Vec<Registered>) {
        if let Some(link) = self.book().links.get_mut(place) {
            link.register(registered);
        }
    }

    /// What one extension at a place registered, anew.
    pub fn change(&self, place: usize, changed: Registered) {
        if let Some(link) = self.book().links.get_mut(place) {
            let mut registered = std::mem::take(&mut link.registered);
            match registered.iter_mut().find(|known| known.path == changed.path) {
                Some(known) => *known = changed,
                None => registered.push(changed),
            }
            link.register(registered);
        }
    }

    /// Everything that is registered, in the order of the places.
    #[must_use]
    pub fn registered(&self) -> Vec<Registered> {
        let book = self.book();
        let all = book.links.iter().flat_map(|link| link.registered.iter());
        all.cloned().collect()
    }

    /// Does somebody at this place listen to the event?
    #[must_use]
    pub fn hears(&self, place: usize, event: &str) -> bool {
        let book = self.book();
        let link = book.links.get(place);
        link.is_some_and(|link| link.door.is_some() && link.listeners.contains_key(event))
    }

    /// What a process said, with numbers of ours. None: it takes back what was answered already.
    #[must_use]
    pub fn heard(&self, place: usize, said: Said) -> Option<Said> {
        let mut book = self.book();
        match said {
            Said::Call {
                id: Some(theirs),
                method,
                params,
            } => {
                let door = book.door(place)?.clone();
                book.last += 1;
                let ours = book.last;
                let id = theirs;
                book.calls.insert(ours, Call { place, door, id });
                let id = Some(ours);
                Some(Said::Call { id, method, params })
            }
            Said::Withdrawn(theirs) => {
                let mut calls = book.calls.iter();
                let (ours, _) = calls.find(|(_, call)| call.place == place && call.id == theirs)?;
                let ours = *ours;
                book.calls.remove(&ours);
                Some(Said::Withdrawn(ours))
            }
            said => Some(said),
        }
    }

    /// Answers a call of theirs.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn answer(&self, id: u64, value: &impl Serialize) -> Result<(), DoorError> {
        match self.caller(id) {
            Some((door, id)) => door.answer(id, value),
            None => Ok(()),
        }
    }

    /// Refuses a call of theirs.
    pub fn refuse(&self, id: u64, message: &str) {
        if let Some((door, id)) = self.caller(id) {
            door.refuse(id, message);
        }
    }

    fn caller(&self, id: u64) -> Option<(Door, u64)> {
        let call = self.book().calls.remove(&id)?;
        Some((call.door, call.id))
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
    ) -> Result<Asking, DoorError> {
        let whose: Whose = extensions.iter().map(|source| source.path.clone()).collect();
        let door = self.at(place)?;
        let asking = door.open_session(session, extensions, flags, state)?;
        Ok(asking.blaming(&whose))
    }

    /// Forgets a session everywhere; resolves when all have.
    #[must_use]
    pub fn close_session(&self, session: &str, reason: &str) -> Asking {
        let doors = self.book().doors();
        let askings: Vec<Asking> = doors
            .iter()
            .map(|door| door.close_session(session, reason))
            .collect();
        let all = async move {
            for asking in askings {
                // Who is gone has forgotten it.
                let _closed = asking.await;
            }
            Ok(Answer::default())
        };
        Asking::several(all, CancellationToken::new())
    }

    /// Tells all that the run of a session was aborted.
    pub fn abort(&self, session: &str) {
        for door in self.book().doors() {
            door.abort(session);
        }
    }

    /// Tells all what changed of a session.
    pub fn state(&self, session: &str, state: &Map<String, Value>) {
        for door in self.book().doors() {
            door.state(session, state);
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
    ) -> Result<(), DoorError> {
        self.at(place)?.entries(session, from, entries, header)
    }

    /// Tells those who listen of something that happened.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn tell(&self, session: &str, name: &str, event: &impl Serialize) -> Result<(), DoorError> {
        for (door, _) in self.book().listeners(name) {
            door.tell(session, name, event)?;
        }
        Ok(())
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
    ) -> Result<Asking, DoorError> {
        let whose = self.book().whose(place, name);
        Ok(self.at(place)?.event(session, name, event)?.blaming(&whose))
    }

    /// Asks all who listen, one after the other; the answer is what theirs come to.
    ///
    /// # Errors
    /// When the event cannot be written as JSON, or nobody is there.
    pub fn event(&self, session: &str, name: &str, event: &impl Serialize) -> Result<Asking, DoorError> {
        let mut listeners = self.book().listeners(name).into_iter();
        let Some((first, whose)) = listeners.next() else {
            return Err(nobody());
        };
        let asking = first.event(session, name, event)?.blaming(&whose);
        let rest: Vec<(Door, Whose)> = listeners.collect();
        if rest.is_empty() {
            return Ok(asking);
        }
        let event = serde_json::to_value(event).map_err(|error| DoorError::Odd(error.to_string()))?;
        let cancel = CancellationToken::new();
        let round = Round {
            session: session.to_owned(),
            name: name.to_owned(),
            event,
            sum: Answer::default(),
            cancel: cancel.clone(),
        };
        Ok(Asking::several(round.go((asking, whose), rest), cancel))
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
    ) -> Result<Asking, DoorError> {
        let params = serde_json::to_value(params).map_err(|error| DoorError::Odd(error.to_string()))?;
        let (place, whose) = self.book().meant(method, &params);
        let asking = self.at(place)?.call(session, method, &params, updates)?;
        Ok(asking.blaming(&whose))
    }

    fn at(&self, place: usize) -> Result<Door, DoorError> {
        self.book().door(place).cloned().ok_or_else(nobody)
    }

    /// A table has no broken state, so a poisoned lock is as good as any.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nobody() -> DoorError {
    DoorError::Gone("it has just ended".to_owned())
}

impl Book {
    fn door(&self, place: usize) -> Option<&Door> {
        self.links.get(place)?.door.as_ref()
    }

    fn doors(&self) -> Vec<Door> {
        self.links.iter().filter_map(|link| link.door.clone()).collect()
    }

    fn listeners(&self, event: &str) -> Vec<(Door, Whose)> {
        let there = self.links.iter().filter_map(|link| {
            let whose = link.listeners.get(event)?;
            Some((link.door.clone()?, Arc::clone(whose)))
        });
        there.collect()
    }

    fn whose(&self, place: usize, event: &str) -> Whose {
        let link = self.links.get(place);
        let whose = link.and_then(|link| link.listeners.get(event));
        whose.cloned().unwrap_or_default()
    }

    /// The place and the extension that a call is for: the one it names, else the one that has what it names, else the first
    /// place.
    fn meant(&self, method: &str, params: &Value) -> (usize, Whose) {
        let named = |name: &str| params.get(name).and_then(Value::as_str);
        let has = |extension: &Registered| match (named("extension"), named("provider"), named("name")) {
            (Some(path), ..) => extension.path == path || extension.given.as_deref() == Some(path),
            (None, Some(name), _) => extension.providers.iter().any(|provider| provider.name == name),
            (None, None, Some(name)) if method.starts_with("command.") => {
                extension.commands.iter().any(|command| command.name == name)
            }
            (None, None, Some(name)) => extension.tools.iter().any(|tool| tool.name == name),
            (None, None, None) => false,
        };
        for (place, link) in self.links.iter().enumerate() {
            if let Some(extension) = link.registered.iter().find(|extension| has(extension)) {
                return (place, Arc::from([extension.path.clone()]));
            }
        }
        (0, Whose::default())
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
            .map(|(event, whose)| (event.to_owned(), Whose::from(whose)))
            .collect();
        self.registered = registered;
    }
}

/// An event on its way through several processes.
struct Round {
    session: String,
    name: String,
    event: Value,
    sum: Answer,
    cancel: CancellationToken,
}

impl Round {
    async fn go(mut self, first: (Asking, Whose), rest: Vec<(Door, Whose)>) -> Result<Answer, DoorError> {
        let (mut asking, mut whose) = first;
        let mut rest = rest.into_iter();
        loop {
            let answer = self.answer(asking).await;
            if self.take(answer, &whose)? || self.cancel.is_cancelled() {
                return self.end();
            }
            asking = loop {
                let Some((door, next)) = rest.next() else {
                    return self.end();
                };
                match door.event(&self.session, &self.name, &self.event) {
                    Ok(asking) => {
                        whose = next;
                        break asking.blaming(&whose);
                    }
                    Err(error) => drop(self.take(Err(error), &next)?),
                }
            };
        }
    }

    async fn answer(&self, mut asking: Asking) -> Result<Answer, DoorError> {
        tokio::select! {
            biased;
            answer = &mut asking => return answer,
            () = self.cancel.cancelled() => asking.cancel(),
        }
        asking.await
    }

    /// Takes an answer in. True when nobody else is to be asked. Who fails is left out, but not where a call waits for its
    /// permission.
    fn take(&mut self, answer: Result<Answer, DoorError>, whose: &Whose) -> Result<bool, DoorError> {
        match answer {
            Ok(answer) => {
                self.sum.errors.extend(answer.errors);
                let rule = combine::rule(&self.name);
                Ok(rule.take(&mut self.event, &mut self.sum.value, answer.value))
            }
            Err(error) if self.name == "tool_call" => Err(error),
            // That the process is gone is told otherwise.
            Err(DoorError::Gone(_)) => Ok(false),
            Err(error) => {
                self.sum.errors.push(Failure {
                    path: whose.first().cloned().unwrap_or_default(),
                    event: self.name.clone(),
                    error: error.to_string(),
                    stack: None,
                });
                Ok(false)
            }
        }
    }

    fn end(self) -> Result<Answer, DoorError> {
        if self.name == "tool_call" && self.cancel.is_cancelled() && self.sum.value.get("block").is_none() {
            return Err(DoorError::Failed("The check was cancelled".to_owned()));
        }
        Ok(self.sum)
    }
}
