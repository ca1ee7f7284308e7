//! `-p` and `--mode json`: says each prompt, waits until the session is quiet, ends.

use std::fs::File;
use std::process::ExitCode;

use anyhow::bail;
use serve::{Encoder, Form, Sink, StdoutWriter};
use session::{ClientId, Origin, Outgoing, RequestReceiver, RequestSender, Session, SessionRequest};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::LocalSet;
use wire::command::{NoParams, PromptParams};
use wire::event::CompactionReason;
use wire::reply::{CommandStage, Disposition};
use wire::run_limits::ReachedLimit;
use wire::{Event, Reply, SessionCommand, StopReason};

use crate::args::{Args, Mode};
use crate::environment::{Environment, complain};
use crate::exit;
use crate::setup::Setup;
use crate::signals::Signals;

use super::prompts::{Prompt, collect, output_schema};
use super::text::Printer;
use super::{finish_logins, open, runtime};

/// Runs it to its end. The exit code is 1 when the last answer failed, was aborted or, in text mode, hit the output limit.
pub(crate) fn run(
    mut args: Args,
    env: &Environment,
    setup: &Setup,
    stdout: File,
) -> anyhow::Result<ExitCode> {
    let runtime = runtime()?;
    // Extensions may open further sessions in the same process.
    let sessions = LocalSet::new();
    let code = sessions.block_on(&runtime, async {
        let (session, outbox, mut outgoing) = open(&mut args, env, setup).await?;
        outbox.render_nothing();
        drop(outbox);
        let mut prompts = collect(&args, env)?;
        let schema = output_schema(&args, env)?;
        let only_result = schema.is_some();
        if let Some(last) = prompts.last_mut() {
            last.output_schema = schema;
        }
        if prompts.is_empty() {
            bail!(
                "No prompt was given. Answer one: pinion -p \"...\"; open the web page: pinion --mode web --open; serve a host \
                 application: pinion --mode rpc. All options: pinion --help"
            );
        }
        let mut signals = Signals::listen()?;
        let (slot, requests) = session::request_queue();
        let mut screen = if args.mode == Some(Mode::Json) {
            let form = match setup.agent.options.dialect.has_delta_updates() {
                true => Form::Delta,
                false => Form::Cumulative,
            };
            Screen::json(&session, stdout, form).await?
        } else {
            Screen::Text(Box::new(Printer::new(
                stdout,
                &session.model().name,
                only_result,
            )?))
        };
        let (code, is_signal) = tokio::select! {
            code = play(session, requests, slot, &mut outgoing, prompts, &mut screen) => (code?, false),
            code = signals.next() => (code, true),
        };
        tracing::debug!("processes of tools are ended");
        setup.agent.reaper.shutdown().await;
        if is_signal {
            // The reader may have stopped for good; the process must end all the same.
            let _stuck = tokio::time::timeout(serve::limits::CLOSE_WAIT, screen.drain(outgoing)).await;
        }
        anyhow::Ok(ExitCode::from(code))
    });
    finish_logins(&runtime, setup);
    let code = code?;
    runtime.shutdown_background();
    Ok(code)
}

async fn play(
    session: Session,
    requests: RequestReceiver,
    slot: RequestSender,
    outgoing: &mut Receiver<Outgoing>,
    prompts: Vec<Prompt>,
    screen: &mut Screen,
) -> anyhow::Result<u8> {
    let running = session.run(requests);
    tokio::pin!(running);
    let code = {
        let talking = async {
            let mut code = exit::SUCCESS;
            for prompt in prompts {
                let Some(ended) = talk(&slot, outgoing, prompt, screen).await? else {
                    // As in pi, the messages after a prompt that is refused are not sent.
                    code = exit::FAILURE;
                    break;
                };
                code = ended;
            }
            screen.close().await?;
            anyhow::Ok(code)
        };
        tokio::pin!(talking);
        tokio::select! {
            () = &mut running => bail!("The session ended early"),
            code = &mut talking => code?,
        }
    };
    // Without mail to come the session ends, and its extensions hear of it.
    drop(slot);
    let unheard = async {
        while outgoing.recv().await.is_some() {}
        std::future::pending::<()>().await;
    };
    let ending = async {
        tokio::select! {
            () = running => {}
            () = unheard => {}
        }
    };
    let _in_time = tokio::time::timeout(session::limits::SINGLE_END, ending).await;
    Ok(code)
}

/// What the work for a prompt waits for.
#[derive(PartialEq, Eq)]
enum Awaiting {
    /// The response to the prompt.
    Response,
    /// The end of the run.
    Settled,
    /// The response to a later command, before which a run begins that an extension has asked for.
    Barrier,
}

impl Awaiting {
    /// What follows a response; none if nothing does.
    fn after(reply: &Reply, is_running: bool) -> Option<Self> {
        match reply {
            Reply::Accepted(accepted) if accepted.disposition != Disposition::Handled => Some(Self::Settled),
            // The response to the end of the slash command follows.
            Reply::Accepted(accepted) if accepted.stage == CommandStage::Begun => Some(Self::Response),
            // A prompt that an extension handled begins no run by itself, so that nothing may settle.
            Reply::Accepted(_) => Some(Self::Barrier),
            _ => {
                let state = reply.state()?;
                // The first event of a run may wait for hooks.
                (is_running || state.is_streaming).then_some(Self::Settled)
            }
        }
    }
}

/// Says one prompt and shows what follows until the session has settled. Returns the exit code; none if the prompt is refused.
async fn talk(
    slot: &RequestSender,
    outgoing: &mut Receiver<Outgoing>,
    prompt: Prompt,
    screen: &mut Screen,
) -> anyhow::Result<Option<u8>> {
    let params = PromptParams {
        message: prompt.text,
        images: prompt.images,
        attachments: Vec::new(),
        streaming_behavior: None,
        limits: None,
        fallback_models: None,
        output_schema: prompt.output_schema,
    };
    let mut ending = Ending {
        wants_result: params.output_schema.is_some(),
        ..Ending::default()
    };
    let (mut awaiting, mut is_running) = (Awaiting::Response, false);
    send(slot, "prompt", SessionCommand::Prompt(params)).await;
    loop {
        // Before an event is taken: a signal can end this function at every `await`, and would lose it.
        screen.ready().await?;
        let Some(item) = outgoing.recv().await else { break };
        let event = match item {
            Outgoing::Event(event) => event,
            Outgoing::Response(_, response) => {
                let reply = match response.outcome {
                    Ok(reply) => reply,
                    Err(error) => {
                        complain(&error);
                        return Ok(None);
                    }
                };
                let Some(next) = Awaiting::after(&reply, is_running) else {
                    break;
                };
                if next == Awaiting::Barrier {
                    send(slot, "get_state", SessionCommand::GetState(NoParams {})).await;
                }
                awaiting = next;
                continue;
            }
            Outgoing::Flush(done) => {
                let _gone = done.send(());
                continue;
            }
            _ => continue,
        };
        ending.note(&event);
        let settled = matches!(event.as_ref(), Event::AgentSettled { .. });
        is_running = !settled && (is_running || begins_run(&event));
        screen.show(event).await?;
        if settled && awaiting == Awaiting::Settled {
            break;
        }
    }
    Ok(Some(ending.exit_code(matches!(*screen, Screen::Text(_)))))
}

/// Returns true for the first event of a run. A full context is compacted before a run.
fn begins_run(event: &Event) -> bool {
    match event {
        Event::AgentStart => true,
        Event::CompactionStart { reason } => *reason != CompactionReason::Manual,
        _ => false,
    }
}

async fn send(slot: &RequestSender, name: &'static str, command: SessionCommand) {
    let origin = Origin {
        client: ClientId::default(),
        id: None,
        command: name,
    };
    slot.send(SessionRequest::Command(origin, command)).await;
}

/// How the work for a prompt ended.
#[derive(Default)]
struct Ending {
    last: Option<StopReason>,
    error: Option<String>,
    limit: Option<ReachedLimit>,
    /// The prompt has a schema.
    wants_result: bool,
    has_result: bool,
    result_error: Option<String>,
}

impl Ending {
    fn note(&mut self, event: &Event) {
        match event {
            Event::MessageEnd { message } => {
                let Some(answer) = message.as_assistant() else {
                    return;
                };
                self.last = Some(answer.stop_reason);
                self.error.clone_from(&answer.error_message);
            }
            Event::AgentEnd {
                limit,
                result,
                result_error,
                ..
            } => {
                self.limit = *limit;
                self.has_result |= result.is_some();
                self.result_error.clone_from(result_error);
            }
            _ => {}
        }
    }

    /// The exit code. Says on stderr what went wrong.
    fn exit_code(self, is_text: bool) -> u8 {
        if self.wants_result {
            if self.has_result {
                return exit::SUCCESS;
            }
            complain(self.result_error.as_deref().unwrap_or("The run gave no result"));
            return exit::NO_RESULT;
        }
        if let Some(limit) = self.limit {
            complain(&format!("Limit reached: {limit}"));
            return exit::LIMIT;
        }
        match self.last {
            Some(StopReason::Error | StopReason::Aborted) => {
                complain(self.error.as_deref().unwrap_or("The model failed"));
                exit::FAILURE
            }
            // As in pi, `--mode json` succeeds then: clients read the stop reason of the answer.
            Some(StopReason::Length) if is_text => {
                complain("Warning: the answer was cut off by the model's output limit");
                exit::FAILURE
            }
            _ => exit::SUCCESS,
        }
    }
}

/// Where events go.
enum Screen {
    Text(Box<Printer>),
    Json(mpsc::Sender<Outgoing>, StdoutWriter),
}

impl Screen {
    /// Events as JSON lines after the session's header (pi-core.md 7.3).
    async fn json(session: &Session, stdout: File, form: Form) -> anyhow::Result<Self> {
        let header = serde_json::to_string(session.header())?;
        let mut sink = Sink::open(stdout)?;
        let mut buffer = sink.buffer().await?;
        buffer.extend_from_slice(header.as_bytes());
        buffer.push(b'\n');
        sink.write(buffer).await?;
        let (sender, receiver) = mpsc::channel(session::limits::OUTBOX);
        let writer = StdoutWriter::spawn(receiver, Encoder::new(form), sink);
        Ok(Self::Json(sender, writer))
    }

    /// Waits until `show` can take an event. Only this program sends events to the writer, so the place stays free.
    async fn ready(&mut self) -> anyhow::Result<()> {
        if let Self::Json(sender, writer) = self {
            let is_gone = sender.reserve().await.is_err();
            if is_gone {
                return Err(failure(writer).await);
            }
        }
        Ok(())
    }

    /// Shows an event, after `ready`.
    async fn show(&mut self, event: std::sync::Arc<Event>) -> anyhow::Result<()> {
        match self {
            Self::Text(printer) => printer.show(&event).await?,
            // The session's header is the first line here, and no client sends commands.
            Self::Json(..)
                if matches!(
                    *event,
                    Event::Ready { .. } | Event::AvailableCommandsUpdate { .. }
                ) => {}
            Self::Json(sender, writer) => match sender.try_send(Outgoing::Event(event)) {
                // The writer can fail after `ready`.
                Err(TrySendError::Closed(_)) => return Err(failure(writer).await),
                sent => sent?,
            },
        }
        Ok(())
    }

    /// Writes the events from before a signal, and waits for it.
    async fn drain(mut self, mut outgoing: Receiver<Outgoing>) -> anyhow::Result<()> {
        while matches!(self, Self::Json(..))
            && let Ok(item) = outgoing.try_recv()
        {
            if let Outgoing::Event(event) = item {
                self.ready().await?;
                self.show(event).await?;
            }
        }
        match self {
            // Of the last answer, only the text that is shown already: the run may not have ended with it.
            Self::Text(mut printer) => printer.flush().await?,
            Self::Json(sender, mut writer) => {
                drop(sender);
                writer.ended().await?;
            }
        }
        Ok(())
    }

    async fn close(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Text(printer) => printer.finish().await?,
            Self::Json(sender, writer) => {
                let (done, wait) = tokio::sync::oneshot::channel();
                // Not kept if it is refused: the wait ends when `done` is dropped.
                drop(sender.send(Outgoing::Flush(done)).await);
                if wait.await.is_err() {
                    return Err(failure(writer).await);
                }
            }
        }
        Ok(())
    }
}

/// Why the writer of JSON lines has ended before its sender.
async fn failure(writer: &mut StdoutWriter) -> anyhow::Error {
    let outcome = writer.ended().await;
    outcome.err().unwrap_or(serve::Error::Closed).into()
}
