//! Questions of servers to the user, asked with the session's dialogs: consent first where nothing else is wanted, then one
//! dialog for each field. Who sees them always sees which server asks.

use ::mcp::{AskUser, Field, Form, Kind, Question, Reply};
use permissions::{limits::ASKED_PATH, visible};
use process::Boxed;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::super::dialogs::{Answer, Dialog, NoAnswer, Ui};

/// Chosen to leave a field out.
const SKIP: &str = "(none)";
const YES: &str = "Yes";
const NO: &str = "No";
const DONE: &str = "(done)";

/// Asks with the dialogs of a session.
pub(super) struct Asks(pub(super) Ui);

impl AskUser for Asks {
    fn ask(&self, question: Question) -> Boxed<'static, Reply> {
        let ui = self.0.clone();
        Box::pin(async move { ask(&ui, question).await.unwrap_or_else(|end| end) })
    }
}

/// Asks all there is to ask; an error ends it.
async fn ask(ui: &Ui, question: Question) -> Result<Reply, Reply> {
    let title = format!("MCP server {} asks", question.server);
    // No padding pushes the question out of sight.
    let asked = visible::text(&question.message);
    let fields = match &question.form {
        Form::Visit(url) => {
            let url = visible::line(url, ASKED_PATH);
            let message = format!("{asked}\n\nVisit this page? {url}");
            consent(ui, title, message).await?;
            return Ok(Reply::Accept(Map::new()));
        }
        Form::Fields(fields) => fields,
    };
    if fields.is_empty() {
        consent(ui, title, asked).await?;
        return Ok(Reply::Accept(Map::new()));
    }
    let mut content = Map::new();
    for field in fields {
        let value = answer(ui, &format!("{title}: {asked}\n{}", field.title), field).await?;
        if let Some(value) = value {
            content.insert(field.name.clone(), value);
        }
    }
    Ok(Reply::Accept(content))
}

async fn consent(ui: &Ui, title: String, message: String) -> Result<(), Reply> {
    let dialog = Dialog::Confirm {
        title,
        message,
        timeout: None,
    };
    // No token: the connection drops this future to withdraw the dialog.
    match ui.ask(dialog, &CancellationToken::new()).await {
        Answer::Confirmed(true) => Ok(()),
        Answer::None(why) => Err(unanswered(why)),
        // Fails closed: only a confirmation is a consent.
        _ => Err(Reply::Decline),
    }
}

/// The reply without an answer: a user who pressed cancel declines, and in all other cases no user was there.
fn unanswered(why: NoAnswer) -> Reply {
    match why {
        NoAnswer::Cancelled => Reply::Decline,
        _ => Reply::Cancel,
    }
}

async fn choose(ui: &Ui, title: &str, options: Vec<String>) -> Result<String, Reply> {
    let dialog = Dialog::Select {
        title: title.to_owned(),
        options: options.into_iter().map(Into::into).collect(),
        timeout: None,
    };
    match ui.ask(dialog, &CancellationToken::new()).await {
        Answer::Value(value) => Ok(value),
        Answer::None(why) => Err(unanswered(why)),
        // `dialogs` gives no such answer to a selection.
        Answer::Confirmed(_) | Answer::Denied(_) => Err(Reply::Cancel),
    }
}

/// The answer to one field; none leaves it out.
async fn answer(ui: &Ui, title: &str, field: &Field) -> Result<Option<Value>, Reply> {
    let none = || (!field.required).then(|| SKIP.to_owned());
    match &field.kind {
        Kind::Flag => {
            let options = [YES, NO].map(str::to_owned).into_iter().chain(none());
            Ok(match choose(ui, title, options.collect()).await?.as_str() {
                YES => Some(json!(true)),
                NO => Some(json!(false)),
                // The field was left out, so the server's default counts.
                _ => field.default.clone(),
            })
        }
        Kind::Choice(choices) => {
            let options = choices.iter().map(|(_, label)| label.clone()).chain(none());
            let chosen = choose(ui, title, options.collect()).await?;
            // Users see labels, and the server gets the value.
            let value = choices.iter().find(|(_, label)| *label == chosen);
            Ok(value
                .map(|(value, _)| json!(value))
                .or_else(|| field.default.clone()))
        }
        Kind::Choices(choices) => several(ui, title, choices).await.map(Some),
        Kind::Text | Kind::Number(_) => typed(ui, title, field).await,
    }
}

/// Several choices, one after the other.
async fn several(ui: &Ui, title: &str, choices: &[(String, String)]) -> Result<Value, Reply> {
    let mut left: Vec<&(String, String)> = choices.iter().collect();
    let mut taken = Vec::new();
    while !left.is_empty() {
        let options = left.iter().map(|(_, label)| label.clone());
        let options = std::iter::once(DONE.to_owned()).chain(options);
        let chosen = choose(ui, title, options.collect()).await?;
        let Some(at) = left.iter().position(|(_, label)| *label == chosen) else {
            // `DONE`, or an answer that is none of the options: the earlier choices count.
            break;
        };
        taken.push(json!(left.remove(at).0));
    }
    Ok(Value::Array(taken))
}

/// A text or a number. A number that is none is asked for once more, not for ever.
async fn typed(ui: &Ui, title: &str, field: &Field) -> Result<Option<Value>, Reply> {
    for _ in 0..2 {
        let dialog = Dialog::Input {
            title: title.to_owned(),
            // The text is the server's: no control character of it may reach a terminal (GUARANTEES.md, 93).
            placeholder: field.default.as_ref().map(|value| match value {
                Value::String(text) => visible::line(text, ASKED_PATH),
                other => visible::line(&other.to_string(), ASKED_PATH),
            }),
            timeout: None,
        };
        let text = match ui.ask(dialog, &CancellationToken::new()).await {
            Answer::Value(text) => text,
            Answer::None(why) => return Err(unanswered(why)),
            Answer::Confirmed(_) | Answer::Denied(_) => return Err(Reply::Cancel),
        };
        // An empty line stands for the default that the placeholder shows.
        if text.is_empty() && (field.default.is_some() || !field.required) {
            return Ok(field.default.clone());
        }
        let value = match field.kind {
            Kind::Number(true) => text.trim().parse::<i64>().ok().map(|number| json!(number)),
            // JSON has no infinity and no NaN.
            Kind::Number(false) => {
                let number = text.trim().parse::<f64>().ok();
                number
                    .filter(|number| number.is_finite())
                    .map(|number| json!(number))
            }
            _ => Some(json!(text)),
        };
        if value.is_some() {
            return Ok(value);
        }
    }
    Err(Reply::Cancel)
}

#[cfg(test)]
mod tests {
    use super::super::super::dialogs::Dialogs;
    use super::*;
    use crate::outbox::{Outgoing, outbox};

    fn question(form: Form) -> Question {
        Question {
            server: "files".to_owned(),
            message: "Which one?".to_owned(),
            form,
        }
    }

    fn field(kind: Kind, required: bool, default: Option<Value>) -> Form {
        Form::Fields(vec![Field {
            name: "key".to_owned(),
            title: "The key".to_owned(),
            kind,
            required,
            default,
        }])
    }

    fn choices() -> Vec<(String, String)> {
        [("r", "Red"), ("g", "Green")]
            .map(|(value, label)| (value.to_owned(), label.to_owned()))
            .to_vec()
    }

    /// Asks a user who gives these answers. Returns the reply and the frames of the dialogs.
    async fn asked(form: Form, answers: &[Value]) -> (Reply, Vec<Value>) {
        let (outbox, mut lines) = outbox(64);
        let mut dialogs = Dialogs::new(None);
        let mut reply = Asks(dialogs.ui()).ask(question(form));
        let (mut answers, mut frames) = (answers.iter(), Vec::new());
        loop {
            let event = tokio::select! {
                reply = &mut reply => return (reply, frames),
                event = dialogs.next() => event,
            };
            dialogs.handle(event, &outbox).await;
            while let Ok(Outgoing::Event(event)) = lines.try_recv() {
                let frame = serde_json::to_value(&*event).unwrap();
                let mut answer = answers.next().expect("an answer is left").clone();
                answer["id"] = frame["id"].clone();
                frames.push(frame);
                dialogs.answered(&serde_json::from_value(answer).unwrap());
            }
        }
    }

    fn accepted(value: Value) -> Reply {
        Reply::Accept(value.as_object().unwrap().clone())
    }

    #[tokio::test]
    async fn question_without_fields_wants_consent() {
        let reply = async |answer: Value| asked(Form::Fields(Vec::new()), &[answer]).await.0;
        assert_eq!(reply(json!({"confirmed": true})).await, accepted(json!({})));
        assert_eq!(reply(json!({"confirmed": false})).await, Reply::Decline);
        assert_eq!(reply(json!({"cancelled": true})).await, Reply::Decline);
        let timed_out = json!({"cancelled": true, "timedOut": true});
        assert_eq!(reply(timed_out).await, Reply::Cancel, "no user was there");
    }

    #[tokio::test]
    async fn page_to_visit_is_shown_with_its_address() {
        let form = Form::Visit("https://example.org/login".to_owned());
        let (reply, frames) = asked(form, &[json!({"confirmed": true})]).await;
        assert_eq!(reply, accepted(json!({})));
        let message = frames[0]["message"].as_str().unwrap();
        assert!(message.contains("https://example.org/login"), "{message}");
        assert!(frames[0]["title"].as_str().unwrap().contains("files"));
    }

    #[tokio::test]
    async fn optional_flag_left_out_has_its_default() {
        let (reply, frames) = asked(
            field(Kind::Flag, false, Some(json!(true))),
            &[json!({"value": SKIP})],
        )
        .await;
        assert_eq!(reply, accepted(json!({"key": true})));
        assert_eq!(frames[0]["options"], json!([YES, NO, SKIP]));
        let (reply, frames) = asked(field(Kind::Flag, true, None), &[json!({"value": NO})]).await;
        assert_eq!(reply, accepted(json!({"key": false})));
        assert_eq!(
            frames[0]["options"],
            json!([YES, NO]),
            "a required field is not skipped"
        );
    }

    #[tokio::test]
    async fn chosen_label_becomes_its_value() {
        let choice = || field(Kind::Choice(choices()), false, None);
        let (reply, _) = asked(choice(), &[json!({"value": "Green"})]).await;
        assert_eq!(reply, accepted(json!({"key": "g"})));
        let (reply, _) = asked(choice(), &[json!({"value": SKIP})]).await;
        assert_eq!(reply, accepted(json!({})), "the field is left out");
    }

    #[tokio::test]
    async fn several_choices_are_asked_until_done() {
        let several = || field(Kind::Choices(choices()), true, None);
        let answers = [json!({"value": "Green"}), json!({"value": DONE})];
        let (reply, frames) = asked(several(), &answers).await;
        assert_eq!(reply, accepted(json!({"key": ["g"]})));
        assert_eq!(
            frames[1]["options"],
            json!([DONE, "Red"]),
            "a taken choice is gone"
        );
        let all = [json!({"value": "Red"}), json!({"value": "Green"})];
        let (reply, _) = asked(several(), &all).await;
        assert_eq!(
            reply,
            accepted(json!({"key": ["r", "g"]})),
            "nothing is left to ask"
        );
    }

    #[tokio::test]
    async fn odd_number_is_asked_for_twice() {
        let number = || field(Kind::Number(true), true, None);
        let (reply, _) = asked(number(), &[json!({"value": "x"}), json!({"value": " 7 "})]).await;
        assert_eq!(reply, accepted(json!({"key": 7})));
        let (reply, frames) = asked(number(), &[json!({"value": "1.5"}), json!({"value": ""})]).await;
        assert_eq!((reply, frames.len()), (Reply::Cancel, 2));
        let broken = field(Kind::Number(false), true, None);
        let (reply, _) = asked(broken, &[json!({"value": "inf"}), json!({"value": "1.5"})]).await;
        assert_eq!(reply, accepted(json!({"key": 1.5})));
    }

    #[tokio::test]
    async fn empty_text_has_default_or_is_left_out() {
        let empty = [json!({"value": ""})];
        let reply = async |required, default| asked(field(Kind::Text, required, default), &empty).await.0;
        assert_eq!(reply(false, None).await, accepted(json!({})));
        let default = Some(json!("usual"));
        assert_eq!(reply(true, default).await, accepted(json!({"key": "usual"})));
        assert_eq!(reply(true, None).await, accepted(json!({"key": ""})));
    }

    #[tokio::test]
    async fn hidden_characters_of_a_default_are_shown() {
        let default = format!("a\u{1b}[2J\u{202e}b{}", "x".repeat(100_000));
        let form = field(Kind::Text, true, Some(json!(default)));
        let (reply, frames) = asked(form, &[json!({"value": ""})]).await;
        let shown = frames[0]["placeholder"].as_str().unwrap();
        assert!(
            !shown.contains(['\u{1b}', '\u{202e}']) && shown.len() < 10_000,
            "{shown}"
        );
        assert_eq!(
            reply,
            accepted(json!({"key": default})),
            "the server gets its own text"
        );
    }
}
