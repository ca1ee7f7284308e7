//! Whether a tool call may run: asked of the rules when it is prepared, and of the user where the rules say so. What the rules
//! say is in `permissions`, how the user is asked in `dialogs`.

use std::collections::VecDeque;
use std::path::Path;
use std::pin::Pin;
use std::time::{Duration, Instant};

use pinion_core::{Input, Prepared, ToolInput};
use tokio_util::sync::CancellationToken;
use wire::ToolResult;
use wire::command::PermissionModeParams;
use wire::reply::PermissionModeReply;
use wire::state::PermissionMode;

use crate::agent::Agent;
use crate::permissions::{Call, Policy, Proposal, Question, Source, Verdict};
use crate::resources::Diagnostic;
use crate::{limits, strings};

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
    since: Instant,
    /// How long the question may take, if that is limited.
    wait: Option<Duration>,
    answer: Pin<Box<dyn Future<Output = Answer> + Send>>,
}

impl Asking {
    /// Waits for the answer. Cancel-safe.
    pub(super) async fn answer(&mut self) -> Answer {
        (&mut self.answer).await
    }

    /// How long the user had. A client may have a shorter time limit of its own.
    fn waited(&self) -> Duration {
        let elapsed = self.since.elapsed();
        self.wait.map_or(elapsed, |wait| wait.min(elapsed))
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
        let Some(proposal) = self.proposal_at(slot) else {
            return Some(prepared);
        };
        let call = self.call_of(slot, &proposal);
        match self.permitting.policy.judge(&call) {
            Verdict::Run => Some(prepared),
            Verdict::Refuse(why) => Some(Prepared::Refused(ToolResult::error(why))),
            Verdict::Ask => {
                let question = proposal.question(call.shown(), call.real_file());
                self.ask_permission(slot, call, question);
                None
            }
        }
    }

    /// A prepared call with the definition of its tool.
    fn proposal_at(&self, slot: usize) -> Option<Proposal<'_>> {
        let foreign = self.hosted.proposal_at(slot);
        let foreign = foreign.or_else(|| self.mcp.tools().proposal_at(slot));
        // A tool of an extension may take the place of one of ours.
        let foreign = foreign.or_else(|| self.extensions.tools().proposal_at(slot));
        foreign.or_else(|| {
            let request = self.calls.prepared(slot)?;
            Some(Proposal {
                tool: &request.name,
                source: Source::BuiltIn,
                description: "",
                schema: None,
                args: &request.args,
            })
        })
    }

    /// A proposed call as rules look at it.
    fn call_of(&self, slot: usize, proposal: &Proposal<'_>) -> Call {
        let Proposal { tool, args, .. } = *proposal;
        let call = match proposal.source {
            Source::ClientUri => Call::uri(tool, self.hosted.uri_at(slot).unwrap_or_default()),
            // One in the place of ours does the same kind of thing.
            Source::BuiltIn | Source::Extension(_) if tool == "bash" => {
                let command = args.get("command").and_then(serde_json::Value::as_str);
                Call::command(tool, command.unwrap_or_default())
            }
            Source::BuiltIn | Source::Extension(_) => {
                let target = self.agent.toolbox.target(tool, args, &self.cwd);
                target.map_or_else(|| Call::other(tool), |path| Call::file(tool, path))
            }
            Source::Client | Source::McpServer { .. } | Source::McpResources(_) => Call::other(tool),
        };
        call.bound_to(proposal.identity())
    }

    fn ask_permission(&mut self, slot: usize, call: Call, question: Question) {
        let wait = self.agent.settings.dialog_wait();
        let timeout = wait.map_or(0, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let (ui, toolbox, cwd) = (self.dialogs.ui(), self.agent.toolbox.clone(), self.cwd.clone());
        let answer = Box::pin(async move {
            let diff = match question.edit_args() {
                Some(args) => {
                    let diff = toolbox.preview_edit(args.clone(), &cwd);
                    let diff = tokio::time::timeout(limits::ASKED_WAIT, diff).await;
                    Some(diff.unwrap_or_else(|_| Err(strings::SLOW_FILE.to_owned())))
                }
                None => None,
            };
            // It may be long, and the disk is looked at.
            let title = tokio::task::spawn_blocking(move || question.title(diff)).await;
            let Ok(title) = title else {
                return Answer::None(NoAnswer::Gone);
            };
            let dialog = Dialog::Permission {
                title,
                allow: [ONCE, ALWAYS].map(str::to_owned).to_vec(),
                deny: NEVER.to_owned(),
                timeout: Some(timeout),
            };
            ui.ask(dialog, &CancellationToken::new()).await
        });
        self.permitting.asking = Some(Asking {
            slot,
            call,
            since: Instant::now(),
            wait,
            answer,
        });
    }

    /// The user has answered, or will not any more.
    pub(super) async fn on_permission(&mut self, answer: Answer) {
        let Some(asking) = self.permitting.asking.take() else {
            return;
        };
        let waited = asking.waited();
        let Asking { slot, call, .. } = asking;
        let refusal = match &answer {
            Answer::Value(chosen) if chosen == ONCE => None,
            Answer::Value(chosen) if chosen == ALWAYS => {
                self.permitting.policy.grant(&call);
                None
            }
            Answer::Denied(reason) => Some(strings::user_denied(reason)),
            Answer::None(NoAnswer::TimedOut) => Some(strings::denied_automatically(waited)),
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

    pub(super) fn set_permission_mode(&mut self, params: PermissionModeParams) -> PermissionModeReply {
        self.choose_permission_mode(params.mode);
        PermissionModeReply {
            permission_mode: self.permitting.mode(),
        }
    }
}
