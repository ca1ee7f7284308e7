//! Loading the extensions of a session: processes are started, load, decide on trust, begin the session and name resources. A
//! state machine: it takes answers of processes and returns what the session has to do next ([`LoadAction`]).

#[cfg(test)]
mod tests;

use std::pin::Pin;

use config::extensions::Found;
use extensions::line::{Failure, Registered, Scope, Source};
use extensions::{Answer, ExtensionProcess, PendingAnswer, ProcessError};
use serde_json::{Map, Value, json};
use tokio::time::Sleep;
use uuid::Uuid;

use crate::limits;

use super::failures::failure;
use super::link::{Link, Progress};
use super::links::{ExtensionLinks, opened};
use super::pending::{Answered, FromPanic, Pending};

/// How far a session's extensions are loaded, and the questions about it that are open.
pub(crate) struct Loading {
    stage: Stage,
    /// When commands stop waiting for extensions.
    deadline: Option<Pin<Box<Sleep>>>,
    trust: TrustQuestion,
    questions: Pending<LoadQuestion, LoadAnswer>,
    /// The `session_start` event.
    start: Value,
    /// The call of an extension that is answered when the session it asked for has begun for its extensions.
    owed: Option<u64>,
}

/// How far the extensions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The session has none.
    Absent,
    /// They are being loaded. Commands that depend on them wait.
    Opening,
    /// They are loaded, or may load later.
    Open,
}

/// Whether extensions are asked if the project is trusted (`project_trust`). Until they have answered, the project's extensions
/// are not loaded, and the session does not begin for the others.
#[derive(Default)]
struct TrustQuestion {
    /// The question is still to be asked.
    is_due: bool,
    /// Extensions of the project that wait for the answer.
    withheld: Vec<Found>,
}

/// What an answer belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LoadQuestion {
    /// The process at this place is started.
    Process(usize),
    /// It loads the extensions of the session.
    Open(usize),
    /// It loads more of them.
    LoadMore(usize),
    /// Its extensions handle `session_start`.
    Start(usize),
    /// Extensions decide on trust.
    Trust,
    /// Extensions name skills and prompt templates.
    Resources,
    /// The session ends for its extensions.
    Shutdown,
}

/// An answer while extensions are loaded.
pub(crate) enum LoadAnswer {
    Process(Result<ExtensionProcess, ProcessError>),
    Answer(Result<Answer, ProcessError>),
}

impl FromPanic for LoadAnswer {
    fn from_panic() -> Self {
        Self::Answer(FromPanic::from_panic())
    }
}

/// What the session does for its extensions while they are loaded.
#[derive(Debug, PartialEq)]
pub(crate) enum LoadAction {
    /// Report a failure to clients.
    Report(Failure),
    /// Start the process at a place, or find it running, and return it with [`Loading::wait_for_process`].
    StartProcess(usize),
    /// Use the registrations of all extensions as they are now.
    UseRegistrations,
    /// Send the state, then call [`Loading::load_more`] for this place.
    LoadMore(usize),
    /// Ask extensions whether the project is trusted.
    AskTrust,
    /// Use the models of the extensions at these places, then call [`Loading::begin_at`].
    Begin(Vec<usize>),
    /// Use the providers that extensions have registered: there are no processes.
    UseProviders,
    /// Ask extensions for skills and prompt templates.
    AskResources,
}

/// What extensions say about the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrustDecision {
    /// `None` if they do not decide.
    pub(crate) trusted: Option<bool>,
    /// The decision is stored for later sessions.
    pub(crate) remember: bool,
}

impl TrustDecision {
    pub(crate) fn parse(answer: &Value) -> Self {
        let trusted = match answer.get("trusted").and_then(Value::as_str) {
            Some("yes") => Some(true),
            Some("no") => Some(false),
            // Any other answer leaves the decision open.
            _ => None,
        };
        Self {
            trusted,
            remember: answer.get("remember") == Some(&json!(true)),
        }
    }
}

impl Default for Loading {
    fn default() -> Self {
        Self {
            stage: Stage::Absent,
            deadline: None,
            trust: TrustQuestion::default(),
            questions: Pending::default(),
            start: json!({"type": "session_start", "reason": "startup"}),
            owed: None,
        }
    }
}

impl Loading {
    /// Waits for the next answer, or for the deadline (`None`). Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Answered<LoadAnswer>> {
        tokio::select! {
            answered = self.questions.next() => Some(answered),
            () = due(&mut self.deadline) => None,
        }
    }

    /// Removes a question that was answered. `None` if it was given up.
    pub(crate) fn take(&mut self, number: u64) -> Option<LoadQuestion> {
        self.questions.take(number)
    }

    /// Waits for an answer. Returns the number of the question.
    pub(crate) fn ask(
        &mut self,
        question: LoadQuestion,
        answer: impl Future<Output = Result<Answer, ProcessError>> + Send + 'static,
    ) -> u64 {
        self.questions
            .ask(question, async move { LoadAnswer::Answer(answer.await) })
    }

    fn ask_process(&mut self, question: LoadQuestion, asking: Result<PendingAnswer, ProcessError>) {
        self.ask(question, async move { asking?.await });
    }

    /// Waits for a process that is being started.
    pub(crate) fn wait_for_process(
        &mut self,
        place: usize,
        process: impl Future<Output = Result<ExtensionProcess, ProcessError>> + Send + 'static,
    ) {
        self.questions.ask(LoadQuestion::Process(place), async move {
            LoadAnswer::Process(process.await)
        });
    }

    /// The `session_start` event.
    pub(crate) fn start(&self) -> &Value {
        &self.start
    }

    /// Sets the `session_start` event of the session that replaces the old one.
    pub(super) fn set_start(&mut self, start: Value) {
        self.start = start;
    }

    /// Remembers a call that is answered when the session has begun for its extensions.
    pub(crate) fn owe(&mut self, id: u64) {
        self.owed = Some(id);
    }

    /// Returns true while commands that depend on extensions wait.
    pub(crate) fn is_opening(&self) -> bool {
        self.stage == Stage::Opening
    }

    /// Returns true if no question is open and no call is owed an answer.
    pub(super) fn is_at_rest(&self) -> bool {
        !self.is_opening() && self.questions.is_empty() && self.owed.is_none()
    }

    /// Plans the processes and has them started. `asks_trust`: extensions of the user may decide on the project.
    pub(crate) fn begin(&mut self, links: &mut ExtensionLinks, asks_trust: bool) -> Vec<LoadAction> {
        self.withhold(links, asks_trust);
        // A handle of its own for each time: what processes still send about the session before must not reach this one.
        links.handle = Uuid::new_v4().to_string();
        links.arrange(&self.start);
        let mut actions = unreadable(&links.found);
        if links.links.is_empty() {
            // No process will answer, so that nothing else would settle it.
            self.settle_owed(links);
            actions.push(LoadAction::UseProviders);
            return actions;
        }
        self.expect();
        actions.extend((0..links.links.len()).map(|place| self.begin_process(links, place)));
        actions
    }

    /// Commands wait from now on, until the deadline.
    fn expect(&mut self) {
        self.stage = Stage::Opening;
        self.deadline = Some(Box::pin(tokio::time::sleep(limits::OPEN_WAIT)));
    }

    fn begin_process(&self, links: &mut ExtensionLinks, place: usize) -> LoadAction {
        links.set_progress(place, Progress::Loading);
        LoadAction::StartProcess(place)
    }

    /// Loads the extensions of the session in a process that was started.
    pub(crate) fn open(
        &mut self,
        links: &mut ExtensionLinks,
        place: usize,
        process: ExtensionProcess,
        opening: &Opening,
    ) {
        links.connect(place, process);
        let (Some(pool), Some(link)) = (&links.pool, links.links.get(place)) else {
            return;
        };
        let Opening { state, flags, era } = opening;
        let asking = pool.open_session(place, &links.handle, &link.sources, flags, state, *era);
        self.ask_process(LoadQuestion::Open(place), asking);
    }

    /// A process has loaded its extensions.
    pub(crate) fn on_opened(
        &mut self,
        links: &mut ExtensionLinks,
        place: usize,
        answer: Result<Value, ProcessError>,
    ) -> Vec<LoadAction> {
        let opened = match opened(answer) {
            Ok(opened) => opened,
            // The process ended while it loaded, and is being started again.
            Err(ProcessError::Gone(_)) if self.is_starting(place) => return Vec::new(),
            Err(error) => return self.without(links, place, &error.to_string()),
        };
        match links.links.get(place).map(|link| link.opened(opened)) {
            Some(registered) => self.take_loaded(links, place, registered),
            None => Vec::new(),
        }
    }

    fn is_starting(&self, place: usize) -> bool {
        self.questions
            .any(|question| *question == LoadQuestion::Process(place))
    }

    /// A process has loaded more extensions.
    pub(crate) fn on_loaded_more(
        &mut self,
        links: &mut ExtensionLinks,
        place: usize,
        answer: Result<Value, ProcessError>,
    ) -> Vec<LoadAction> {
        match opened(answer) {
            // The process ended while it loaded, and is being started again.
            Err(ProcessError::Gone(_)) => Vec::new(),
            // What the process has loaded before still works, so that only the additional extensions are missing.
            Err(error) => {
                let mut actions = vec![LoadAction::Report(failure("<runtime>", "load", error))];
                actions.extend(self.take_loaded(links, place, Vec::new()));
                actions
            }
            Ok(opened) => self.take_loaded(links, place, opened.extensions),
        }
    }

    /// Takes registrations of extensions that were just loaded. When all are loaded, the session begins for them.
    fn take_loaded(
        &mut self,
        links: &mut ExtensionLinks,
        place: usize,
        loaded: Vec<Registered>,
    ) -> Vec<LoadAction> {
        // An extension that cannot be loaded does not keep the others of its process from working.
        let failed = loaded.iter().filter_map(|extension| {
            let error = extension.error.as_ref()?;
            Some(LoadAction::Report(failure(&extension.path, "load", error)))
        });
        let mut actions: Vec<LoadAction> = failed.collect();
        links.set_progress(place, Progress::Loaded);
        links.register(place, loaded);
        actions.push(LoadAction::UseRegistrations);
        // Trust may have been decided while it loaded: the session begins after the project's extensions are there, too.
        let unrequested = links.links.get(place).map(Link::unrequested);
        if unrequested.is_some_and(|sources| !sources.is_empty()) {
            actions.push(LoadAction::LoadMore(place));
        } else {
            actions.extend(self.proceed(links));
        }
        actions
    }

    /// A process has loaded, or cannot be started: asks about trust if it was the last one, or begins the session.
    fn proceed(&mut self, links: &ExtensionLinks) -> Option<LoadAction> {
        if !self.waits_for_trust() {
            return Some(LoadAction::Begin(links.loaded()));
        }
        if links.unloaded().is_empty() {
            return self.ask_trust();
        }
        None
    }

    /// Has a process load the extensions that it was not requested to load yet.
    pub(crate) fn load_more(&mut self, links: &mut ExtensionLinks, place: usize) {
        let (Some(pool), Some(link)) = (&links.pool, links.links.get_mut(place)) else {
            return;
        };
        link.progress = Progress::Loading;
        let more: Vec<Source> = link.unrequested();
        // Noted before the answer, so that the same extensions are not requested twice while it loads.
        link.requested
            .extend(more.iter().map(|source| source.path.clone()));
        let params = json!({ "extensions": more });
        let asking = pool.call_at(place, &links.handle, "extensions.load", &params, &more);
        self.ask_process(LoadQuestion::LoadMore(place), asking);
    }

    /// Begins the session for extensions that have loaded and whose models are known.
    pub(crate) fn begin_at(&mut self, links: &mut ExtensionLinks, places: &[usize]) -> Option<LoadAction> {
        for place in places.iter().copied() {
            let hears = links.hears_at(place, "session_start");
            let (Some(pool), Some(link)) = (&links.pool, links.links.get_mut(place)) else {
                continue;
            };
            if !hears {
                link.progress = Progress::Ready;
                continue;
            }
            link.progress = Progress::Starting;
            let asking = pool.event_at(place, &links.handle, "session_start", &link.start);
            self.ask_process(LoadQuestion::Start(place), asking);
        }
        self.ask_resources(links)
    }

    /// The extensions of a process have handled `session_start`.
    pub(crate) fn on_started(&mut self, links: &mut ExtensionLinks, place: usize) -> Option<LoadAction> {
        // A process that ended meanwhile is loading again.
        if links.progress(place) == Some(Progress::Starting) {
            links.set_progress(place, Progress::Ready);
        }
        self.ask_resources(links)
    }

    /// Asks for resources when all processes are ready, or the deadline of the others has passed.
    fn ask_resources(&self, links: &ExtensionLinks) -> Option<LoadAction> {
        let is_late = self.stage == Stage::Open;
        let may_ask = !links.is_loading() || (is_late && links.has_begun());
        may_ask.then_some(LoadAction::AskResources)
    }

    /// A question about resources that is open is replaced: a process may be ready only now.
    pub(crate) fn give_up_resources(&mut self) {
        self.questions
            .give_up(|question| *question == LoadQuestion::Resources);
    }

    /// The extensions of a process cannot be loaded. Each is reported, and the session goes on without them.
    pub(crate) fn without(
        &mut self,
        links: &mut ExtensionLinks,
        place: usize,
        reason: &str,
    ) -> Vec<LoadAction> {
        links.set_progress(place, Progress::Unavailable);
        let paths = links.links.get(place).map(Link::paths).unwrap_or_default();
        let mut actions: Vec<LoadAction> = paths
            .iter()
            .map(|path| not_loaded(path, &format!("The extension was not loaded: {reason}")))
            .collect();
        // The extensions of other processes must not wait for this one.
        actions.extend(self.proceed(links));
        actions
    }

    /// The deadline has passed: commands do not wait any longer. Extensions that load later are taken then.
    pub(crate) fn on_deadline(&mut self, links: &ExtensionLinks) -> Vec<LoadAction> {
        if self.stage != Stage::Opening {
            return Vec::new();
        }
        self.stage = Stage::Open;
        let seconds = limits::OPEN_WAIT.as_secs();
        let error = format!(
            "The extension is not loaded after {seconds} s; the session goes on without it until it is"
        );
        let late = links.unloaded();
        let mut actions: Vec<LoadAction> = late.iter().map(|path| not_loaded(path, &error)).collect();
        // Trust is asked about at the deadline at the latest, with the extensions that are there.
        match self.ask_trust() {
            Some(ask) => actions.push(ask),
            // The loaded extensions do not wait for the late ones.
            None if links.is_loading() && links.has_begun() => actions.push(LoadAction::AskResources),
            None => {}
        }
        actions
    }

    /// The session has begun for all extensions, and the resources that they bring are known.
    pub(crate) fn finish(&mut self, links: &ExtensionLinks) {
        if links.is_loading() && self.stage == Stage::Opening {
            // A process has ended meanwhile.
            return;
        }
        self.stage = Stage::Open;
        self.deadline = None;
        self.settle_owed(links);
    }

    /// Answers the extension that asked for the session which has begun now.
    fn settle_owed(&mut self, links: &ExtensionLinks) {
        if let Some(id) = self.owed.take() {
            let begun = json!({"cancelled": false, "session": links.handle});
            links.answer(Some(id), Ok(begun));
        }
    }

    /// A process has ended: it is started again, within limits. Commands wait for it.
    pub(super) fn restart(&mut self, links: &mut ExtensionLinks, place: usize) -> LoadAction {
        // A deadline that runs already is not extended for a process that ends again and again.
        if self.stage != Stage::Opening {
            self.expect();
        }
        self.begin_process(links, place)
    }

    /// Stops loading: another session takes the place of this one. The processes forget it.
    pub(super) fn leave(&mut self, links: &mut ExtensionLinks, reason: &str) {
        if let Some(pool) = links.pool.take() {
            let closing = pool.close_session(&links.handle, reason);
            self.ask(LoadQuestion::Shutdown, closing);
            // `ExtensionLinks::arrange` takes it back: calls of the old session may still be owed an answer.
            links.left = Some(pool);
        }
        // Further messages are about the session that was left.
        links.disconnect();
        links.registered.clear();
        // The farewell goes on; answers to everything else are about the session that was left.
        self.questions
            .give_up(|question| *question != LoadQuestion::Shutdown);
    }
}

/// What a process needs to know when it loads the extensions of a session.
pub(crate) struct Opening {
    pub(crate) state: Map<String, Value>,
    /// Flags of extensions on the command line.
    pub(crate) flags: Map<String, Value>,
    pub(crate) era: extensions::line::Era,
}

/// Trust.
impl Loading {
    /// Returns true while trust is undecided; the session does not begin for extensions until it is.
    fn waits_for_trust(&self) -> bool {
        self.trust.is_due || self.questions.any(|question| *question == LoadQuestion::Trust)
    }

    /// Removes the project's extensions from the list if other extensions may still decide that it is not trusted.
    fn withhold(&mut self, links: &mut ExtensionLinks, asks_trust: bool) {
        // Without an extension that could answer, nothing is withheld.
        let is_due = asks_trust && may_decide(&links.found);
        let found = std::mem::take(&mut links.found);
        let (withheld, found) = found.into_iter().partition(|found| is_due && is_projects(found));
        links.found = found;
        self.trust = TrustQuestion { is_due, withheld };
    }

    /// Asks about trust once.
    fn ask_trust(&mut self) -> Option<LoadAction> {
        std::mem::take(&mut self.trust.is_due).then_some(LoadAction::AskTrust)
    }

    /// Replaces the withheld extensions by those of the project that trust admits.
    pub(crate) fn set_admitted(&mut self, found: Vec<Found>) {
        // The others are loading already.
        self.trust.withheld = found.into_iter().filter(is_projects).collect();
    }

    /// Loads the withheld extensions, then begins the session for the loaded ones.
    pub(crate) fn load_withheld(&mut self, links: &mut ExtensionLinks) -> Vec<LoadAction> {
        let withheld = std::mem::take(&mut self.trust.withheld);
        // Before the extensions of the user, which is the order without a question about trust.
        let is_users = |found: &Found| found.source.scope == Scope::User;
        let at = links.found.iter().position(is_users).unwrap_or(links.found.len());
        links.found.splice(at..at, withheld.iter().cloned());
        let mut actions = unreadable(&withheld);
        let (begin, load) = links.arrange_more(&withheld, &self.start);
        actions.extend(begin.into_iter().map(|place| self.begin_process(links, place)));
        for place in load {
            match links.progress(place) {
                // It loads them after the others.
                Some(Progress::Loading) | None => {}
                Some(Progress::Unavailable) => {
                    let sources = links.links.get(place).map(Link::unrequested);
                    let error = "The extension was not loaded: its process cannot be had";
                    let sources = sources.unwrap_or_default().into_iter();
                    actions.extend(sources.map(|source| not_loaded(&source.path, error)));
                }
                Some(_) => {
                    // Its other extensions wait, so that the session begins once for all.
                    links.set_progress(place, Progress::Loading);
                    actions.push(LoadAction::LoadMore(place));
                }
            }
        }
        // Also if nothing was withheld: the loaded extensions have waited for the decision.
        actions.push(LoadAction::Begin(links.loaded()));
        actions
    }
}

/// Returns true if an extension outside the project may decide on trust.
pub(super) fn may_decide(found: &[Found]) -> bool {
    found
        .iter()
        // Code of the project must not decide whether the project is trusted (GUARANTEES.md, 33).
        .any(|found| !is_projects(found) && found.runs.is_ok())
}

fn is_projects(found: &Found) -> bool {
    found.source.scope == Scope::Project
}

/// Reports extensions whose files cannot be understood.
fn unreadable(found: &[Found]) -> Vec<LoadAction> {
    let errors = found.iter().filter_map(|found| {
        let error = found.runs.as_ref().err()?;
        Some(not_loaded(&found.source.path, error))
    });
    errors.collect()
}

fn not_loaded(path: &str, error: &str) -> LoadAction {
    LoadAction::Report(failure(path, "load", error))
}

async fn due(timer: &mut Option<Pin<Box<Sleep>>>) {
    match timer {
        Some(sleep) => {
            sleep.await;
            *timer = None;
        }
        None => std::future::pending().await,
    }
}
