//! Commands of a client that an extension carries out: slash commands, completion of their arguments, keyboard shortcuts, and
//! user shell commands that an extension may replace. Each waits here until the extension has answered. Slash commands that
//! extensions send as messages wait here, too.

use std::pin::Pin;

use extensions::{Answer, ProcessError};
use serde_json::{Value, json};
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;
use tools::BashRun;
use wire::command::{BashParams, CompleteParams, ShortcutParams};
use wire::reply::{Accepted, CommandStage, Completions, CycledModel, CycledThinking};
use wire::state::BashResult;
use wire::table::Respond;
use wire::{Model, ThinkingLevel};

use crate::limits;
use crate::outbox::{Origin, Outbox, Responder};
use crate::strings;

use super::failures::{failure, report};
use super::links::{ExtensionLinks, SlashCommand};
use super::pending::{Answered, Pending};

/// A command that waits for an extension.
pub(crate) enum ClientRequest {
    /// A slash command, with its name and what its response says about it.
    Command(Responder<Accepted>, String, CommandStage),
    /// A slash command that an extension sent as a message, with its name. Nothing waits for a response.
    SentCommand(String),
    /// The possible arguments of a slash command.
    Complete(Responder<Completions>),
    /// A keyboard shortcut, with its keys.
    Shortcut(Responder<()>, String),
    /// A user shell command that extensions may run themselves.
    Shell(Responder<BashResult>, BashParams),
    /// The session has another model, of which extensions hear.
    SetModel(Responder<Model>, Box<Model>),
    /// The session has the next model of the scope; true if it is limited.
    CycleModel(Responder<Option<CycledModel>>, Box<Model>, bool),
    /// The session has another thinking level, of which extensions hear.
    SetLevel(Responder<()>),
    /// The session has the next thinking level.
    CycleLevel(Responder<Option<CycledThinking>>, ThinkingLevel),
}

/// The commands of clients that wait for extensions.
#[derive(Default)]
pub(crate) struct ClientRequests {
    open: Pending<ClientRequest, Result<Answer, ProcessError>>,
    /// Shell commands up to this number must not begin any more.
    ended_shells: u64,
    /// Cancelled when they are aborted: extensions that run some of them end them.
    shells: CancellationToken,
    /// How long a run that a slash command began waits for the response to the command.
    response_first: Option<Pin<Box<Sleep>>>,
    /// Slash commands that have ended and that a run may follow, for clients that had the response to the beginning.
    ended: Vec<Responder<Accepted>>,
}

/// The steps after an extension's answer.
pub(crate) enum Completion {
    /// A slash command has ended that wants a run. Its client learns later whether one begins.
    WantsRun(Responder<Accepted>),
    /// The client has its response.
    Done,
    /// Run the shell command: no extension replaced it.
    RunShell(Responder<BashResult>, BashParams),
    /// An extension ran the shell command, or could not run it.
    ShellRan(Responder<BashResult>, BashParams, Result<BashRun, String>),
    /// The shell command must not run.
    ShellRefused(Responder<BashResult>, BashParams, String),
    /// Say that the session has this model.
    Cycled(Responder<Option<CycledModel>>, Box<Model>, bool),
}

impl ClientRequests {
    /// Waits for the next answer, or for the end of the time that a run waits (`None`). Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Answered<Result<Answer, ProcessError>>> {
        // Borrowed apart from `open`, which the other branch of the `select!` uses.
        let timer = &mut self.response_first;
        let waited = async {
            match timer {
                Some(sleep) => sleep.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            answered = self.open.next() => Some(answered),
            () = waited => {
                // An ended timer would be ready at every turn of the loop.
                self.response_first = None;
                None
            }
        }
    }

    /// Removes a request that was answered. `None` if it was given up.
    pub(crate) fn take(&mut self, number: u64) -> Option<ClientRequest> {
        let mut request = self.open.take(number)?;
        if let ClientRequest::Command(.., CommandStage::Ended(begins_run)) = &mut request {
            *begins_run = self.response_first.is_some();
        }
        if !self.has_command() {
            // It is no matter of the next command.
            self.response_first = None;
        }
        Some(request)
    }

    /// The client has aborted its shell commands. Extensions end the commands that they run themselves; commands that
    /// extensions still look at must not begin.
    pub(crate) fn end_shells(&mut self) {
        self.ended_shells = self.open.newest();
        // Commands that come from now on are not aborted.
        std::mem::take(&mut self.shells).cancel();
    }

    /// Cancelled when the client aborts the shell commands of now.
    pub(crate) fn shells_end(&self) -> CancellationToken {
        self.shells.clone()
    }

    /// The number of the next request that waits.
    pub(crate) fn next_number(&self) -> u64 {
        self.open.newest() + 1
    }

    /// A shell command of this number that an extension runs or looks at.
    pub(crate) fn shell(&self, number: u64) -> Option<(Origin, BashParams)> {
        match self.open.get(number)? {
            ClientRequest::Shell(responder, params) => Some((responder.origin().clone(), params.clone())),
            _ => None,
        }
    }

    /// How many shell commands extensions run or look at.
    pub(crate) fn open_shells(&self) -> usize {
        self.open
            .count(|request| matches!(request, ClientRequest::Shell(..)))
    }

    /// Returns true if a shell command was aborted before it could begin.
    pub(crate) fn is_ended_shell(&self, number: u64) -> bool {
        number <= self.ended_shells
    }

    /// Returns true if no request is open.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn has_command(&self) -> bool {
        self.open
            .any(|request| matches!(request, ClientRequest::Command(..)))
    }

    /// A run is to begin. The response to the slash command that began it comes first, if it comes at once.
    pub(crate) fn expect_response_first(&mut self) {
        if self.has_command() {
            self.response_first = Some(Box::pin(tokio::time::sleep(limits::ANSWER_FIRST)));
        }
    }

    /// Returns true while a run waits for the response to the slash command that began it.
    pub(crate) fn is_response_first(&self) -> bool {
        // The timer alone is not enough: once the command is answered, the run need not wait for it.
        self.response_first.is_some() && self.has_command()
    }

    /// A slash command has ended that wants a run. Its client gets the response from [`end_commands`](Self::end_commands).
    pub(crate) fn await_run(&mut self, responder: Responder<Accepted>) {
        self.ended.push(responder);
    }

    /// Says of slash commands that have ended whether a run follows.
    pub(crate) async fn end_commands(&mut self, begins_run: bool) {
        for responder in std::mem::take(&mut self.ended) {
            let ended = Accepted::by_command(CommandStage::Ended(begins_run));
            responder.respond(Ok(ended)).await;
        }
    }

    /// Waits for the answer to a request.
    pub(crate) fn wait(
        &mut self,
        request: ClientRequest,
        answer: impl Future<Output = Result<Answer, ProcessError>> + Send + 'static,
    ) {
        self.open.ask(request, answer);
    }

    fn call(&mut self, links: &ExtensionLinks, request: ClientRequest, method: &str, params: &Value) {
        let asking = match links.pool() {
            Some(pool) => pool.call(links.handle(), method, params, None),
            // The session goes on without the process; its client gets the reason as the response.
            None => Err(ProcessError::Gone("it has just ended".to_owned())),
        };
        self.wait(request, async move { asking?.await });
    }

    /// Has an extension run a slash command. `line` is the whole text, `stage` what the response to its end says.
    pub(crate) fn run_command(
        &mut self,
        links: &ExtensionLinks,
        responder: Responder<Accepted>,
        stage: CommandStage,
        command: SlashCommand,
        line: &str,
    ) {
        let request = ClientRequest::Command(responder, command.called.clone(), stage);
        self.call_command(links, request, &command, line);
    }

    /// Has an extension run a slash command that an extension sent as a message.
    ///
    /// # Errors
    /// When too many of them are running: each may send others.
    pub(crate) fn run_sent_command(
        &mut self,
        links: &ExtensionLinks,
        command: &SlashCommand,
        line: &str,
    ) -> Result<(), String> {
        let running = self
            .open
            .count(|request| matches!(request, ClientRequest::SentCommand(_)));
        if running >= limits::SENT_COMMANDS {
            return Err(format!(
                "{running} commands that extensions sent are running already"
            ));
        }
        let request = ClientRequest::SentCommand(command.called.clone());
        self.call_command(links, request, command, line);
        Ok(())
    }

    fn call_command(
        &mut self,
        links: &ExtensionLinks,
        request: ClientRequest,
        command: &SlashCommand,
        line: &str,
    ) {
        let SlashCommand {
            extension,
            name,
            args,
            ..
        } = command;
        let params = json!({"extension": extension, "name": name, "args": args, "line": line});
        self.call(links, request, "command.run", &params);
    }

    /// Asks an extension for the possible arguments of a slash command.
    ///
    /// # Errors
    /// Returns the responder and a message if no extension has the command.
    pub(crate) fn complete(
        &mut self,
        links: &ExtensionLinks,
        responder: Responder<Completions>,
        params: CompleteParams,
    ) -> Result<(), (Responder<Completions>, String)> {
        // Looked up like a typed command, since numbers distinguish commands of the same name.
        let Some(command) = links.command(&format!("/{}", params.name)) else {
            let error = format!("No extension has the command /{}", params.name);
            return Err((responder, error));
        };
        let params = json!({"extension": command.extension, "name": command.name, "prefix": params.prefix});
        let request = ClientRequest::Complete(responder);
        self.call(links, request, "command.complete", &params);
        Ok(())
    }

    /// Has an extension run a keyboard shortcut.
    ///
    /// # Errors
    /// Returns the responder and a message if no extension has the shortcut.
    pub(crate) fn run_shortcut(
        &mut self,
        links: &ExtensionLinks,
        responder: Responder<()>,
        params: ShortcutParams,
    ) -> Result<(), (Responder<()>, String)> {
        let keys = params.shortcut;
        let mut extensions = links.registered().iter();
        // The first one counts, as in the list of shortcuts.
        let owner = extensions.find(|extension| extension.shortcuts.iter().any(|key| key.shortcut == keys));
        let Some(path) = owner.map(|extension| &extension.path) else {
            let error = format!("No extension has the shortcut {keys}");
            return Err((responder, error));
        };
        let params = json!({"extension": path, "shortcut": keys});
        let request = ClientRequest::Shortcut(responder, keys);
        self.call(links, request, "shortcut.run", &params);
        Ok(())
    }

    /// Refuses all open requests.
    pub(crate) async fn refuse_all(&mut self) {
        self.refuse(|_| true).await;
    }

    /// Refuses the shell commands of the user about which extensions think, or which they run themselves.
    pub(crate) async fn refuse_shells(&mut self) {
        self.refuse(|request| matches!(request, ClientRequest::Shell(..)))
            .await;
    }

    async fn refuse(&mut self, which: impl Fn(&ClientRequest) -> bool) {
        for request in self.open.give_up(which) {
            request.refuse(strings::ABORTED).await;
        }
    }
}

impl ClientRequest {
    async fn refuse(self, error: &'static str) {
        match self {
            // Its client has the response to the beginning, and an error would be a second one.
            Self::Command(responder, _, CommandStage::Ended(_)) => {
                let given_up = Accepted::by_command(CommandStage::GivenUp(error));
                responder.respond(Ok(given_up)).await;
            }
            Self::Command(responder, ..) => responder.refuse(error).await,
            Self::SentCommand(_) => {}
            Self::Complete(responder) => responder.refuse(error).await,
            Self::Shortcut(responder, _) => responder.refuse(error).await,
            Self::Shell(responder, _) => responder.refuse(error).await,
            Self::SetModel(responder, _) => responder.refuse(error).await,
            Self::CycleModel(responder, ..) => responder.refuse(error).await,
            Self::SetLevel(responder) => responder.refuse(error).await,
            Self::CycleLevel(responder, _) => responder.refuse(error).await,
        }
    }

    /// Responds as the extension answered. `failed` is the message of an extension that failed although there is an answer. An exception
    /// in a slash command or a shortcut is reported, and the command counts as carried out.
    pub(crate) async fn complete(
        self,
        answer: Result<Value, ProcessError>,
        failed: Option<String>,
        outbox: &Outbox,
    ) -> Completion {
        match self {
            // Also after an exception: the client gets it as `extension_error`, and a response without an error (behaviour.md 12.2).
            Self::Command(responder, name, stage) => {
                // Before the response: a client that acts on the response has the error by then.
                report_error(answer, &format!("command:{name}"), "command", outbox).await;
                if stage == CommandStage::Ended(true) {
                    return Completion::WantsRun(responder);
                }
                responder.respond(Ok(Accepted::by_command(stage))).await;
            }
            Self::SentCommand(name) => {
                report_error(answer, &format!("command:{name}"), "command", outbox).await;
            }
            Self::Shortcut(responder, keys) => {
                report_error(answer, &format!("shortcut:{keys}"), "shortcut", outbox).await;
                responder.respond(Ok(())).await;
            }
            Self::Complete(responder) => {
                let items = answer.map(|mut answer| match answer.get_mut("items").map(Value::take) {
                    Some(Value::Array(items)) => items,
                    _ => Vec::new(),
                });
                let outcome = items.map(|items| Completions { items });
                responder
                    .respond(outcome.map_err(|error| error.to_string()))
                    .await;
            }
            Self::Shell(responder, params) => return shell_completion(responder, params, answer, failed),
            // A handler that failed was reported; the model has changed all the same.
            Self::SetModel(responder, model) => responder.respond(Ok(*model)).await,
            Self::SetLevel(responder) => responder.respond(Ok(())).await,
            Self::CycleLevel(responder, level) => responder.respond(Ok(Some(CycledThinking { level }))).await,
            Self::CycleModel(responder, model, is_scoped) => {
                return Completion::Cycled(responder, model, is_scoped);
            }
        }
        Completion::Done
    }
}

async fn report_error(answer: Result<Value, ProcessError>, path: &str, event: &str, outbox: &Outbox) {
    if let Err(error) = answer {
        report(failure(path, event, error), outbox).await;
    }
}

/// What the answer to `user_bash` says about the command.
fn shell_completion(
    responder: Responder<BashResult>,
    params: BashParams,
    answer: Result<Value, ProcessError>,
    failed: Option<String>,
) -> Completion {
    let answer = match (answer, failed) {
        (Ok(answer), None) => answer,
        // The extension that failed may have had a reason to stop the command (pi 0.86).
        (_, failed) => {
            let error = failed.filter(|error| !error.is_empty());
            let error = error.unwrap_or_else(|| strings::UNSEEN_COMMAND.to_owned());
            return Completion::ShellRefused(responder, params, error);
        }
    };
    // An extension that runs commands elsewhere could not run this one, and it must not run here instead.
    if let Some(error) = answer.get("error").and_then(Value::as_str) {
        return Completion::ShellRan(responder, params, Err(error.to_owned()));
    }
    match shell_run(&answer) {
        Ok(Some(run)) => Completion::ShellRan(responder, params, Ok(run)),
        Ok(None) => Completion::RunShell(responder, params),
        Err(error) => Completion::ShellRefused(responder, params, error.to_owned()),
    }
}

/// The result of a shell command that an extension ran. `None` if it left the command to the session.
///
/// # Errors
/// When the result is not one. The extension may have meant to stop the command, so the session must not run it.
fn shell_run(answer: &Value) -> Result<Option<BashRun>, &'static str> {
    let result = match answer.get("result") {
        // The answer with which other events are stopped.
        None | Some(Value::Null) if answer.get("block") == Some(&json!(true)) => {
            return Err(strings::UNSEEN_COMMAND);
        }
        None | Some(Value::Null) => return Ok(None),
        Some(result) if result.is_object() => result,
        Some(_) => return Err(strings::UNSEEN_COMMAND),
    };
    let is = |name: &str| result.get(name) == Some(&json!(true));
    let text = |name: &str| result.get(name).and_then(Value::as_str).map(str::to_owned);
    let code = result.get("exitCode").and_then(Value::as_i64);
    Ok(Some(BashRun {
        output: text("output").unwrap_or_default(),
        // A number that no process can end with is no exit code.
        exit_code: code.and_then(|code| i32::try_from(code).ok()),
        cancelled: is("cancelled"),
        truncated: is("truncated"),
        full_output_path: text("fullOutputPath"),
        counts: Default::default(),
    }))
}

#[cfg(test)]
mod tests {
    use wire::Reply;

    use super::*;
    use crate::outbox::{ClientId, Origin, Outgoing, outbox};

    fn responder<R: Into<Reply>>(outbox: &Outbox) -> Responder<R> {
        let origin = Origin {
            client: ClientId::default(),
            id: None,
            command: "prompt",
        };
        Responder::new(origin, outbox)
    }

    fn shell() -> BashParams {
        serde_json::from_value(json!({"command": "make"})).unwrap()
    }

    #[test]
    fn shell_command_is_replaced_by_a_result_only() {
        for answer in [Value::Null, json!({"result": null})] {
            assert!(shell_run(&answer).unwrap().is_none(), "{answer}");
        }
        assert!(shell_run(&json!({"block": true})).is_err());
        let run = shell_run(&json!({"result": {"output": "x", "exitCode": 3, "cancelled": "true"}}));
        let run = run.unwrap().unwrap();
        assert_eq!(
            (run.output.as_str(), run.exit_code, run.cancelled),
            ("x", Some(3), false)
        );
        let huge = shell_run(&json!({"result": {"exitCode": i64::MAX}})).unwrap();
        let huge = huge.unwrap();
        assert_eq!(huge.exit_code, None, "no exit code of a process");
    }

    #[tokio::test]
    async fn shell_command_is_refused_after_failed_check() {
        let (outbox, _sent) = outbox(4);
        for (answer, failed, error) in [
            (
                Err(ProcessError::Gone("killed".to_owned())),
                None,
                strings::UNSEEN_COMMAND,
            ),
            (Ok(Value::Null), Some(""), strings::UNSEEN_COMMAND),
            (Ok(Value::Null), Some("not here"), "not here"),
            (Ok(json!({"result": "denied"})), None, strings::UNSEEN_COMMAND),
        ] {
            let failed = failed.map(str::to_owned);
            let request = ClientRequest::Shell(responder(&outbox), shell());
            let next = request.complete(answer, failed, &outbox).await;
            assert!(matches!(next, Completion::ShellRefused(_, _, why) if why == error));
        }
        let request = ClientRequest::Shell(responder(&outbox), shell());
        let next = request.complete(Ok(Value::Null), None, &outbox).await;
        assert!(matches!(next, Completion::RunShell(..)), "nothing was against it");
        let request = ClientRequest::Shell(responder(&outbox), shell());
        let next = request
            .complete(Ok(json!({"error": "no host"})), None, &outbox)
            .await;
        assert!(matches!(next, Completion::ShellRan(_, _, Err(error)) if error == "no host"));
    }

    #[tokio::test]
    async fn aborted_shell_commands_are_cancelled_in_extensions() {
        let (outbox, _sent) = outbox(4);
        let mut requests = ClientRequests::default();
        let (number, end) = (requests.next_number(), requests.shells_end());
        requests.wait(
            ClientRequest::Shell(responder(&outbox), shell()),
            std::future::pending(),
        );
        assert_eq!(requests.shell(number).unwrap().1.command, "make");
        requests.end_shells();
        assert!(end.is_cancelled() && requests.is_ended_shell(number));
        assert!(!requests.shells_end().is_cancelled(), "later ones go on");
    }

    #[tokio::test]
    async fn failed_slash_command_counts_as_handled() {
        let (outbox, mut sent) = outbox(4);
        let request = ClientRequest::Command(responder(&outbox), "deploy".to_owned(), CommandStage::Whole);
        let failed = Err(ProcessError::Failed("thrown".to_owned()));
        request.complete(failed, None, &outbox).await;
        let Ok(Outgoing::Event(event)) = sent.try_recv() else {
            panic!("the failure is reported first");
        };
        let event = serde_json::to_value(&*event).unwrap();
        assert_eq!(
            (&event["extensionPath"], &event["error"]),
            (&json!("command:deploy"), &json!("thrown"))
        );
        let Ok(Outgoing::Response(_, response)) = sent.try_recv() else {
            panic!("no response");
        };
        assert!(response.outcome.is_ok());
    }

    #[tokio::test]
    async fn begun_slash_command_is_given_up_without_error() {
        let (outbox, mut sent) = outbox(4);
        let mut requests = ClientRequests::default();
        let stage = CommandStage::Ended(false);
        let command = ClientRequest::Command(responder(&outbox), "deploy".to_owned(), stage);
        requests.wait(command, std::future::pending());
        requests.refuse_all().await;
        let Ok(Outgoing::Response(_, response)) = sent.try_recv() else {
            panic!("no response");
        };
        let Ok(Reply::Accepted(accepted)) = response.outcome else {
            panic!("a second response");
        };
        assert_eq!(accepted.stage, CommandStage::GivenUp(strings::ABORTED));
    }

    #[tokio::test]
    async fn run_waits_for_response_of_its_command_only() {
        let (outbox, _sent) = outbox(4);
        let mut requests = ClientRequests::default();
        requests.expect_response_first();
        assert!(!requests.is_response_first(), "no command began it");
        let command = ClientRequest::Command(responder(&outbox), "deploy".to_owned(), CommandStage::Whole);
        requests.wait(command, std::future::ready(Ok(Answer::default())));
        requests.expect_response_first();
        assert!(requests.is_response_first());
        let answered = loop {
            // The time of the run may end before the answer.
            if let Some(answered) = requests.next().await {
                break answered;
            }
        };
        assert!(requests.take(answered.number).is_some());
        assert!(!requests.is_response_first() && requests.is_empty());
    }
}
