//! The processes of a session's extensions, each on its own: started, opened, begun, gone and started again without the others
//! noticing. What is the same for all of them is in `opening`.

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use config::extensions::{Found, Key};
use door::line::{Opened, Registered, Source};
use door::{Door, DoorError, Doors, Said};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::extensions::era;
use crate::limits;

use super::super::Session;
use super::{Extended, News, Outcome, Stage, Then, failure};

/// A process of a session's extensions. Its place among the others is its number everywhere.
pub(super) struct Link {
    key: Key,
    /// What it loads, in order.
    sources: Vec<Source>,
    /// Paths of those that it was told to load.
    told: HashSet<String>,
    /// What it says about the session.
    said: Option<mpsc::Receiver<Said>>,
    reach: Reach,
    /// How the session begins for it.
    start: Value,
    /// Entries that it was sent because no file has them.
    pub(super) entries: usize,
    /// One of its extensions checked calls when it was last there.
    guards: bool,
}

/// How far a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// It is being started, or loads.
    Loading,
    /// It has loaded; whether the project is trusted is not decided.
    Loaded,
    /// Its extensions are being told that the session begins.
    Beginning,
    /// It is there.
    There,
    /// It cannot be had.
    Absent,
}

impl Link {
    fn new(key: Key, start: Value) -> Self {
        Self {
            key,
            sources: Vec::new(),
            told: HashSet::new(),
            said: None,
            reach: Reach::Loading,
            start,
            entries: 0,
            guards: false,
        }
    }

    /// What it was not told to load yet.
    fn untold(&self) -> Vec<Source> {
        let untold = self
            .sources
            .iter()
            .filter(|source| !self.told.contains(&source.path));
        untold.cloned().collect()
    }

    /// The extensions that it loads.
    fn paths(&self) -> Vec<String> {
        self.sources.iter().map(|source| source.path.clone()).collect()
    }

    /// Does it have to do with the same thing that another one had to do with?
    fn is(&self, key: &Key) -> bool {
        match (&self.key, key) {
            (Key::Program(one), Key::Program(other)) => one.path == other.path,
            (one, other) => one == other,
        }
    }

    /// What it answered to `open`. A program is one extension, whatever it calls itself.
    fn registered(&self, opened: Opened) -> Vec<Registered> {
        let Key::Program(program) = &self.key else {
            return opened.extensions;
        };
        let mut registered = opened.extensions.into_iter().next().unwrap_or_default();
        registered.path = program.path.to_string_lossy().into_owned();
        if registered.events.is_empty() {
            registered.events.clone_from(&program.events);
        }
        vec![registered]
    }
}

impl Extended {
    /// The processes that what was found needs: the TypeScript host first, then programs as they were found. Checks that an
    /// extension made before hold as long as it is to be loaded.
    pub(super) fn arrange(&mut self, start: &Value) {
        let before = std::mem::take(&mut self.links);
        let mut links: Vec<Link> = Vec::new();
        for Found { source, runs, .. } in &self.found {
            let Ok(key) = runs else { continue };
            let place = links.iter().position(|link| link.is(key));
            let place = place.unwrap_or_else(|| {
                let mut link = Link::new(key.clone(), start.clone());
                link.guards = before.iter().any(|old| old.guards && old.is(key));
                let at = if *key == Key::TypeScript { 0 } else { links.len() };
                links.insert(at, link);
                at
            });
            if let Some(link) = links.get_mut(place) {
                link.sources.push(source.clone());
            }
        }
        self.links = links;
        let doors = self.left.take().unwrap_or_default();
        doors.clear();
        // Who asked for this session is answered even when there is nobody in it.
        let place = if self.links.is_empty() {
            &mut self.left
        } else {
            &mut self.door
        };
        *place = Some(doors);
    }

    /// More extensions are to be loaded. Gives the places that have to be started for them, and those that have to load more; a
    /// process that nobody needed before is the last one, since the others keep their numbers.
    fn arrange_more(&mut self, more: &[Found]) -> (Vec<usize>, Vec<usize>) {
        let start = self.state.start();
        let (mut begin, mut load) = (Vec::new(), Vec::new());
        for found in more {
            let Ok(key) = &found.runs else { continue };
            let place = self.links.iter().position(|link| link.is(key));
            let place = place.unwrap_or_else(|| {
                self.links.push(Link::new(key.clone(), start.clone()));
                begin.push(self.links.len() - 1);
                self.links.len() - 1
            });
            let there = &self.found;
            let at = |source: &Source| there.iter().position(|found| found.source.path == source.path);
            let Some(link) = self.links.get_mut(place) else {
                continue;
            };
            link.sources.push(found.source.clone());
            link.sources.sort_by_key(at);
            if !begin.contains(&place) && !load.contains(&place) {
                load.push(place);
            }
        }
        (begin, load)
    }

    /// In the order in which they were found.
    fn order(&self, registered: &mut [Registered]) {
        registered.sort_by_key(|registered| {
            let path = registered.given.as_ref().unwrap_or(&registered.path);
            self.found.iter().position(|found| found.source.path == *path)
        });
    }

    /// Something that a process has said already, and its place.
    pub(super) fn heard_already(&mut self) -> Option<(usize, Said)> {
        let mut links = self.links.iter_mut().enumerate();
        links.find_map(|(place, link)| Some((place, link.said.as_mut()?.try_recv().ok()?)))
    }

    /// Nobody listens to any of them any more.
    pub(super) fn stop_hearing(&mut self) {
        for link in &mut self.links {
            link.said = None;
        }
    }

    /// Must calls be checked by somebody who is not there?
    pub(in crate::session) fn misses_a_guard(&self) -> bool {
        let hears = |place| {
            let doors = self.door.as_ref();
            doors.is_some_and(|doors| doors.hears(place, "tool_call"))
        };
        let mut links = self.links.iter().enumerate();
        links.any(|(place, link)| link.guards && !hears(place))
    }

    /// Is a process still being started or loading?
    pub(super) fn is_loading(&self) -> bool {
        let mut links = self.links.iter();
        links.any(|link| !matches!(link.reach, Reach::There | Reach::Absent))
    }

    /// Has the session begun for all that have loaded, and for one at least?
    pub(super) fn has_begun(&self) -> bool {
        let mut links = self.links.iter();
        links.clone().any(|link| link.reach == Reach::There)
            && links.all(|link| !matches!(link.reach, Reach::Beginning | Reach::Loaded))
    }

    /// Was a process started anew since the session began?
    pub(super) fn has_restarted(&self) -> bool {
        let mut links = self.links.iter();
        links.any(|link| link.start.get("reason") == Some(&json!("reload")))
    }

    /// Extensions that are not loaded yet.
    pub(super) fn unloaded(&self) -> Vec<String> {
        let links = self.links.iter().filter(|link| link.reach == Reach::Loading);
        links.flat_map(Link::paths).collect()
    }

    fn set_reach(&mut self, place: usize, reach: Reach) {
        if let Some(link) = self.links.get_mut(place) {
            link.reach = reach;
        }
    }

    /// Is the process at a place being started?
    fn is_starting(&self, place: usize) -> bool {
        self.waits
            .values()
            .any(|wait| matches!(wait.then, Then::Door(at) if at == place))
    }

    /// What is registered has changed at the doors.
    fn take_registered(&mut self) {
        self.registered = self.door.as_ref().map(Doors::registered).unwrap_or_default();
        for (place, link) in self.links.iter_mut().enumerate() {
            let doors = self.door.as_ref();
            // When a process died nothing is registered, and what was guarded stays so.
            if doors.is_some_and(|doors| doors.is_there(place)) && link.reach != Reach::Loading {
                link.guards = doors.is_some_and(|doors| doors.hears(place, "tool_call"));
            }
        }
    }
}

/// The next thing that a process says, and its place. Cancel-safe. Never resolves when none is there.
pub(super) async fn heard(links: &mut [Link]) -> (usize, Said) {
    poll_fn(|context| {
        for (place, link) in links.iter_mut().enumerate() {
            let Some(said) = &mut link.said else { continue };
            match said.poll_recv(context) {
                Poll::Ready(Some(said)) => return Poll::Ready((place, said)),
                Poll::Ready(None) => link.said = None,
                Poll::Pending => {}
            }
        }
        Poll::Pending
    })
    .await
}

impl Session {
    /// Programs that run for this session are not used for the next one: what they are made of may have changed.
    pub(in crate::session) fn renew_processes(&self) {
        for link in &self.extensions.links {
            self.agent.extensions.renew(&link.key);
        }
    }

    /// Starts the process at a place, or finds it running.
    pub(super) fn find_door(&mut self, place: usize) {
        let Some(link) = self.extensions.links.get_mut(place) else {
            return;
        };
        link.reach = Reach::Loading;
        let key = link.key.clone();
        let shared = Arc::clone(&self.agent.extensions);
        let registry = Arc::clone(&self.agent.registry);
        if registry.registered_providers().is_empty() {
            self.extensions.models_file = shared.models_file(None);
        }
        let path = self.extensions.models_file.clone();
        let door = async move {
            shared.write_models(registry, path).await;
            Outcome::Door(shared.door(&key).await)
        };
        self.extensions.wait(Then::Door(place), door);
    }

    pub(super) async fn on_door(&mut self, place: usize, door: Result<Door, DoorError>) {
        let door = match door {
            Ok(door) => door,
            Err(error) => return self.without(place, &error.to_string()).await,
        };
        // The others know all that the whole state says, too.
        self.sync_state();
        let state = self.whole_state();
        let flags = self.agent.options.extensions.flags();
        let era = era(&self.agent);
        let extended = &mut self.extensions;
        let (Some(doors), Some(link)) = (&extended.door, extended.links.get_mut(place)) else {
            return;
        };
        link.said = Some(doors.put(place, door, &extended.handle));
        link.entries = 0;
        link.told = link.paths().into_iter().collect();
        let asking = doors.open_session(place, &extended.handle, &link.sources, &flags, &state, era);
        extended.wait_for(Then::Opened(place), asking);
    }

    pub(super) async fn on_opened(&mut self, place: usize, answer: Result<Value, DoorError>) {
        let opened = match opened(answer) {
            Ok(opened) => opened,
            // The process died over it and is being started again.
            Err(DoorError::Gone(_)) if self.extensions.is_starting(place) => return,
            Err(error) => return self.without(place, &error.to_string()).await,
        };
        let Some(link) = self.extensions.links.get(place) else {
            return;
        };
        let registered = link.registered(opened);
        self.take_loaded(place, registered).await;
    }

    /// More extensions of a process are there.
    pub(super) async fn on_loaded(&mut self, place: usize, answer: Result<Value, DoorError>) {
        let more = match opened(answer) {
            // The process died over it and is being started again.
            Err(DoorError::Gone(_)) => return,
            Err(error) => {
                let failure = failure("<runtime>", "load", error.to_string());
                self.extension_failed(failure).await;
                Vec::new()
            }
            Ok(opened) => opened.extensions,
        };
        self.take_loaded(place, more).await;
    }

    /// Takes over what extensions registered that were just loaded; when all are there that are to be, the session begins for
    /// them.
    async fn take_loaded(&mut self, place: usize, loaded: Vec<Registered>) {
        for extension in &loaded {
            if let Some(error) = &extension.error {
                self.extension_failed(failure(&extension.path, "load", error))
                    .await;
            }
        }
        self.extensions.set_reach(place, Reach::Loaded);
        if let Some(doors) = &self.extensions.door {
            let mut registered = doors.registered_at(place);
            registered.extend(loaded);
            self.extensions.order(&mut registered);
            doors.register(place, registered);
        }
        self.registrations_changed();
        let untold = self.extensions.links.get(place).map(Link::untold);
        if untold.is_some_and(|untold| !untold.is_empty()) {
            return self.tell_more(place);
        }
        self.go_on().await;
    }

    /// Loads extensions that may only be loaded now.
    pub(super) async fn load_more(&mut self, more: &[Found]) {
        let (begin, load) = self.extensions.arrange_more(more);
        for place in begin {
            self.find_door(place);
        }
        for place in load {
            match self.extensions.links.get(place).map(|link| link.reach) {
                // It loads them when it has loaded the others.
                Some(Reach::Loading) | None => {}
                Some(Reach::Absent) => {
                    let untold = self.extensions.links.get(place).map(Link::untold);
                    for source in untold.unwrap_or_default() {
                        let error = "The extension was not loaded: its process cannot be had";
                        self.extension_failed(failure(&source.path, "load", error)).await;
                    }
                }
                Some(_) => self.tell_more(place),
            }
        }
    }

    /// Has a process load what it was not told to load before.
    fn tell_more(&mut self, place: usize) {
        self.sync_state();
        let extended = &mut self.extensions;
        let (Some(doors), Some(link)) = (&extended.door, extended.links.get_mut(place)) else {
            return;
        };
        link.reach = Reach::Loading;
        let more = link.untold();
        link.told.extend(more.iter().map(|source| source.path.clone()));
        let params = json!({ "extensions": more });
        let asking = doors.call_at(place, &extended.handle, "extensions.load", &params, &more);
        extended.wait_for(Then::Loaded(place), asking);
    }

    /// A process has loaded, or cannot be had: asks about the project when that was the last one, or goes on.
    async fn go_on(&mut self) {
        if self.extensions.waits_for_trust() {
            if self.extensions.unloaded().is_empty() {
                self.ask_trust();
            }
            return;
        }
        self.begin_for_loaded().await;
    }

    /// Nothing is to be decided any more: the session begins for all that have loaded. Their models are known before.
    pub(super) async fn begin_for_loaded(&mut self) {
        let links = self.extensions.links.iter().enumerate();
        let loaded: Vec<usize> = links
            .filter(|(_, link)| link.reach == Reach::Loaded)
            .map(|(place, _)| place)
            .collect();
        self.bring_models(&loaded).await;
        for place in loaded {
            self.begin_for(place);
        }
        self.open_when_all_are_there();
    }

    /// Tells the extensions of a process that the session begins.
    fn begin_for(&mut self, place: usize) {
        self.sync_state();
        let extended = &mut self.extensions;
        let (Some(doors), Some(link)) = (&extended.door, extended.links.get_mut(place)) else {
            return;
        };
        if !doors.hears(place, "session_start") {
            link.reach = Reach::There;
            return;
        }
        link.reach = Reach::Beginning;
        let asking = doors.event_at(place, &extended.handle, "session_start", &link.start);
        extended.wait_for(Then::Started(place), asking);
    }

    pub(super) async fn on_started(&mut self, place: usize) {
        // One that died over it is loading again.
        let links = &self.extensions.links;
        if links
            .get(place)
            .is_some_and(|link| link.reach == Reach::Beginning)
        {
            self.extensions.set_reach(place, Reach::There);
        }
        self.open_when_all_are_there();
    }

    /// When all are there, or those that are not have had their time.
    fn open_when_all_are_there(&mut self) {
        let is_late = self.extensions.stage == Stage::Open;
        if !self.extensions.is_loading() || (is_late && self.extensions.has_begun()) {
            self.discover();
        }
    }

    /// The extensions of a process cannot be had; each is named, and the session goes on.
    async fn without(&mut self, place: usize, why: &str) {
        self.extensions.set_reach(place, Reach::Absent);
        let paths = self.extensions.links.get(place).map(Link::paths);
        for path in paths.unwrap_or_default() {
            let error = format!("The extension was not loaded: {why}");
            self.extension_failed(failure(&path, "load", error)).await;
        }
        self.go_on().await;
    }

    /// What one extension registered takes the place of what it had registered before.
    pub(super) async fn on_changed(&mut self, place: usize, mut registered: Registered) {
        let (Some(link), Some(doors)) = (self.extensions.links.get(place), &self.extensions.door) else {
            return;
        };
        if let Key::Program(program) = &link.key {
            registered.path = program.path.to_string_lossy().into_owned();
        }
        doors.change(place, registered);
        self.registrations_changed();
        // Models of those that are being loaded are taken when they are.
        let links = &self.extensions.links;
        let has_begun = |link: &Link| matches!(link.reach, Reach::Beginning | Reach::There);
        if links.get(place).is_some_and(has_begun) && self.take_providers() {
            self.change_models().await;
            self.write_models().await;
            self.refresh_models();
        }
    }

    fn registrations_changed(&mut self) {
        self.extensions.take_registered();
        self.take_registrations();
    }

    /// A process is gone, and with it all that its extensions had registered. It is started again, within limits.
    pub(super) async fn on_gone(&mut self, place: usize, reason: &str) {
        let extended = &mut self.extensions;
        let Some(link) = extended.links.get_mut(place) else {
            return;
        };
        link.said = None;
        link.start = json!({"type": "session_start", "reason": "reload"});
        link.reach = Reach::Loading;
        let only = matches!(link.key, Key::Program(_)) || link.sources.len() == 1;
        let own = link.paths();
        let (calls, suspects) = match &extended.door {
            Some(doors) => doors.lose(place),
            None => (Vec::new(), Vec::new()),
        };
        extended.subordinates.dispose_of(place);
        for call in calls {
            if let Some(dialog) = extended.dialogs.remove(&call) {
                dialog.abort();
            }
            extended.asked_models.remove(&call);
        }
        self.registrations_changed();
        let suspects = if only { own } else { suspects };
        let (path, over) = match suspects.as_slice() {
            [] => ("<runtime>".to_owned(), String::new()),
            [path] => (path.clone(), String::new()),
            several => (
                "<runtime>".to_owned(),
                format!(" (it was busy with {})", several.join(", ")),
            ),
        };
        let error = format!("The extension process ended: {reason}{over}");
        self.extension_failed(failure(&path, "process", error)).await;
        // Whoever waits already does not wait longer for one that dies again and again.
        if self.extensions.stage != Stage::Opening {
            self.extensions.stage = Stage::Opening;
            self.extensions.late = Some(Box::pin(tokio::time::sleep(limits::OPEN_WAIT)));
        }
        self.find_door(place);
    }

    /// Something that a process said.
    pub(super) async fn on_heard(&mut self, place: usize, said: Said) {
        let said = match &self.extensions.door {
            Some(doors) => doors.heard(place, said),
            None => None,
        };
        if let Some(said) = said {
            self.on_said(place, said).await;
        }
    }

    /// Waits until an answer has come, and deals with all that comes before it.
    pub(super) async fn hear_until(&mut self, ticket: u64) {
        loop {
            match self.extensions.next().await {
                News::Told(told) if told.ticket == ticket => break self.on_told(told).await,
                News::Said(_, Said::Gone(_)) if self.extensions.links.len() == 1 => break,
                news => self.on_extension(news).await,
            }
        }
    }
}

/// What an answer says was loaded. Nothing said: nothing.
fn opened(answer: Result<Value, DoorError>) -> Result<Opened, DoorError> {
    answer.and_then(|value| match value {
        Value::Null => Ok(Opened::default()),
        value => serde_json::from_value(value).map_err(|error| DoorError::Odd(error.to_string())),
    })
}
