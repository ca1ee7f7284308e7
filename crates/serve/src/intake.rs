//! The meaning of a line where it depends on the dialect (dialects.md 5, rows 12, 15 and 16). No code behind this module
//! depends on the client's dialect.

use serde_json::Value;
use session::{ClientId, Origin, SessionRequest};
use wire::command::{MessageParams, OpenSessionParams, PromptParams, SwitchParams};
use wire::hosted::Frame;
use wire::omp::{BAD_EVENT_FILTER, BAD_PAGE_LIMIT, BAD_POSITION, ContinueSessionParams, bad_subagent_level};
use wire::{Command, Dialect, ManagerCommand, Response, SessionCommand};

use crate::manner::Manner;
use crate::parse::{Inbound, session_of};

/// Converts a line to a message for a session, and returns the session's handle. `None` for lines that are ignored:
/// responses to questions that were never asked (dialects.md 2), and the end of input, which is no line.
#[must_use]
pub fn mail(
    inbound: Inbound,
    manner: Manner,
    client: ClientId,
) -> Option<(SessionRequest, Option<Box<str>>)> {
    match inbound {
        Inbound::Request(request) => {
            let origin = Origin {
                client,
                id: request.id,
                command: request.command.name(),
            };
            let mail = match request.command {
                Command::Session(asked) => SessionRequest::Command(origin, command(asked, manner.dialect)),
                // oh-my-pi has a command of that name with another meaning (dialects.md 14).
                Command::Manager(ManagerCommand::OpenSession(OpenSessionParams {
                    session_dir: Some(session_dir),
                    ..
                })) => SessionRequest::Command(
                    origin,
                    SessionCommand::ContinueSession(ContinueSessionParams { session_dir }),
                ),
                // Without a directory it would open a further session in this process, which a client of oh-my-pi does not expect.
                Command::Manager(ManagerCommand::OpenSession(params))
                    if manner.dialect == Dialect::OmpNow && params == OpenSessionParams::default() =>
                {
                    let response = Response {
                        id: origin.id,
                        command: Some(origin.command.into()),
                        outcome: Err("open_session requires sessionDir".to_owned()),
                    };
                    SessionRequest::Reject(client, response)
                }
                Command::Manager(asked) => SessionRequest::Manager(origin, asked),
                Command::Connection(asked) => SessionRequest::Connection(origin, asked),
            };
            Some((mail, request.session))
        }
        Inbound::Rejected(response) => {
            Some((SessionRequest::Reject(client, refusal(response, manner)), None))
        }
        // Frames are never answered, so an unreadable one is dropped.
        Inbound::Frame(name, line) => Some((
            SessionRequest::Frame(Frame::parse(name, &line)?),
            session_of(&line),
        )),
        Inbound::Eof => None,
    }
}

/// The answer to a line that is no command.
#[must_use]
fn refusal(mut response: Response, manner: Manner) -> Response {
    // A client that never sees the id of an unknown command waits in vain, so it must have asked for this dialect by name.
    if manner.chosen && manner.dialect == Dialect::Xcsh {
        response.id = None;
    }
    if manner.dialect == Dialect::OmpNow
        && let Err(error) = &mut response.outcome
        && let Some(words) = omp_words(response.command.as_ref(), error)
    {
        *error = words;
    }
    response
}

/// What oh-my-pi says about parameters that do not fit, where its description names a text (dialects.md 14).
fn omp_words(command: Option<&Value>, error: &str) -> Option<String> {
    match command?.as_str()? {
        "set_event_filter" => Some(BAD_EVENT_FILTER.to_owned()),
        "get_messages_page" if error.contains("expected i64") => Some(BAD_PAGE_LIMIT.to_owned()),
        // A number that is not whole, or below 0, is a number for oh-my-pi.
        "get_subagent_messages" if error.contains("invalid type: string") => Some(BAD_POSITION.to_owned()),
        "set_subagent_subscription" => subagent_level(error).map(bad_subagent_level),
        _ => None,
    }
}

/// The level in an error about it. The client sent a text that is no level, or none.
fn subagent_level(error: &str) -> Option<&str> {
    if error.contains("missing field `level`") {
        return Some("undefined");
    }
    let (_, named) = error.split_once("unknown variant `")?;
    named.split_once("`, expected").map(|(level, _)| level)
}

/// A command in today's terms. Its answer goes by the name that the client wrote.
#[must_use]
fn command(command: SessionCommand, dialect: Dialect) -> SessionCommand {
    match command {
        // It has no command for queues, and a second prompt was never refused.
        SessionCommand::Prompt(params)
            if dialect == Dialect::Early && params.streaming_behavior.is_none() =>
        {
            SessionCommand::Prompt(PromptParams {
                streaming_behavior: Some("followUp".to_owned()),
                ..params
            })
        }
        SessionCommand::SwitchSession(params) if dialect == Dialect::Web => {
            SessionCommand::SwitchSession(SwitchParams {
                // Pages resume the most recent session, so it opens even if its directory is gone.
                is_page: true,
                ..params
            })
        }
        // Row 15: as a prompt it starts a run when none is under way.
        SessionCommand::Steer(params) if dialect.steering_starts_runs() => steering_prompt(params),
        other => other,
    }
}

/// A prompt that steers when a run is under way.
fn steering_prompt(params: MessageParams) -> SessionCommand {
    SessionCommand::Prompt(PromptParams {
        message: params.message,
        images: params.images,
        attachments: Vec::new(),
        streaming_behavior: Some("steer".to_owned()),
        limits: None,
        fallback_models: None,
        output_schema: None,
    })
}
