//! What a web server serves: the sessions of this process, or, as a gateway, sessions of workers, each below a path of its own. A
//! gateway keeps nothing that another gateway would need.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::clients::Clients;
use crate::guard::{Guard, Wants};
use crate::limits::{WEB_ROOM_IDLE, WEB_ROOM_LOOK, WEB_ROOM_WAIT, WEB_ROOMS};
use crate::memory::Memory;
use crate::page::plain;
use crate::room::Room;
use crate::server::empty;
use crate::state::{Slot, WebState};

/// Lines to and from the sessions of workers. Each is a JSON object that names its session.
pub struct Link {
    /// Commands.
    pub commands: mpsc::Sender<String>,
    /// Events and responses. The gateway ends with them.
    pub lines: mpsc::Receiver<String>,
    /// The session of a path: `/NAME/` is the page of the session that this returns for `NAME`.
    pub session: fn(&str) -> Option<String>,
}

/// What a web server serves.
#[derive(Clone)]
pub(crate) enum Served {
    /// The sessions of this process.
    One(Arc<WebState>),
    /// Sessions of workers.
    Many(Arc<Rooms>),
}

/// The sessions of workers that clients of this gateway have.
pub(crate) struct Rooms {
    /// Serves paths that belong to no session.
    pub(crate) lobby: Arc<WebState>,
    memory: Memory,
    version: String,
    commands: mpsc::Sender<String>,
    session: fn(&str) -> Option<String>,
    rooms: Mutex<HashMap<String, Place>>,
    has_ended: AtomicBool,
}

struct Place {
    room: Arc<Room>,
    state: Arc<WebState>,
    used: Instant,
}

impl Served {
    /// The session that a request names, and its path below it. Fails with the response to a path that is none.
    pub(crate) fn route(&self, parts: &Parts) -> Result<(Option<String>, String), Box<Response>> {
        let path = parts.uri.path();
        let Self::Many(rooms) = self else {
            return Ok((None, path.to_owned()));
        };
        if matches!(path, "/health" | "/ready") {
            return Ok((None, path.to_owned()));
        }
        let (name, rest) = match path.strip_prefix('/').and_then(|path| path.split_once('/')) {
            Some((name, rest)) => (name, format!("/{rest}")),
            None => (path.trim_start_matches('/'), String::new()),
        };
        let Some(session) = (rooms.session)(name) else {
            let response = plain(StatusCode::NOT_FOUND, "The page of a session is at /SESSION/");
            return Err(Box::new(response));
        };
        if rest.is_empty() {
            let query = parts
                .uri
                .query()
                .map(|query| format!("?{query}"))
                .unwrap_or_default();
            let mut response = empty(StatusCode::PERMANENT_REDIRECT);
            if let Ok(place) = HeaderValue::from_str(&format!("/{name}/{query}")) {
                response.headers_mut().insert(header::LOCATION, place);
            }
            return Err(Box::new(response));
        }
        Ok((Some(session), rest))
    }

    pub(crate) fn guard(&self) -> &Guard {
        match self {
            Self::One(state) => &state.guard,
            Self::Many(rooms) => &rooms.lobby.guard,
        }
    }

    /// The state of a session. A gateway opens it if a client wants to talk to it; none if the session cannot be reached.
    pub(crate) async fn state(&self, session: Option<String>, wants: Wants) -> Option<Arc<WebState>> {
        match (self, session) {
            (Self::One(state), _) => Some(Arc::clone(state)),
            (Self::Many(rooms), Some(session)) if wants == Wants::Agent => rooms.open(session).await,
            (Self::Many(rooms), _) => Some(Arc::clone(&rooms.lobby)),
        }
    }

    /// Number of clients.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::One(state) => state.clients.count(),
            Self::Many(rooms) => {
                let places = rooms.rooms();
                places.values().map(|place| place.room.clients.count()).sum()
            }
        }
    }
}

impl Rooms {
    pub(crate) fn new(lobby: Arc<WebState>, memory: Memory, version: String, link: &Link) -> Self {
        Self {
            lobby,
            memory,
            version,
            commands: link.commands.clone(),
            session: link.session,
            rooms: Mutex::default(),
            has_ended: AtomicBool::new(false),
        }
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<String, Place>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the room of a session, or waits until it is open.
    async fn open(&self, session: String) -> Option<Arc<WebState>> {
        let (room, state, is_new) = self.place(session)?;
        if is_new {
            room.open();
        }
        let opened = timeout(WEB_ROOM_WAIT, room.opened()).await;
        (opened == Ok(true)).then_some(state)
    }

    fn place(&self, session: String) -> Option<(Arc<Room>, Arc<WebState>, bool)> {
        let mut rooms = self.rooms();
        if self.lobby.clients.is_ending() || self.has_ended.load(Ordering::Acquire) {
            return None;
        }
        if let Some(place) = rooms.get_mut(&session).filter(|place| !place.room.is_closed()) {
            place.used = Instant::now();
            return Some((Arc::clone(&place.room), Arc::clone(&place.state), false));
        }
        if rooms.len() >= WEB_ROOMS {
            return None;
        }
        let name: Arc<str> = session.as_str().into();
        let clients = Clients::of_instance(self.memory.clone(), Arc::clone(&name));
        let room = Room::new(name, clients.clone(), &self.version, self.commands.clone());
        let room = Arc::new(room);
        let (guard, page) = (Arc::clone(&self.lobby.guard), Arc::clone(&self.lobby.page));
        let slot = Some(Slot::Room(Arc::clone(&room)));
        let state = Arc::new(WebState::new(clients, guard, page, slot));
        let place = Place {
            room: Arc::clone(&room),
            state: Arc::clone(&state),
            used: Instant::now(),
        };
        rooms.insert(session, place);
        Some((room, state, true))
    }

    /// Passes lines to the rooms until there are no more.
    pub(crate) async fn run(&self, mut lines: mpsc::Receiver<String>) {
        let mut look = tokio::time::interval(WEB_ROOM_LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                line = lines.recv() => match line {
                    Some(line) => self.take(&line),
                    None => break,
                },
                _ = look.tick() => self.evict(),
            }
        }
        self.end();
    }

    fn take(&self, line: &str) {
        let Ok(line) = serde_json::from_str::<Map<String, Value>>(line) else {
            return;
        };
        let session = line.get("session").and_then(Value::as_str).unwrap_or_default();
        let room = self.rooms().get(session).map(|place| Arc::clone(&place.room));
        if let Some(room) = room {
            room.take(line);
        }
    }

    /// Closes rooms without clients.
    fn evict(&self) {
        let mut gone = Vec::new();
        self.rooms().retain(|session, place| {
            if place.room.clients.count() > 0 && !place.room.is_closed() {
                place.used = Instant::now();
            }
            let stays = place.used.elapsed() < WEB_ROOM_IDLE && !place.room.is_closed();
            if !stays {
                place.room.close();
                gone.push(session.clone());
            }
            stays
        });
        for session in gone {
            let detach = json!({"type": "detach", "session": session});
            // A session that stays attached costs memory only, and the next room uses it.
            drop(self.commands.try_send(detach.to_string()));
        }
    }

    /// Waits until all clients have left.
    pub(crate) async fn all_left(&self) {
        let rooms: Vec<Arc<Room>> = {
            let places = self.rooms();
            places.values().map(|place| Arc::clone(&place.room)).collect()
        };
        for room in rooms {
            room.clients.all_left().await;
        }
    }

    /// Disconnects all clients, and opens no more rooms.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        for place in self.rooms().values() {
            place.room.close();
        }
    }
}
