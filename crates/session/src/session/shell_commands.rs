//! Shell commands of the user as the session runs them: an extension may replace one, and the model gets it with the next prompt.

use serde_json::json;
use tools::BashRun;
use wire::command::BashParams;
use wire::state::BashResult;

use crate::outbox::Responder;

use super::driver::Driver;
use super::extensions::ClientRequest;
use super::user_shells::ShellReport;

/// Runs a shell command of the user, unless an extension replaces it.
pub(super) async fn bash(driver: &mut Driver, responder: Responder<BashResult>, params: BashParams) {
    let (core, extensions) = (&mut driver.core, &mut driver.extensions);
    if !extensions.has_listener("user_bash") {
        return run(driver, responder, params).await;
    }
    let event = json!({
        "type": "user_bash",
        "command": params.command,
        "excludeFromContext": params.exclude_from_context == Some(true),
        "cwd": core.workspace.cwd.to_string_lossy(),
    });
    let answer = extensions.hook_answer(core, "user_bash", &event);
    let request = ClientRequest::Shell(responder, params);
    extensions.client_requests.wait(request, answer);
}

/// Runs a shell command that no extension replaces.
pub(super) async fn run(driver: &mut Driver, responder: Responder<BashResult>, params: BashParams) {
    let core = &driver.core;
    let place = (core.agent.toolbox.clone(), core.workspace.cwd.clone());
    driver.shells.run(responder, params, place, &core.outbox).await;
}

/// Reports a command that an extension ran, from its beginning to its outcome. Clients are shown what it `printed`.
pub(super) async fn report_all(
    driver: &mut Driver,
    responder: Responder<BashResult>,
    params: BashParams,
    printed: String,
    outcome: Result<BashRun, String>,
) {
    let outbox = &driver.core.outbox;
    let shell = driver.shells.begin(responder.origin(), &params, outbox).await;
    if !printed.is_empty() {
        on_report(driver, ShellReport::Output(shell.clone(), printed)).await;
    }
    let done = ShellReport::Done(Box::new(responder), params, shell, outcome);
    on_report(driver, done).await;
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
