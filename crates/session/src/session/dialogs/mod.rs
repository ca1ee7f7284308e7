//! Dialogs with the user of a client, and notifications. Every such frame comes from here: dialogs get their ids, wait for their
//! answers, time out, and are forgotten when their asker gives up. Who asks, and what follows from an answer, is not known here.
//!
//! Dialogs time out: a dialog without a timeout of its own gets that of the settings.

mod asking;
#[cfg(test)]
mod tests;

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Sleep;
use uuid::Uuid;
use wire::Event;
use wire::ui::{UiMethod, UiRequest, UiResponse};

use crate::answer_routes::AnswerRoute;
use crate::limits;
use crate::outbox::Outbox;

use self::asking::Wish;
pub use self::asking::{Answer, Dialog, NoAnswer, Show, Ui};

/// The questions of a session.
pub(super) struct Dialogs {
    ui: Ui,
    // Boxed: a channel has room for 32 entries from its beginning, in every idle session.
    wishes: mpsc::Receiver<Box<Wish>>,
    /// Oldest first.
    open: Vec<Open>,
    /// How long a question waits that does not say; none is without end.
    wait: Option<Duration>,
    /// The client is gone.
    gone: bool,
}

/// A question that waits.
struct Open {
    request: UiRequest,
    /// Leads the answer to this session.
    _route: AnswerRoute,
    answer: oneshot::Sender<Answer>,
    timer: Option<Pin<Box<Sleep>>>,
    /// The options that allow a call; none when it is another question.
    allow: Option<Vec<String>>,
}

/// An event of the dialogs.
pub(super) enum DialogEvent {
    /// A dialog or a notification is wanted.
    Wish(Wish),
    /// A dialog is over: its asker gave up, or its time is up.
    Over(String, NoAnswer),
}

impl Dialogs {
    /// None yet. `wait` is how long a question waits that does not say.
    pub(super) fn new(wait: Option<Duration>) -> Self {
        let (ui, wishes) = Ui::new();
        Self {
            ui,
            wishes,
            open: Vec::new(),
            wait,
            gone: false,
        }
    }

    /// A handle to ask with.
    pub(super) fn ui(&self) -> Ui {
        self.ui.clone()
    }

    /// Questions of this session go to the client of another one from now on.
    pub(super) fn ask_through(&mut self, ui: Ui) {
        self.ui = ui;
    }

    /// The questions that wait, as their frames were.
    pub(super) fn open(&self) -> Vec<UiRequest> {
        self.open.iter().map(|open| open.request.clone()).collect()
    }

    /// The question that waits longest.
    pub(super) fn oldest(&self) -> Option<&UiRequest> {
        self.open.first().map(|open| &open.request)
    }

    /// Waits for something to deal with. Cancel-safe.
    pub(super) async fn next(&mut self) -> DialogEvent {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<DialogEvent> {
        // Withdrawn before timed out, and both before new wishes: a dialog that is over makes room.
        for open in &mut self.open {
            let over = if open.answer.poll_closed(context).is_ready() {
                NoAnswer::Withdrawn
            } else if open
                .timer
                .as_mut()
                .is_some_and(|timer| timer.as_mut().poll(context).is_ready())
            {
                NoAnswer::TimedOut
            } else {
                continue;
            };
            return Poll::Ready(DialogEvent::Over(open.request.id.clone(), over));
        }
        match self.wishes.poll_recv(context) {
            Poll::Ready(Some(wish)) => Poll::Ready(DialogEvent::Wish(*wish)),
            // A sender is kept here, so the channel never ends.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// Deals with it.
    pub(super) async fn handle(&mut self, event: DialogEvent, outbox: &Outbox) {
        match event {
            DialogEvent::Wish(Wish::Show(show)) => {
                let request = show.into_request(new_id());
                if outbox.renders(request.method) {
                    tell(outbox, request).await;
                }
            }
            DialogEvent::Wish(Wish::Ask(dialog, answer)) => self.ask(dialog, answer, outbox).await,
            DialogEvent::Over(id, why) => {
                if let Some(open) = self.take(&id) {
                    end(open, why, outbox).await;
                }
            }
        }
    }

    /// Opens a dialog for the session itself, which must not wait for its own loop.
    pub(super) async fn ask_now(&mut self, dialog: Dialog, outbox: &Outbox) -> oneshot::Receiver<Answer> {
        let (answer, wait) = oneshot::channel();
        self.ask(dialog, answer, outbox).await;
        wait
    }

    /// The same for something to show.
    pub(super) async fn show_now(&mut self, show: Show, outbox: &Outbox) {
        self.handle(DialogEvent::Wish(Wish::Show(show)), outbox).await;
    }

    async fn ask(&mut self, dialog: Dialog, answer: oneshot::Sender<Answer>, outbox: &Outbox) {
        // The asker gave up while the wish waited in the queue; its dialog would open and close at once.
        if answer.is_closed() {
            return;
        }
        // Refused at once: a dialog that no client shows would only time out (GUARANTEES.md, 28).
        let refusal = if self.gone {
            Some(NoAnswer::Gone)
        } else if !outbox.renders(dialog.method()) {
            Some(NoAnswer::NotRendered)
        } else if self.open.len() >= limits::OPEN_DIALOGS {
            Some(NoAnswer::TooMany)
        } else {
            None
        };
        if let Some(why) = refusal {
            // Who asked may have given up.
            drop(answer.send(Answer::None(why)));
            return;
        }
        // Pinion enforces the timeout itself, also if the client shows it (dialects.md 10.4).
        let timer = self.limit(&dialog).map(|wait| Box::pin(tokio::time::sleep(wait)));
        let (allow, call_id) = match &dialog {
            Dialog::Permission { allow, call_id, .. } => (Some(allow.clone()), Some(call_id.clone())),
            _ => (None, None),
        };
        let mut request = dialog.into_request(new_id());
        request.tool_call_id = call_id;
        // Kept as it was sent: clients that join later get the open questions with a snapshot.
        self.open.push(Open {
            request: request.clone(),
            // Before the frame is sent: the answer may come at once.
            _route: outbox.routes().open(&request.id),
            answer,
            timer,
            allow,
        });
        tell(outbox, request).await;
    }

    /// How long a question may take; none is without end, which only an asker that says so gets, or a user who wants it.
    fn limit(&self, dialog: &Dialog) -> Option<Duration> {
        match dialog.timeout() {
            Some(0) => None,
            Some(ms) => Some(Duration::from_millis(ms)),
            None if dialog.method() == UiMethod::Editor => self.wait.map(|wait| wait * limits::EDITOR_FACTOR),
            None => self.wait,
        }
    }

    /// Takes an answer. An answer to a dialog that is not open (any more) is ignored; an invalid answer counts as
    /// cancelled.
    pub(super) fn answered(&mut self, response: &UiResponse) {
        // Removed with the first answer: further ones are ignored (dialects.md 10.4).
        if let Some(open) = self.take(&response.id) {
            let answer = understood(open.request.method, response);
            let answer = match &open.allow {
                Some(allow) => with_reason(answer, allow, response),
                None => answer,
            };
            drop(open.answer.send(answer));
        }
    }

    /// Closes all dialogs; the client is informed where it can understand that.
    pub(super) async fn end_all(&mut self, why: NoAnswer, outbox: &Outbox) {
        for open in std::mem::take(&mut self.open) {
            end(open, why, outbox).await;
        }
    }

    /// The client is gone: nothing is asked any more, and nothing waits.
    pub(super) fn lose_client(&mut self) {
        self.gone = true;
        for open in std::mem::take(&mut self.open) {
            // Without `cancel`, which nothing would read.
            drop(open.answer.send(Answer::None(NoAnswer::Gone)));
        }
    }

    fn take(&mut self, id: &str) -> Option<Open> {
        let at = self.open.iter().position(|open| open.request.id == id)?;
        Some(self.open.remove(at))
    }
}

/// Unique among all sessions of all processes, so that an answer never finds the wrong question.
fn new_id() -> String {
    Uuid::new_v4().to_string()
}

async fn tell(outbox: &Outbox, request: UiRequest) {
    let event = Event::ExtensionUiRequest {
        request: Box::new(request),
    };
    outbox.tell(event).await;
}

/// Ends a question without an answer.
async fn end(open: Open, why: NoAnswer, outbox: &Outbox) {
    drop(open.answer.send(Answer::None(why)));
    // The connection leaves it out where the client does not know it (docs/internals/decisions/14-dialogs-time-out.md).
    let cancel = UiRequest {
        target_id: Some(open.request.id),
        ..UiRequest::new(new_id(), UiMethod::Cancel)
    };
    tell(outbox, cancel).await;
}

/// The answer to a permission dialog: an answer that does not allow the call may have a reason.
fn with_reason(answer: Answer, allow: &[String], response: &UiResponse) -> Answer {
    let allows = matches!(&answer, Answer::Value(chosen) if allow.contains(chosen));
    let reason = response.reason.as_str().unwrap_or_default().trim();
    // A consent with a reason is still a consent.
    if allows || reason.is_empty() {
        return answer;
    }
    // Bounded, since the model reads it.
    Answer::Denied(reason.chars().take(limits::DENIAL_REASON).collect())
}

fn understood(method: UiMethod, response: &UiResponse) -> Answer {
    let is = |flag: &Value| *flag == Value::Bool(true);
    let none = Answer::None(if is(&response.timed_out) {
        NoAnswer::TimedOut
    } else {
        NoAnswer::Cancelled
    });
    if is(&response.cancelled) {
        return none;
    }
    match (method, &response.value, &response.confirmed) {
        (UiMethod::Confirm, _, Value::Bool(confirmed)) => Answer::Confirmed(*confirmed),
        (UiMethod::Select | UiMethod::Input | UiMethod::Editor, Value::String(value), _) => {
            Answer::Value(value.clone())
        }
        // A `value` for `confirm`, or the reverse (dialects.md 10.4).
        _ => none,
    }
}
