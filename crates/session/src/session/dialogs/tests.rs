//! Questions and their ends, without a session around them.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::ui::{NotifyType, WidgetPlacement};

use super::{Answer, Dialog, Dialogs, NoAnswer, Show, Ui};
use crate::limits;
use crate::outbox::{Outbox, Outgoing, outbox};

/// Dialogs with a client that reads what comes.
struct Stage {
    dialogs: Dialogs,
    outbox: Outbox,
    lines: mpsc::Receiver<Outgoing>,
}

impl Stage {
    fn new(wait: Option<Duration>) -> Self {
        let (outbox, lines) = outbox(limits::OUTBOX);
        Self {
            dialogs: Dialogs::new(wait),
            outbox,
            lines,
        }
    }

    /// Asks concurrently with the test.
    fn ask(&self, dialog: Dialog) -> (JoinHandle<Answer>, CancellationToken) {
        let (ui, cancel): (Ui, _) = (self.dialogs.ui(), CancellationToken::new());
        let token = cancel.clone();
        (tokio::spawn(async move { ui.ask(dialog, &token).await }), cancel)
    }

    /// Deals with the next thing.
    async fn step(&mut self) {
        let event = self.dialogs.next().await;
        self.dialogs.handle(event, &self.outbox).await;
    }

    /// The lines that came since, ids taken out and given back.
    fn said(&mut self) -> Vec<(String, Value)> {
        let mut said = Vec::new();
        while let Ok(Outgoing::Event(event)) = self.lines.try_recv() {
            let mut line = serde_json::to_value(&*event).unwrap();
            let id = line.as_object_mut().unwrap().remove("id").unwrap();
            assert_eq!(
                line.as_object_mut().unwrap().remove("type").unwrap(),
                "extension_ui_request"
            );
            said.push((id.as_str().unwrap().to_owned(), line));
        }
        said
    }

    /// Asks and gives the id of the question.
    async fn asked(&mut self, dialog: Dialog) -> (JoinHandle<Answer>, CancellationToken, String) {
        let (answer, cancel) = self.ask(dialog);
        self.step().await;
        let id = self.said().remove(0).0;
        (answer, cancel, id)
    }

    fn answer(&mut self, id: &str, mut members: Value) {
        members["id"] = id.into();
        self.dialogs.answered(&serde_json::from_value(members).unwrap());
    }
}

fn select() -> Dialog {
    Dialog::Select {
        title: "Pick".to_owned(),
        options: vec!["red".to_owned().into(), "green".to_owned().into()],
        timeout: None,
    }
}

fn confirm(timeout: Option<u64>) -> Dialog {
    Dialog::Confirm {
        title: "Sure?".to_owned(),
        message: "Really?".to_owned(),
        timeout,
    }
}

fn input() -> Dialog {
    Dialog::Input {
        title: "Name".to_owned(),
        placeholder: Some("type here".to_owned()),
        timeout: Some(30_000),
    }
}

fn editor() -> Dialog {
    Dialog::Editor {
        title: "Edit".to_owned(),
        prefill: Some("text".to_owned()),
    }
}

const NONE: fn(NoAnswer) -> Answer = Answer::None;

#[tokio::test]
async fn each_dialog_has_its_frame_and_answer_type() {
    let value = |text: &str| Answer::Value(text.to_owned());
    for (dialog, frame, answer, expected) in [
        (
            select(),
            json!({"method": "select", "title": "Pick", "options": ["red", "green"]}),
            json!({"value": "green"}),
            value("green"),
        ),
        (
            confirm(None),
            json!({"method": "confirm", "title": "Sure?", "message": "Really?"}),
            json!({"confirmed": true}),
            Answer::Confirmed(true),
        ),
        (
            confirm(None),
            Value::Null,
            json!({"confirmed": false}),
            Answer::Confirmed(false),
        ),
        (
            input(),
            json!({"method": "input", "title": "Name", "placeholder": "type here", "timeout": 30_000}),
            json!({"value": ""}),
            value(""),
        ),
        (
            editor(),
            json!({"method": "editor", "title": "Edit", "prefill": "text"}),
            json!({"value": "a\nb", "cancelled": false}),
            value("a\nb"),
        ),
        (
            select(),
            Value::Null,
            json!({"confirmed": true}),
            NONE(NoAnswer::Cancelled),
        ),
        (
            confirm(None),
            Value::Null,
            json!({"value": "yes"}),
            NONE(NoAnswer::Cancelled),
        ),
        (
            confirm(None),
            Value::Null,
            json!({"confirmed": "yes"}),
            NONE(NoAnswer::Cancelled),
        ),
        (
            input(),
            Value::Null,
            json!({"value": 5}),
            NONE(NoAnswer::Cancelled),
        ),
        (
            input(),
            Value::Null,
            json!({"value": null}),
            NONE(NoAnswer::Cancelled),
        ),
        (editor(), Value::Null, json!({}), NONE(NoAnswer::Cancelled)),
        (
            select(),
            Value::Null,
            json!({"value": "red", "cancelled": true}),
            NONE(NoAnswer::Cancelled),
        ),
        (
            select(),
            Value::Null,
            json!({"cancelled": true, "timedOut": true}),
            NONE(NoAnswer::TimedOut),
        ),
    ] {
        let mut stage = Stage::new(None);
        let (asking, _) = stage.ask(dialog);
        stage.step().await;
        let (id, said) = stage.said().remove(0);
        assert!(frame.is_null() || said == frame, "{said}");
        stage.answer(&id, answer.clone());
        assert_eq!(asking.await.unwrap(), expected, "{answer}");
        assert!(stage.dialogs.open().is_empty() && stage.said().is_empty());
    }
}

#[tokio::test]
async fn concurrent_dialogs_accept_only_their_first_answer() {
    let mut stage = Stage::new(None);
    let (first, _, one) = stage.asked(select()).await;
    let (second, _, two) = stage.asked(input()).await;
    assert_ne!(one, two);
    let open: Vec<String> = stage.dialogs.open().into_iter().map(|open| open.id).collect();
    assert_eq!(open, [one.clone(), two.clone()]);
    stage.answer("nobody", json!({"value": "x"}));
    stage.answer(&two, json!({"value": "Bob"}));
    stage.answer(&two, json!({"value": "Eve"}));
    stage.answer(&one, json!({"value": "red"}));
    assert_eq!(second.await.unwrap(), Answer::Value("Bob".to_owned()));
    assert_eq!(first.await.unwrap(), Answer::Value("red".to_owned()));
}

#[tokio::test]
async fn dialog_times_out_unless_disabled() {
    let ms = Duration::from_millis;
    let stage = Stage::new(Some(ms(100)));
    for (dialog, limit) in [
        (select(), Some(ms(100))),
        (confirm(Some(70)), Some(ms(70))),
        (editor(), Some(ms(600))),
        (confirm(Some(0)), None),
    ] {
        assert_eq!(stage.dialogs.limit(&dialog), limit, "{dialog:?}");
    }
    for dialog in [select(), confirm(Some(70))] {
        let mut stage = Stage::new(Some(ms(100)));
        let begin = std::time::Instant::now();
        let (asking, _, id) = stage.asked(dialog).await;
        stage.step().await;
        assert!(begin.elapsed() >= ms(70));
        assert_eq!(asking.await.unwrap(), NONE(NoAnswer::TimedOut));
        let cancel = json!({"method": "cancel", "targetId": id});
        assert_eq!(stage.said().remove(0).1, cancel);
        // Too late.
        stage.answer(&id, json!({"value": "red"}));
    }
    for (wait, dialog) in [(None, select()), (Some(ms(10)), confirm(Some(0)))] {
        let mut stage = Stage::new(wait);
        let (_asking, _, _) = stage.asked(dialog).await;
        assert!(tokio::time::timeout(ms(100), stage.step()).await.is_err());
    }
}

#[tokio::test]
async fn dialog_is_cancelled_with_its_request() {
    let mut stage = Stage::new(None);
    let (asking, cancel, id) = stage.asked(select()).await;
    cancel.cancel();
    assert_eq!(asking.await.unwrap(), NONE(NoAnswer::Withdrawn));
    stage.step().await;
    assert_eq!(
        stage.said().remove(0).1,
        json!({"method": "cancel", "targetId": id})
    );
    let (asking, _, id) = stage.asked(select()).await;
    asking.abort();
    stage.step().await;
    assert_eq!(
        stage.said().remove(0).1,
        json!({"method": "cancel", "targetId": id})
    );
    // Before it was asked at all, nothing is said.
    let (asking, cancel) = stage.ask(select());
    cancel.cancel();
    assert_eq!(asking.await.unwrap(), NONE(NoAnswer::Withdrawn));
    let nothing = tokio::time::timeout(Duration::from_millis(20), stage.step()).await;
    assert!(nothing.is_err() || stage.said().is_empty());
}

#[tokio::test]
async fn dialogs_end_with_client_or_session() {
    let mut stage = Stage::new(None);
    let (asking, _, id) = stage.asked(select()).await;
    stage
        .dialogs
        .end_all(NoAnswer::SessionChanged, &stage.outbox)
        .await;
    assert_eq!(asking.await.unwrap(), NONE(NoAnswer::SessionChanged));
    assert_eq!(stage.said().remove(0).1["targetId"], id);
    let (asking, _, _) = stage.asked(select()).await;
    stage.dialogs.lose_client();
    let gone = asking.await.unwrap();
    assert_eq!(gone, NONE(NoAnswer::Gone));
    assert_eq!(
        NoAnswer::Gone.to_string(),
        "RPC client disconnected before extension UI response completed"
    );
    let (asking, _) = stage.ask(select());
    stage.step().await;
    assert_eq!(asking.await.unwrap(), NONE(NoAnswer::Gone));
    assert!(stage.said().is_empty());
    let (asking, _) = stage.ask(select());
    drop(stage);
    assert_eq!(asking.await.unwrap(), NONE(NoAnswer::Gone));
}

#[tokio::test]
async fn open_dialogs_are_limited() {
    let mut stage = Stage::new(None);
    let mut waiting = Vec::new();
    for _ in 0..limits::OPEN_DIALOGS {
        waiting.push(stage.asked(select()).await);
    }
    let (asking, _) = stage.ask(select());
    stage.step().await;
    assert_eq!(asking.await.unwrap(), NONE(NoAnswer::TooMany));
    assert!(stage.said().is_empty());
}

#[tokio::test]
async fn dialog_of_unsupported_method_returns_default() {
    let mut stage = Stage::new(None);
    let hello = serde_json::from_value(json!({"ui": ["confirm", "notify"]})).unwrap();
    stage.outbox.apply_hello(&hello);
    let (asking, _) = stage.ask(select());
    stage.step().await;
    assert_eq!(asking.await.unwrap(), NONE(NoAnswer::NotRendered));
    assert!(stage.said().is_empty());
    let (_asking, _, _) = stage.asked(confirm(None)).await;
    let ui = stage.dialogs.ui();
    ui.show(Show::Title("t".to_owned())).await;
    stage.step().await;
    assert!(stage.said().is_empty());
    stage.outbox.render_nothing();
    let (asking, _) = stage.ask(confirm(None));
    stage.step().await;
    assert_eq!(asking.await.unwrap(), NONE(NoAnswer::NotRendered));
}

#[tokio::test]
async fn ui_notifications_have_frames_and_no_answer() {
    let mut stage = Stage::new(None);
    let text = |text: &str| text.to_owned();
    for (show, frame) in [
        (
            Show::Notify {
                message: text("m"),
                kind: Some(NotifyType::Warning),
            },
            json!({"method": "notify", "message": "m", "notifyType": "warning"}),
        ),
        (
            Show::Notify {
                message: text("m"),
                kind: None,
            },
            json!({"method": "notify", "message": "m"}),
        ),
        (
            Show::Status {
                key: text("k"),
                text: Some(text("t")),
            },
            json!({"method": "setStatus", "statusKey": "k", "statusText": "t"}),
        ),
        (
            Show::Status {
                key: text("k"),
                text: None,
            },
            json!({"method": "setStatus", "statusKey": "k"}),
        ),
        (
            Show::Widget {
                key: text("k"),
                lines: Some(vec![text("a")]),
                placement: Some(WidgetPlacement::BelowEditor),
            },
            json!({"method": "setWidget", "widgetKey": "k", "widgetLines": ["a"], "widgetPlacement": "belowEditor"}),
        ),
        (
            Show::Title(text("t")),
            json!({"method": "setTitle", "title": "t"}),
        ),
        (
            Show::EditorText(text("t")),
            json!({"method": "set_editor_text", "text": "t"}),
        ),
        (
            Show::OpenUrl {
                url: text("u"),
                launch_url: Some(text("l")),
                instructions: Some(text("i")),
            },
            json!({"method": "open_url", "url": "u", "launchUrl": "l", "instructions": "i"}),
        ),
    ] {
        stage.dialogs.ui().show(show).await;
        stage.step().await;
        assert_eq!(stage.said().remove(0).1, frame);
    }
    assert!(stage.dialogs.open().is_empty());
}
