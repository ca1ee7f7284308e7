//! Shell commands of the user that an extension runs: their output comes in pieces, their end as the answer to `user_bash`.

use extensions::{Answer, ProcessError};
use serde_json::{Value, json};
use wire::command::BashParams;
use wire::state::BashResult;

use super::super::deferred::DeferredActions;
use super::super::extension_events::on_event;
use super::super::extensions::{Answered, ClientRequest, ExtensionEvent};
use super::super::shell_commands::{bash, give_up, on_output};
use super::stage::DriverStage;
use crate::limits;
use crate::outbox::{ClientId, Origin, Outgoing, Responder};
use crate::strings;

/// A command of a client.
fn command(stage: &DriverStage) -> (Responder<BashResult>, BashParams) {
    let origin = Origin {
        client: ClientId::default(),
        id: None,
        command: "bash",
    };
    let params = serde_json::from_value(json!({"command": "make"})).unwrap();
    (Responder::new(origin, &stage.driver.core.outbox), params)
}

/// An extension looks at one more command. Returns the number of the command.
fn look_at(stage: &mut DriverStage) -> u64 {
    let (responder, params) = command(stage);
    let requests = &mut stage.driver.extensions.client_requests;
    let number = requests.next_number();
    requests.wait(ClientRequest::Shell(responder, params), std::future::pending());
    number
}

/// A session in which an extension looks at one command, with the number of the command.
fn looked_at() -> (DriverStage, u64) {
    let mut stage = DriverStage::new(&[]);
    let number = look_at(&mut stage);
    (stage, number)
}

/// The extension answers.
async fn answer(stage: &mut DriverStage, number: u64, answer: Result<Value, ProcessError>) {
    let answer = answer.map(|value| Answer {
        value,
        ..Answer::default()
    });
    let event = ExtensionEvent::Client(Answered { number, answer });
    on_event(&mut stage.driver, &mut DeferredActions::default(), event).await;
}

/// The types of the events that were sent, outputs, and the outcome of the response.
fn sent(stage: &mut DriverStage) -> (Vec<String>, Option<Result<Value, String>>) {
    let (mut seen, mut outcome) = (Vec::new(), None);
    while let Ok(outgoing) = stage.sent.try_recv() {
        match outgoing {
            Outgoing::Event(event) => {
                let event = serde_json::to_value(&*event).unwrap();
                let text = event.get("delta").unwrap_or(&event["type"]);
                seen.push(text.as_str().unwrap().to_owned());
            }
            Outgoing::Response(_, response) => {
                let result = response.outcome;
                outcome = Some(result.map(|reply| serde_json::to_value(&reply).unwrap()));
            }
            other => panic!("{other:?}"),
        }
    }
    (seen, outcome)
}

#[tokio::test]
async fn output_is_sent_before_extension_answers() {
    let (mut stage, number) = looked_at();
    on_output(&mut stage.driver, number, "one\u{1b}[3").await.unwrap();
    assert_eq!(sent(&mut stage).0, ["bash_execution_start", "one"]);
    // The rest of the escape sequence comes with the next piece.
    on_output(&mut stage.driver, number, "1m two\r\n").await.unwrap();
    assert_eq!(sent(&mut stage).0, [" two\n"]);
    let result = json!({"result": {"exitCode": 3, "output": "another"}});
    answer(&mut stage, number, Ok(result)).await;
    let (seen, outcome) = sent(&mut stage);
    let result = outcome.unwrap().unwrap();
    assert_eq!(seen.last().unwrap(), "bash_execution_end");
    assert_eq!(
        (&result["output"], &result["exitCode"], &result["truncated"]),
        (&json!("one two\n"), &json!(3), &json!(false))
    );
    assert_eq!(stage.driver.core.machine.messages().len(), 1);
    let late = on_output(&mut stage.driver, number, "late").await;
    assert_eq!(late, Err(strings::COMMAND_ENDED.to_owned()));
}

#[tokio::test]
async fn command_of_lost_extension_fails_and_ends() {
    for (answered, error) in [
        (
            Err(ProcessError::Gone("killed".to_owned())),
            ProcessError::Gone("killed".to_owned()).to_string(),
        ),
        // Its output has come, so the session must not run it once more.
        (Ok(Value::Null), strings::NO_RESULT.to_owned()),
        (Ok(json!({"error": "no host"})), "no host".to_owned()),
    ] {
        let (mut stage, number) = looked_at();
        on_output(&mut stage.driver, number, "one").await.unwrap();
        answer(&mut stage, number, answered).await;
        let (seen, outcome) = sent(&mut stage);
        assert_eq!(seen, ["bash_execution_start", "one", "bash_execution_end"]);
        assert_eq!(outcome, Some(Err(error)));
        assert!(!stage.driver.shells.are_busy() && !stage.driver.shells.is_remote(number));
    }
}

#[tokio::test]
async fn given_up_command_ends_before_its_response() {
    let (mut stage, number) = looked_at();
    on_output(&mut stage.driver, number, "one").await.unwrap();
    assert!(
        !stage.driver.shells.are_running(),
        "a session change does not wait for it"
    );
    give_up(&mut stage.driver).await;
    let (seen, outcome) = sent(&mut stage);
    assert_eq!(seen.last().unwrap(), "bash_execution_end");
    assert_eq!(outcome, Some(Err(strings::ABORTED.to_owned())));
    assert!(on_output(&mut stage.driver, number, "late").await.is_err());
}

#[tokio::test]
async fn commands_of_extensions_are_limited() {
    let (mut stage, _) = looked_at();
    for _ in 1..limits::BASH_RUNNING {
        look_at(&mut stage);
    }
    let (responder, params) = command(&stage);
    bash(&mut stage.driver, responder, params).await;
    let error = strings::too_many_commands(limits::BASH_RUNNING);
    assert_eq!(sent(&mut stage).1, Some(Err(error)));
}
