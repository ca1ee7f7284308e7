//! What the session does for its extensions: it carries out the actions of their component while they are loaded, and leaves them
//! at a session change.

use std::collections::VecDeque;
use std::sync::Arc;

use config::extensions::find;
use config::hooks;
use config::trust::DecidedBy;
use extensions::line::Registered;
use extensions::{Answer, ProcessError};
use serde_json::{Value, json};
use wire::command::{CompleteParams, ShortcutParams};
use wire::reply::Completions;
use wire::ui::NotifyType;

use crate::extensions::era;
use crate::hooks::Hooks;
use crate::outbox::Responder;

use super::dialogs::Show;
use super::driver::Driver;
use super::extension_models;
use super::extensions::{
    Answered, Extensions, LoadAction, LoadAnswer, LoadQuestion, Opening, Resources, TrustDecision, cancels,
    failure, members, sync_hooks, use_registrations,
};

/// Reports failures in an answer and the reason of a refusal. Returns the value, and the message of the first failure.
pub(super) async fn take_answer(
    driver: &mut Driver,
    answer: Result<Answer, ProcessError>,
) -> (Result<Value, ProcessError>, Option<String>) {
    match answer {
        Ok(answer) => {
            let first = answer.errors.first().map(|failure| failure.error.clone());
            for failure in answer.errors {
                driver.extension_failed(failure).await;
            }
            tell_reason(driver, &answer.value).await;
            (Ok(answer.value), first)
        }
        Err(error) => (Err(error), None),
    }
}

/// Why something was refused is said to the person, where the answer to the client cannot hold it.
pub(super) async fn tell_reason(driver: &mut Driver, answer: &Value) {
    let refuses = cancels(answer) || answer.get("action") == Some(&json!("handled"));
    let reason = answer.get("reason").and_then(Value::as_str);
    if let Some(reason) = reason.filter(|reason| refuses && !reason.is_empty()) {
        let show = Show::Notify {
            message: reason.to_owned(),
            kind: Some(NotifyType::Warning),
        };
        driver.dialogs.show_now(show, &driver.core.outbox).await;
    }
}

/// Asks an extension for the possible arguments of a slash command.
pub(super) async fn complete_arguments(
    driver: &mut Driver,
    responder: Responder<Completions>,
    params: CompleteParams,
) {
    // The call does not send the state itself, and the extension may read it.
    driver.extensions.sync_state(&mut driver.core);
    let Extensions {
        client_requests,
        links,
        ..
    } = &mut driver.extensions;
    if let Err((responder, error)) = client_requests.complete(links, responder, params) {
        responder.refuse(error).await;
    }
}

/// Has an extension run a keyboard shortcut.
pub(super) async fn run_shortcut(driver: &mut Driver, responder: Responder<()>, params: ShortcutParams) {
    driver.extensions.sync_state(&mut driver.core);
    let Extensions {
        client_requests,
        links,
        ..
    } = &mut driver.extensions;
    if let Err((responder, error)) = client_requests.run_shortcut(links, responder, params) {
        responder.refuse(error).await;
    }
}

/// Loads the extensions, if there are any. Commands that depend on them wait until the deadline.
pub(super) async fn begin(driver: &mut Driver) {
    driver.extensions.begin_hooks(&mut driver.core);
    // Executables need no loading, so the machine waits for them also while extensions are being loaded.
    sync_hooks(&driver.extensions, &mut driver.core);
    let agent = &driver.core.agent;
    // Only where nothing has decided yet, and only if the project has something that trust would admit.
    let asks_trust = driver.extensions.may_decide_on_trust()
        && agent.trust.is_open(&agent.cwd)
        && agent.project().needs_trust();
    let actions = driver
        .extensions
        .loading
        .begin(&mut driver.extensions.links, asks_trust);
    load(driver, actions).await;
}

pub(super) async fn on_load_answer(driver: &mut Driver, answered: Answered<LoadAnswer>) {
    // A question that was given up meanwhile is not open any more.
    let Some(question) = driver.extensions.loading.take(answered.number) else {
        return;
    };
    let answer = match answered.answer {
        LoadAnswer::Process(process) => {
            if let LoadQuestion::Process(place) = question {
                on_process(driver, place, process).await;
            }
            return;
        }
        LoadAnswer::Answer(answer) => take_answer(driver, answer).await.0,
    };
    let actions = match question {
        // A process that was started was dealt with above; the task of this one panicked.
        LoadQuestion::Process(place) => {
            let reason = answer.err().map(|error| error.to_string());
            driver.extensions.loading.without(
                &mut driver.extensions.links,
                place,
                &reason.unwrap_or_default(),
            )
        }
        // Nothing follows from a farewell.
        LoadQuestion::Shutdown => Vec::new(),
        LoadQuestion::Open(place) => {
            driver
                .extensions
                .loading
                .on_opened(&mut driver.extensions.links, place, answer)
        }
        LoadQuestion::LoadMore(place) => {
            driver
                .extensions
                .loading
                .on_loaded_more(&mut driver.extensions.links, place, answer)
        }
        // Only the end of `session_start` counts: its handlers give no answer, and their failures were reported above.
        LoadQuestion::Start(place) => driver
            .extensions
            .loading
            .on_started(&mut driver.extensions.links, place)
            .into_iter()
            .collect(),
        LoadQuestion::Trust => {
            let decision = TrustDecision::parse(&answer.unwrap_or_default());
            decide_on_trust(driver, decision).await;
            driver
                .extensions
                .loading
                .load_withheld(&mut driver.extensions.links)
        }
        LoadQuestion::Resources => {
            use_resources(driver, &answer.unwrap_or_default());
            driver.extensions.loading.finish(&driver.extensions.links);
            Vec::new()
        }
    };
    load(driver, actions).await;
}

/// The deadline of loading has passed.
pub(super) async fn on_deadline(driver: &mut Driver) {
    let actions = driver.extensions.loading.on_deadline(&driver.extensions.links);
    load(driver, actions).await;
}

/// An extension has changed its registrations.
pub(super) async fn on_changed(driver: &mut Driver, place: usize, registered: Registered) {
    let actions = driver.extensions.change_registered(place, registered);
    load(driver, actions).await;
    // Models of extensions that are being loaded are taken when they have loaded.
    if driver.extensions.links.has_begun_at(place) && extension_models::take_providers(driver) {
        extension_models::publish_models(driver).await;
    }
}

/// A process has ended.
pub(super) async fn on_gone(driver: &mut Driver, place: usize, reason: &str) {
    let actions = driver.extensions.lose(place, reason);
    load(driver, actions).await;
}

async fn on_process(
    driver: &mut Driver,
    place: usize,
    process: Result<extensions::ExtensionProcess, ProcessError>,
) {
    match process {
        Ok(process) => {
            // The other processes know all that the whole state says, too.
            driver.extensions.sync_state(&mut driver.core);
            let opening = Opening {
                state: driver.extensions.whole_state(&mut driver.core),
                flags: driver.core.agent.options.extensions.flags(),
                era: era(&driver.core.agent),
            };
            driver
                .extensions
                .loading
                .open(&mut driver.extensions.links, place, process, &opening);
        }
        Err(error) => {
            let actions =
                driver
                    .extensions
                    .loading
                    .without(&mut driver.extensions.links, place, &error.to_string());
            load(driver, actions).await;
        }
    }
}

/// Carries out actions of loading, and the actions that follow from them.
pub(super) async fn load(driver: &mut Driver, actions: Vec<LoadAction>) {
    let mut actions = VecDeque::from(actions);
    while let Some(action) = actions.pop_front() {
        match action {
            LoadAction::Report(failure) => {
                let Extensions { guards, links, .. } = &mut driver.extensions;
                if guards.misses(&failure, links) {
                    // Before the client hears of the failure: from now on no call runs that the guard might have stopped.
                    driver.core.lock_down(driver.extensions.guards.faults());
                    let mode = driver.core.permissions.mode();
                    driver.extensions.subsessions.set_mode(mode);
                }
                driver.extension_failed(failure).await;
            }
            LoadAction::StartProcess(place) => start_process(driver, place),
            LoadAction::UseRegistrations => {
                use_registrations(&mut driver.extensions, &mut driver.core);
                use_servers(driver).await;
                let Extensions { guards, links, .. } = &mut driver.extensions;
                // The lock-down ends when the last missing guard is there.
                if guards.take_loaded(links) {
                    driver.core.reload(driver.extensions.guards.faults());
                }
            }
            LoadAction::LoadMore(place) => {
                driver.extensions.sync_state(&mut driver.core);
                driver
                    .extensions
                    .loading
                    .load_more(&mut driver.extensions.links, place);
            }
            LoadAction::AskTrust => ask_trust(driver),
            LoadAction::Begin(places) => {
                // Models first: the file that lists them is part of the state that `session_start` handlers get.
                extension_models::bring_models(driver, &places).await;
                driver.extensions.sync_state(&mut driver.core);
                actions.extend(
                    driver
                        .extensions
                        .loading
                        .begin_at(&mut driver.extensions.links, &places),
                );
            }
            LoadAction::UseProviders => {
                extension_models::take_providers(driver);
            }
            LoadAction::AskResources => ask_resources(driver),
        }
    }
}

fn start_process(driver: &mut Driver, place: usize) {
    let Some(key) = driver.extensions.links.key(place).cloned() else {
        return;
    };
    let shared = Arc::clone(&driver.core.agent.extensions);
    let registry = Arc::clone(&driver.core.agent.registry);
    driver.extensions.providers.use_shared_file(&registry, &shared);
    let path = driver.extensions.providers.file().clone();
    driver.extensions.loading.wait_for_process(place, async move {
        // Before the process is there, which may read the file at once.
        shared.write_models(registry, path).await;
        shared.process(&key).await
    });
}

fn ask_trust(driver: &mut Driver) {
    let question = LoadQuestion::Trust;
    if driver.extensions.has_listener("project_trust") {
        let event = json!({"type": "project_trust", "cwd": driver.core.agent.cwd.to_string_lossy()});
        let answer = driver
            .extensions
            .hook_answer(&mut driver.core, "project_trust", &event);
        driver.extensions.loading.ask(question, answer);
    } else {
        // Also without listeners the answer comes as a wake-up, so that loading goes on in one place.
        let undecided = std::future::ready(Ok(Answer::default()));
        driver.extensions.loading.ask(question, undecided);
    }
}

/// Extensions have decided on trust, or left it open.
async fn decide_on_trust(driver: &mut Driver, decision: TrustDecision) {
    let TrustDecision { trusted, remember } = decision;
    if trusted.is_none() {
        return;
    }
    let trust = &driver.core.agent.trust;
    // A decision that cannot be stored still counts in this process.
    if remember && let Err(problem) = trust.file().set(&driver.core.agent.cwd, trusted) {
        let failure = failure("<runtime>", "project_trust", problem.to_string());
        driver.extension_failed(failure).await;
    }
    driver
        .core
        .agent
        .trust
        .set(&driver.core.agent.cwd, trusted, DecidedBy::Extension);
    // The settings of the project count from now on; they may name further extensions.
    driver.core.reload(driver.extensions.guards.faults());
    let found = find(&driver.core.agent.places(&driver.core.workspace.cwd));
    driver.extensions.loading.set_admitted(found);
}

/// Asks extensions, for which the session has begun, for skills and prompt templates.
fn ask_resources(driver: &mut Driver) {
    let name = "resources_discover";
    if !driver.extensions.has_listener(name) {
        return driver.extensions.loading.finish(&driver.extensions.links);
    }
    driver.extensions.loading.give_up_resources();
    let start = driver.extensions.loading.start();
    // The extensions of a process that was started again see the same as after a reload.
    let is_reload = start.get("reason").and_then(Value::as_str) == Some("reload")
        || driver.extensions.links.has_restarted();
    let event = json!({
        "type": name,
        "cwd": driver.core.workspace.cwd.to_string_lossy(),
        "reason": if is_reload { "reload" } else { "startup" },
    });
    let answer = driver.extensions.hook_answer(&mut driver.core, name, &event);
    driver.extensions.loading.ask(LoadQuestion::Resources, answer);
}

fn use_resources(driver: &mut Driver, answer: &Value) {
    let home = driver.core.agent.options.resources.home.as_deref();
    let found = Resources::parse(answer, &driver.core.workspace.cwd, home);
    if !found.is_empty() {
        driver
            .core
            .workspace
            .set_resources(driver.core.agent.load_more_resources(
                &driver.core.workspace.cwd,
                found.skills,
                found.prompts,
            ));
        driver.core.workspace.forget_system_prompt();
        // The state has the list of commands, which includes skills and templates.
        driver.extensions.state.mark_stale();
    }
}

/// Has programs started anew for the next session: their files may have changed.
pub(super) fn renew_processes(driver: &Driver) {
    for key in driver.extensions.links.keys() {
        driver.core.agent.extensions.renew(key);
    }
}

/// The session goes on in another file; what extensions hold belongs to the old one.
pub(super) fn leave(driver: &mut Driver, reason: &str) {
    // Events of the session that is left are for its own extensions.
    driver.extensions.pass_on_events(&mut driver.core);
    driver.extensions.leave(reason);
    use_registrations(&mut driver.extensions, &mut driver.core);
}

/// Loads the extensions for the session that took the place of the old one.
pub(super) async fn reopen(driver: &mut Driver, reason: &str, previous: Option<String>) {
    let mut start = members(json!({"type": "session_start", "reason": reason}));
    if let Some(previous) = previous {
        start.insert("previousSessionFile".to_owned(), previous.into());
    }
    let places = driver.core.agent.places(&driver.core.workspace.cwd);
    let (found, hooks) = (find(&places), Hooks::new(hooks::find(&places)));
    driver.extensions.replace(found, hooks, start.into(), reason);
    // The servers of the session that was left end also if no extension is loaded now.
    use_servers(driver).await;
    begin(driver).await;
}

/// Gives the session the MCP servers that extensions register now.
async fn use_servers(driver: &mut Driver) {
    let registered = driver.extensions.links.registered().iter();
    let servers = registered.flat_map(|extension| extension.mcp_servers.iter().cloned());
    let servers = servers.collect();
    let (mcp, host) = driver.core.mcp(driver.dialogs.ui());
    mcp.register(servers, host).await;
}
