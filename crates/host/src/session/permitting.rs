//! Whether a tool call may run: asked of the rules when it is prepared, and of the user where the rules say so. What the rules
//! say is in `permissions`, how the user is asked in `dialogs`.

use std::collections::VecDeque;
use std::path::Path;
use std::pin::Pin;

use pinion_core::{Input, Prepared, ToolInput};
use tokio_util::sync::CancellationToken;
use wire::command::PermissionModeParams;
use wire::reply::PermissionModeReply;
use wire::state::PermissionMode;
use wire::{Reply, ToolResult};

use crate::agent::Agent;
use crate::permissions::{Call, Policy, Verdict, question};
use crate::resources::Diagnostic;
use crate::strings;

use super::Session;
use super::dialogs::{Answer, Dialog, NoAnswer};

/// What the user can choose.
const ONCE: &str = "Allow once";
const ALWAYS: &str = "Allow for this session";
const NEVER: &str = "Deny";

/// What holds, and the question that is out.
pub(super) struct Permitting {
    policy: Policy,
    /// What the client chose, if it did; it outlives a change of the session.
    chosen: Option<PermissionMode>,
    pub(super) asking: Option<Asking>,
}

/// A call that waits for the user's answer. To drop it withdraws the question.
pub(super) struct Asking {
    slot: usize,
    call: Call,
    answer: Pin<Box<dyn Future<Output = Answer> + Send>>,
}

impl Asking {
    /// Waits for the answer. Cancel-safe.
    pub(super) async fn answer(&mut self) -> Answer {
        (&mut self.answer).await
    }
}

impl Permitting {
    /// What the agent's settings say of a session that works in `cwd`.
    pub(super) fn new(agent: &Agent, cwd: &Path, chosen: Option<PermissionMode>) -> (Self, Vec<Diagnostic>) {
        let options = &agent.options;
        let (policy, notes) = Policy::new(
            &agent.settings.permissions,
            chosen.or(options.permission_mode),
            cwd,
            options.resources.home.as_deref(),
        );
        let permitting = Self {
            policy,
            chosen,
            asking: None,
        };
        (permitting, notes)
    }

    /// The same for the session that takes this one's place. What was allowed for this one is forgotten.
    pub(super) fn anew(&self, agent: &Agent, cwd: &Path) -> Self {
        Self::new(agent, cwd, self.chosen).0
    }

    /// Nobody is asked about such a call any more.
    pub(super) fn forget(&mut self, which: impl Fn(usize) -> bool) {
        self.asking = self.asking.take().filter(|asking| !which(asking.slot));
    }

    /// The mode that the client chose, if it did.
    pub(super) fn chosen(&self) -> Option<PermissionMode> {
        self.chosen
    }

    /// The mode that holds.
    pub(super) fn mode(&self) -> PermissionMode {
        self.policy.mode()
    }
}

impl Session {
    /// What becomes of a call that has been prepared; none when the user is asked first.
    pub(super) fn permit(&mut self, slot: usize, prepared: Prepared) -> Option<Prepared> {
        if self.permitting.mode().is_off() || matches!(prepared, Prepared::Refused(_)) {
            return Some(prepared);
        }
        let Some(call) = self.call_at(slot) else {
            return Some(prepared);
        };
        match self.permitting.policy.judge(&call) {
            Verdict::Run => Some(prepared),
            Verdict::Refuse(why) => Some(Prepared::Refused(ToolResult::error(why))),
            Verdict::Ask => {
                self.ask_permission(slot, call);
                None
            }
        }
    }

    /// A prepared call as rules look at it.
    fn call_at(&self, slot: usize) -> Option<Call> {
        if let Some(call) = self.hosted.call_at(slot) {
            return Some(call);
        }
        if let Some((name, _)) = self.mcp.tools().at(slot) {
            return Some(Call::other(name));
        }
        // A tool of an extension that takes the place of one of ours does the same kind of thing.
        let theirs = self.extensions.tools().at(slot);
        let ours = || {
            self.calls
                .prepared(slot)
                .map(|request| (request.name.as_str(), &request.args))
        };
        let (name, args) = theirs.or_else(ours)?;
        if name == "bash" {
            let command = args.get("command").and_then(serde_json::Value::as_str);
            return Some(Call::command(name, command.unwrap_or_default()));
        }
        let target = self.agent.toolbox.target(name, args, &self.cwd);
        Some(target.map_or_else(|| Call::other(name), |path| Call::file(name, path)))
    }

    fn ask_permission(&mut self, slot: usize, call: Call) {
        let wait = self.agent.settings.dialog_wait();
        let dialog = Dialog::Select {
            title: question(&call),
            options: [ONCE, ALWAYS, NEVER].map(str::to_owned).to_vec(),
            timeout: Some(wait.map_or(0, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))),
        };
        let ui = self.dialogs.ui();
        let answer = Box::pin(async move { ui.ask(dialog, &CancellationToken::new()).await });
        self.permitting.asking = Some(Asking { slot, call, answer });
    }

    /// The user has answered, or will not any more.
    pub(super) async fn on_permission(&mut self, answer: Answer) {
        let Some(Asking { slot, call, .. }) = self.permitting.asking.take() else {
            return;
        };
        let refusal = match &answer {
            Answer::Value(chosen) if chosen == ONCE => None,
            Answer::Value(chosen) if chosen == ALWAYS => {
                self.permitting.policy.grant(&call);
                None
            }
            Answer::Value(_) | Answer::Confirmed(_) | Answer::None(NoAnswer::Cancelled) => {
                Some(strings::USER_DENIED.to_owned())
            }
            Answer::None(why) => Some(strings::not_permitted(why)),
        };
        let prepared = refusal.map_or(Prepared::Run, |why| Prepared::Refused(ToolResult::error(why)));
        self.drive(Input::Tool(slot, ToolInput::Prepared(prepared))).await;
    }

    /// The call does not run in any case: its question is withdrawn.
    pub(super) fn withdraw_permission(&mut self, inputs: &mut VecDeque<Input>) {
        if let Some(asking) = self.permitting.asking.take() {
            let refused = Prepared::Refused(ToolResult::error(strings::ABORTED));
            inputs.push_back(Input::Tool(asking.slot, ToolInput::Prepared(refused)));
        }
    }

    /// The client chooses a mode.
    pub(super) fn choose_permission_mode(&mut self, mode: PermissionMode) {
        self.permitting.chosen = Some(mode);
        self.permitting.policy.choose(mode);
    }

    pub(super) fn set_permission_mode(&mut self, params: PermissionModeParams) -> Reply {
        self.choose_permission_mode(params.mode);
        Reply::PermissionMode(PermissionModeReply {
            permission_mode: self.permitting.mode(),
        })
    }
}
