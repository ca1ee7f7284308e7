//! Keeps the entry of a session's last request in the provider's prompt cache: the request is sent again for one token of output
//! before the entry expires, as long as that is expected to pay (docs/guides/models-and-providers.md, "Cache warming").

mod policy;

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use config::settings::CacheWarming;
use llm::{ModelEvent, ModelRequest};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use wire::{AssistantMessage, EntryBody, Event, Message, Usage};

use crate::limits;

use super::access::open;
use super::clock::now_ms;
use super::driver::Driver;
use super::extensions::value_of;
use super::session_core::SessionCore;
use super::wakeup;

use self::policy::{Action, Economics};

/// The event that extensions decide with.
const DECISION: &str = "cache_warming_decision";

/// A request on its way, as it was sent; empty until extensions have changed it.
pub(super) type SentRequest = Arc<OnceLock<ModelRequest>>;

/// The entry of a session in the provider's prompt cache that is kept, if there is one.
#[derive(Default)]
pub(super) struct CacheWarmer {
    kept: Option<Box<KeptEntry>>,
}

/// The entry of one request.
struct KeptEntry {
    request: SentRequest,
    /// The conversation that was sent. The entry is of use while it continues.
    messages: Vec<Arc<Message>>,
    /// Provider and id of the model.
    model: (String, String),
    session: String,
    lifetime: Duration,
    delay: Duration,
    /// Unix time in milliseconds, like the others.
    began_at: i64,
    due_at: i64,
    is_idle: bool,
    /// An extension decided otherwise than the policy.
    is_overridden: bool,
    step: Step,
}

/// What the entry waits for.
enum Step {
    /// The time of the next refresh.
    Timer,
    /// Extensions, which may decide otherwise.
    Extensions(Action, Pin<Box<dyn Future<Output = Value> + Send>>),
    /// The provider.
    Provider(Pin<Box<dyn Future<Output = AssistantMessage> + Send>>),
}

/// Why the entry wakes the session.
pub(super) enum WarmingEvent {
    /// A refresh is due.
    Due,
    /// Extensions have answered.
    Answered(Value),
    /// The provider has answered.
    Refreshed(Box<AssistantMessage>),
}

impl CacheWarmer {
    /// Waits for the next event. Cancel-safe.
    pub(super) async fn next(&mut self) -> WarmingEvent {
        let Some(kept) = &mut self.kept else {
            return std::future::pending().await;
        };
        // The futures stay in `kept`, so that a wait that is dropped loses no answer.
        match &mut kept.step {
            Step::Timer => {
                wakeup::at(Some(kept.due_at)).await;
                WarmingEvent::Due
            }
            Step::Extensions(_, answer) => WarmingEvent::Answered(answer.as_mut().await),
            Step::Provider(answer) => WarmingEvent::Refreshed(Box::new(answer.as_mut().await)),
        }
    }

    /// The model is asked in the session with this id. Returns where the request is to be put as it is sent; None if nothing is kept.
    pub(super) fn begin(
        &mut self,
        mode: CacheWarming,
        session: &str,
        request: &ModelRequest,
        messages: &[Arc<Message>],
    ) -> Option<SentRequest> {
        // Only the entry of the newest request is of use: its prompt continues those of the requests before.
        self.kept = None;
        if mode == CacheWarming::Off || !policy::is_replayable(&request.model, request.thinking) {
            return None;
        }
        let lifetime = policy::lifetime(&request.model, request.cache_retention)?;
        let delay = policy::delay(lifetime)?;
        let sent = SentRequest::default();
        let now = now_ms();
        self.kept = Some(Box::new(KeptEntry {
            request: Arc::clone(&sent),
            messages: messages.to_vec(),
            model: (request.model.provider.clone(), request.model.id.clone()),
            session: session.to_owned(),
            lifetime,
            delay,
            began_at: now,
            due_at: after(now, delay),
            is_idle: false,
            is_overridden: false,
            step: Step::Timer,
        }));
        Some(sent)
    }

    /// Is an entry kept?
    #[cfg(test)]
    pub(super) fn is_keeping(&self) -> bool {
        self.kept.is_some()
    }

    /// The run is over.
    pub(super) fn on_idle(&mut self, mode: CacheWarming) {
        if let Some(kept) = &mut self.kept {
            kept.is_idle = true;
            // The time while idle is shorter, and may be over already.
            if mode != CacheWarming::Idle || !kept.is_within_time(now_ms()) {
                self.kept = None;
            }
        }
    }
}

impl KeptEntry {
    /// Returns true if the next request would read the entry.
    fn is_current(&self, core: &SessionCore) -> bool {
        let messages = core.machine.messages();
        let model = &core.conversation.choice.model;
        // Of now: the settings may have been read again since the request.
        let mode = core.agent.settings.cache_warming;
        (mode == CacheWarming::Idle || mode == CacheWarming::Streaming && !self.is_idle)
            && (&model.provider, &model.id) == (&self.model.0, &self.model.1)
            && self.is_of_session(core)
            && self.messages.len() <= messages.len()
            && self
                // By identity, since texts of megabytes would have to be compared with every refresh.
                .messages
                .iter()
                .zip(messages)
                .all(|(sent, now)| Arc::ptr_eq(sent, now))
    }

    /// Returns true if the request was one of this session. A fork may keep its messages in memory, but has another id.
    fn is_of_session(&self, core: &SessionCore) -> bool {
        core.conversation.log.header().id == self.session
    }

    /// Has the entry a next refresh, as far as time is concerned?
    fn is_within_time(&self, now: i64) -> bool {
        let longest = if self.is_idle {
            limits::CACHE_WARMING_IDLE
        } else {
            limits::CACHE_WARMING_RUNNING
        };
        let end = after(self.began_at, longest);
        self.due_at <= end && now < end
    }

    /// A refresh that is sent late, after the machine slept, likely writes the entry anew at the full price.
    fn is_late(&self, now: i64) -> bool {
        let margin = self.lifetime.saturating_sub(self.delay) / 2;
        now > after(self.due_at, margin)
    }
}

/// Takes an event. An entry that is not kept on is forgotten.
pub(super) async fn on_event(driver: &mut Driver, event: WarmingEvent) {
    let Some(mut kept) = driver.warming.kept.take() else {
        return;
    };
    // First: a refresh has its price, even if its entry is of no use any more.
    if let WarmingEvent::Refreshed(message) = &event
        && !message.failed()
        && kept.is_of_session(&driver.core)
    {
        record(driver, message, kept.is_overridden).await;
    }
    if !kept.is_current(&driver.core) {
        return;
    }
    let step = std::mem::replace(&mut kept.step, Step::Timer);
    let next = match (event, step) {
        (WarmingEvent::Due, _) => decide(driver, &kept),
        (WarmingEvent::Answered(answer), Step::Extensions(own, _)) => {
            let said = answer
                .get("action")
                .and_then(Value::as_str)
                .and_then(Action::parse);
            kept.is_overridden = said.is_some_and(|said| said != own);
            act(driver, &kept, said.unwrap_or(own))
        }
        (WarmingEvent::Refreshed(_), _) => {
            kept.is_overridden = false;
            // From now on: the refresh has begun the lifetime of the entry anew.
            kept.due_at = after(now_ms(), kept.delay);
            kept.is_within_time(now_ms()).then_some(Step::Timer)
        }
        // An answer belongs to the step that waited for it, so this cannot happen.
        (WarmingEvent::Answered(_), _) => None,
    };
    if let Some(step) = next {
        kept.step = step;
        driver.warming.kept = Some(kept);
    }
}

/// Asks extensions about a refresh that is due, or acts at once if none listens.
fn decide(driver: &mut Driver, kept: &KeptEntry) -> Option<Step> {
    if kept.is_late(now_ms()) {
        return None;
    }
    let model = &driver.core.conversation.choice.model;
    let economics = Economics::new(model, last_prompt_tokens(&driver.core), kept.is_idle);
    let action = economics.action();
    let event = json!({
        "type": DECISION,
        "warmCost": economics.warm_cost,
        "missCost": economics.miss_cost,
        "continuationProbability": economics.continuation_probability,
        "action": action.as_str(),
    });
    let extensions = &driver.extensions;
    if !extensions.has_listener(DECISION) {
        return act(driver, kept, action);
    }
    let listeners = extensions.listeners(&driver.core, DECISION, &event);
    let answer = value_of(
        listeners.ask(DECISION, &event),
        DECISION,
        extensions.failures.sender(),
    );
    Some(Step::Extensions(action, Box::pin(answer)))
}

/// Sends the request again, if it is to be sent and the session may spend that.
fn act(driver: &mut Driver, kept: &KeptEntry, action: Action) -> Option<Step> {
    // Extensions may have taken their time.
    if action == Action::Stop || kept.is_late(now_ms()) {
        return None;
    }
    // Empty as long as extensions have not let the request go.
    let request = kept.request.get()?.refresh(now_ms());
    let spending = driver.extensions.tasks.spending.clone();
    let mut budget = driver.core.machine.task_budget(spending);
    // As for every request: none beyond a limit, and none of unknown price while the cost is limited (GUARANTEES.md, 84).
    if budget.reached().is_some() || budget.check_price(&request.model).is_err() {
        return None;
    }
    let agent = Arc::clone(&driver.core.agent);
    let span = driver.core.outbox.trace().current();
    Some(Step::Provider(Box::pin(async move {
        // Dropped with the entry, which ends the request.
        let cancel = CancellationToken::new();
        let _ends = cancel.clone().drop_guard();
        let model = request.model.clone();
        // Counted before the answer, since other requests may be decided meanwhile.
        budget.asked();
        let answer = match open(agent, request, cancel, span).await {
            Ok(mut stream) => loop {
                match stream.next().await {
                    Some(ModelEvent::Done(message) | ModelEvent::Error { message, .. }) => break *message,
                    Some(_) => {}
                    // Every stream ends with one of the events above, so this cannot happen.
                    None => break AssistantMessage::begin(&model.api, &model.provider, &model.id, now_ms()),
                }
            },
            Err(message) => *message,
        };
        budget.answered(&answer.usage);
        answer
    })))
}

/// Adds what a refresh took to the session: it counts in totals and is never in the context (pi-1.5-delta.md 3).
async fn record(driver: &mut Driver, message: &AssistantMessage, is_overridden: bool) {
    let mut entry = Map::from_iter([
        ("type".to_owned(), json!("usage")),
        ("kind".to_owned(), json!("cache_warm")),
        ("provider".to_owned(), json!(message.provider)),
        (
            "model".to_owned(),
            json!(message.response_model.as_ref().unwrap_or(&message.model)),
        ),
        ("usage".to_owned(), json!(message.usage)),
    ]);
    if is_overridden {
        entry.insert("note".to_owned(), json!("extension override"));
    }
    let log = &mut driver.core.conversation.log;
    match log.append(EntryBody::Other(entry), &driver.core.outbox).await {
        Ok(entry) => driver.core.outbox.tell(Event::EntryAppended { entry }).await,
        Err(error) => {
            let text = format!("The cost of a cache refresh could not be stored: {error}");
            driver.core.outbox.notice("warning", text).await;
        }
    }
}

/// The size of the last request of this branch, as its provider reported it.
fn last_prompt_tokens(core: &SessionCore) -> u64 {
    let tokens = |usage: &Usage| usage.input + usage.cache_read + usage.cache_write;
    let mut messages = core.machine.messages().iter().rev();
    let last = messages.find_map(|message| message.as_assistant());
    last.map_or(0, |answer| tokens(&answer.usage))
}

fn after(time: i64, wait: Duration) -> i64 {
    time.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}
