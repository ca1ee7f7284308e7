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
    match ui.ask(dialog, &CancellationToken::new()).await {
        Answer::Confirmed(true) => Ok(()),
        Answer::None(why) => Err(unanswered(why)),
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
        options,
        timeout: None,
    };
    match ui.ask(dialog, &CancellationToken::new()).await {
        Answer::Value(value) => Ok(value),
        Answer::None(why) => Err(unanswered(why)),
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
                _ => field.default.clone(),
            })
        }
        Kind::Choice(choices) => {
            let options = choices.iter().map(|(_, label)| label.clone()).chain(none());
            let chosen = choose(ui, title, options.collect()).await?;
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
            placeholder: field.default.as_ref().map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }),
            timeout: None,
        };
        let text = match ui.ask(dialog, &CancellationToken::new()).await {
            Answer::Value(text) => text,
            Answer::None(why) => return Err(unanswered(why)),
            Answer::Confirmed(_) | Answer::Denied(_) => return Err(Reply::Cancel),
        };
        if text.is_empty() && (field.default.is_some() || !field.required) {
            return Ok(field.default.clone());
        }
        let value = match field.kind {
            Kind::Number(true) => text.trim().parse::<i64>().ok().map(|number| json!(number)),
            Kind::Number(false) => text.trim().parse::<f64>().ok().map(|number| json!(number)),
            _ => Some(json!(text)),
        };
        if value.is_some() {
            return Ok(value);
        }
    }
    Err(Reply::Cancel)
}
