//! Shell commands of the user as the session runs them: an extension may replace one, and the model gets it with the next prompt.

use serde_json::json;
use tools::BashRun;
use wire::command::BashParams;
use wire::state::BashResult;

use crate::limits;
use crate::outbox::Responder;
use crate::strings;

use super::driver::Driver;
use super::extensions::ClientRequest;
use super::user_shells::{RemoteShell, ShellReport};

/// Runs a shell command of the user, unless an extension replaces it.
pub(super) async fn bash(driver: &mut Driver, responder: Responder<BashResult>, params: BashParams) {
    let (core, extensions) = (&mut driver.core, &mut driver.extensions);
    // Each may hold output and a log, as commands that run here do.
    if extensions.client_requests.open_shells() >= limits::BASH_RUNNING {
        let error = strings::too_many_commands(limits::BASH_RUNNING);
        return responder.refuse(error).await;
    }
    if !extensions.has_listener("user_bash") {
        return run(driver, responder, params).await;
    }
    let event = json!({
        "type": "user_bash",
        "command": params.command,
        "excludeFromContext": params.exclude_from_context == Some(true),
        "cwd": core.workspace.cwd.to_string_lossy(),
        "outputId": extensions.client_requests.next_number(),
    });
    let end = extensions.client_requests.shells_end();
    let answer = extensions.hook_answer_until(core, "user_bash", &event, end);
    let request = ClientRequest::Shell(responder, params);
    extensions.client_requests.wait(request, answer);
}

/// Runs a shell command that no extension replaces.
pub(super) async fn run(driver: &mut Driver, responder: Responder<BashResult>, params: BashParams) {
    let core = &driver.core;
    let place = (core.agent.toolbox.clone(), core.workspace.cwd.clone());
    driver.shells.run(responder, params, place, &core.outbox).await;
}

/// Takes output of a command that an extension runs. The first output announces the command to clients.
///
/// # Errors
/// A message for the extension if the command has ended.
pub(super) async fn on_output(driver: &mut Driver, number: u64, text: &str) -> Result<(), String> {
    let Driver {
        core,
        shells,
        extensions,
        ..
    } = driver;
    if !shells.is_remote(number) {
        let command = extensions.client_requests.shell(number);
        let command = command.ok_or(strings::COMMAND_ENDED)?;
        let output = core.agent.toolbox.user_output();
        shells.begin_remote(number, command, output, &core.outbox).await;
    }
    shells.push(number, text, &core.outbox).await;
    Ok(())
}

/// Reports a command that an extension ran. `remote` has its output if that came in pieces.
pub(super) async fn end(
    driver: &mut Driver,
    remote: Option<RemoteShell>,
    responder: Responder<BashResult>,
    params: BashParams,
    outcome: Result<BashRun, String>,
) {
    let outbox = &driver.core.outbox;
    let (shell, outcome) = match remote {
        Some(remote) => remote.finish(outcome, outbox).await,
        None => {
            let shell = driver.shells.begin(responder.origin(), &params, outbox).await;
            (shell, outcome)
        }
    };
    let done = ShellReport::Done(Box::new(responder), params, shell, outcome);
    on_report(driver, done).await;
}

/// Gives up the commands that extensions run or look at.
pub(super) async fn give_up(driver: &mut Driver) {
    let outbox = &driver.core.outbox;
    driver.shells.give_up_remote(strings::ABORTED, outbox).await;
    driver.extensions.client_requests.refuse_shells().await;
}

/// Stores the report of a command. During a run it waits, because the messages of the run belong together.
pub(super) async fn on_report(driver: &mut Driver, report: ShellReport) {
    let core = &mut driver.core;
    // During a run the model gets the command with the next prompt: a tool call and its result must stay next to each other.
    let is_idle = core.machine.is_idle();
    driver
        .shells
        .accept(report, is_idle, &mut core.conversation, &core.outbox)
        .await;
    if is_idle {
        core.add_shell_messages();
    }
}
