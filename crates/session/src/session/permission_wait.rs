//! Whether a tool call may run: asked of the rules when it is prepared, and of the user where the rules say so. What the rules
//! say is in `permissions`, how the user is asked in `dialogs`.

use std::path::Path;
use std::pin::Pin;
use std::time::{Duration, Instant};

use agent::{Input, Prepared, ToolInput};
use config::Diagnostic;
use permissions::{Bases, Call, Existing, Policy, Question, Verdict};
use process::real_path;
use tokio_util::sync::CancellationToken;
use tools::Toolbox;
use wire::ToolResult;
use wire::state::PermissionMode;

use crate::factory::Agent;
use crate::{limits, strings};

use super::dialogs::{Answer, Dialog, NoAnswer, Ui};
use super::tool_calls::{Place, ToolCalls};

/// What the user can choose.
const ONCE: &str = "Allow once";
const ALWAYS: &str = "Allow for this session";
const NEVER: &str = "Deny";

/// What holds, and the question that is out.
pub(super) struct PermissionWait {
    policy: Policy,
    /// What the client chose, if it did; it outlives a change of the session.
    chosen: Option<PermissionMode>,
    pub(super) asking: Option<Asking>,
}

/// How the user is asked.
pub(super) struct AskContext<'a> {
    pub(super) ui: Ui,
    pub(super) toolbox: &'a Toolbox,
    pub(super) cwd: &'a Path,
    /// How long the answer may take, if that is limited.
    pub(super) wait: Option<Duration>,
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

impl PermissionWait {
    /// What the agent's settings say of a session that works in `cwd`.
    pub(super) fn new(agent: &Agent, cwd: &Path, chosen: Option<PermissionMode>) -> (Self, Vec<Diagnostic>) {
        let options = &agent.options;
        let bases = Bases {
            cwd,
            home: options.resources.home.as_deref(),
            real_path,
        };
        let chosen_mode = chosen.or(options.permission_mode);
        let (policy, notes) = Policy::new(&agent.settings.permissions, chosen_mode, bases);
        // Rules of several files are in one policy.
        let file = Path::new("settings");
        let notes = notes
            .into_iter()
            .map(|note| Diagnostic::new(file, note))
            .collect();
        let permitting = Self {
            policy,
            chosen,
            asking: None,
        };
        (permitting, notes)
    }

    /// The same for the session that takes this one's place. Consents for this one are dropped.
    pub(super) fn renewed(&self, agent: &Agent, cwd: &Path) -> Self {
        Self::new(agent, cwd, self.chosen).0
    }

    /// The rules of this session were read again. Consents were given under the rules as they were, and are dropped. The question
    /// that is out stays: its call waits for the answer.
    pub(super) fn reread(&mut self, agent: &Agent, cwd: &Path) {
        let asking = self.asking.take();
        *self = Self {
            asking,
            ..self.renewed(agent, cwd)
        };
    }

    /// No further question about such a call.
    pub(super) fn forget(&mut self, which: impl Fn(usize) -> bool) {
        self.asking = self.asking.take().filter(|asking| !which(asking.slot));
    }

    /// The question that is out is not asked any more.
    pub(super) fn withdraw(&mut self) {
        self.asking = None;
    }

    /// Forgets the mode that the client chose if that is looser than the mode of a locked-down agent. It counts with the next
    /// settings.
    pub(super) fn forget_loose_choice(&mut self) {
        self.chosen = self.chosen.filter(|mode| *mode >= PermissionMode::Ask);
    }

    /// The mode that the client chose, if it did.
    pub(super) fn chosen(&self) -> Option<PermissionMode> {
        self.chosen
    }

    /// What the policy forbids, as sentences for the system prompt.
    pub(super) fn limits(&self) -> Vec<String> {
        self.policy.limits()
    }

    /// The mode that holds.
    pub(super) fn mode(&self) -> PermissionMode {
        self.policy.mode()
    }
}

/// The type of the file at a path. Reads the disk.
fn existing(path: &Path) -> Existing {
    match std::fs::metadata(path) {
        Ok(there) if there.is_file() => Existing::File(there.len()),
        Ok(_) => Existing::Other,
        Err(_) => Existing::Nothing,
    }
}

impl PermissionWait {
    /// Decides whether a call that hooks let through may run. `None` if the user is asked first.
    pub(super) fn decide(
        &mut self,
        slot: usize,
        calls: &mut ToolCalls,
        asker: &AskContext<'_>,
    ) -> Option<Prepared> {
        // First, so that a session without permissions does not analyse the commands of its calls.
        if self.mode().is_off() {
            return Some(Prepared::Run);
        }
        let place = Place {
            toolbox: asker.toolbox,
            cwd: asker.cwd,
        };
        let Some(subject) = calls.subject(slot, place) else {
            // A call that is not prepared cannot run either; the start finds nothing.
            return Some(Prepared::Run);
        };
        let call = subject.call();
        match self.policy.judge(&call) {
            Verdict::Run => Some(Prepared::Run),
            Verdict::Refuse(why) => Some(Prepared::Refused(ToolResult::error(why))),
            Verdict::Ask => {
                let question = subject.proposal().question(call.shown(), call.real_file());
                let call_id = calls.call_id(slot).unwrap_or_default().to_owned();
                self.ask(slot, (call_id, call), question, asker);
                None
            }
        }
    }

    fn ask(
        &mut self,
        slot: usize,
        (call_id, call): (String, Call),
        question: Question,
        asker: &AskContext<'_>,
    ) {
        let wait = asker.wait;
        // Dialogs take 0 for no limit. A dialog that names no time would get the limit of the settings.
        let timeout = wait.map_or(0, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let (ui, toolbox, cwd) = (asker.ui.clone(), asker.toolbox.clone(), asker.cwd.to_path_buf());
        let answer = Box::pin(async move {
            let diff = match question.edit_args() {
                Some(args) => {
                    let diff = toolbox.preview_edit(args.clone(), &cwd);
                    // A slow disk must not keep the question from the user; it is asked without the difference then.
                    let diff = tokio::time::timeout(limits::ASKED_WAIT, diff).await;
                    Some(diff.unwrap_or_else(|_| Err(strings::SLOW_FILE.to_owned())))
                }
                None => None,
            };
            // It may be long, and the disk is looked at.
            let title = tokio::task::spawn_blocking(move || {
                let existing = question.written_file().map(existing);
                question.title(diff, existing)
            })
            .await;
            // If the text cannot be made, the user cannot be asked, and the call is denied.
            let Ok(title) = title else {
                return Answer::None(NoAnswer::Gone);
            };
            let dialog = Dialog::Permission {
                call_id,
                title,
                allow: [ONCE, ALWAYS].map(str::to_owned).to_vec(),
                deny: NEVER.to_owned(),
                timeout: Some(timeout),
            };
            // No token: dropping the future withdraws the question.
            ui.ask(dialog, &CancellationToken::new()).await
        });
        self.asking = Some(Asking {
            slot,
            call,
            since: Instant::now(),
            wait,
            answer,
        });
    }

    /// The user has answered, or will not any more. Returns the input for the machine.
    pub(super) fn accept(&mut self, answer: Answer) -> Option<Input> {
        // A question that was withdrawn meanwhile decides nothing.
        let asking = self.asking.take()?;
        let waited = asking.waited();
        let Asking { slot, call, .. } = asking;
        // Fails closed: every answer other than the two consents refuses the call, also if no button of the dialog gives it.
        let refusal = match &answer {
            Answer::Value(chosen) if chosen == ONCE => None,
            Answer::Value(chosen) if chosen == ALWAYS => {
                self.policy.grant(&call);
                None
            }
            Answer::Denied(reason) => Some(strings::user_denied(reason)),
            Answer::None(NoAnswer::TimedOut) => Some(strings::denied_automatically(waited)),
            Answer::Value(_) | Answer::Confirmed(_) | Answer::None(NoAnswer::Cancelled) => {
                Some(strings::USER_DENIED.to_owned())
            }
            Answer::None(why) => Some(strings::not_permitted(why)),
        };
        let decision = refusal.map_or(Prepared::Run, |why| Prepared::Refused(ToolResult::error(why)));
        Some(Input::Tool(slot, ToolInput::Decided(decision)))
    }

    /// The client chooses a mode. Returns true if another one holds now.
    pub(super) fn choose(&mut self, mode: PermissionMode) -> bool {
        // Noted even if the mode holds already: settings that are read later must not replace a choice of the client.
        self.chosen = Some(mode);
        let before = self.mode();
        self.policy.choose(mode);
        self.mode() != before
    }
}

#[cfg(test)]
mod tests {
    use permissions::PermissionSettings;

    use super::*;

    fn waiting(mode: PermissionMode) -> PermissionWait {
        let bases = Bases {
            cwd: Path::new("/work"),
            home: None,
            real_path: Path::to_path_buf,
        };
        let (policy, notes) = Policy::new(&PermissionSettings::default(), Some(mode), bases);
        assert!(notes.is_empty(), "{notes:?}");
        PermissionWait {
            policy,
            chosen: None,
            asking: None,
        }
    }

    /// A question about `make` that is out.
    fn asking(slot: usize) -> Asking {
        Asking {
            slot,
            call: Call::command("bash", "make"),
            since: Instant::now(),
            wait: None,
            answer: Box::pin(std::future::pending()),
        }
    }

    /// The refusal of the call after this answer; none if it runs.
    fn refusal(permissions: &mut PermissionWait, answer: Answer) -> Option<String> {
        permissions.asking = Some(asking(3));
        match permissions.accept(answer) {
            Some(Input::Tool(3, ToolInput::Decided(Prepared::Run))) => None,
            Some(Input::Tool(3, ToolInput::Decided(Prepared::Refused(result)))) => {
                Some(serde_json::to_string(&result.content).unwrap())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn consent_for_once_asks_again() {
        let mut permissions = waiting(PermissionMode::Ask);
        assert_eq!(refusal(&mut permissions, Answer::Value(ONCE.to_owned())), None);
        let verdict = permissions.policy.judge(&Call::command("bash", "make"));
        assert!(matches!(verdict, Verdict::Ask));
    }

    #[test]
    fn consent_for_session_holds_for_same_call() {
        let mut permissions = waiting(PermissionMode::Ask);
        assert_eq!(refusal(&mut permissions, Answer::Value(ALWAYS.to_owned())), None);
        let judge = |command| permissions.policy.judge(&Call::command("bash", command));
        assert!(matches!(judge("make"), Verdict::Run));
        assert!(matches!(judge("make; rm -rf x"), Verdict::Ask));
    }

    #[test]
    fn every_other_answer_refuses_the_call() {
        let mut permissions = waiting(PermissionMode::Ask);
        let answers = [
            Answer::Value(NEVER.to_owned()),
            Answer::Value("Allow".to_owned()),
            Answer::Confirmed(true),
            Answer::None(NoAnswer::Cancelled),
            Answer::None(NoAnswer::TimedOut),
            Answer::None(NoAnswer::NotRendered),
            Answer::None(NoAnswer::TooMany),
            Answer::None(NoAnswer::SessionChanged),
            Answer::None(NoAnswer::Gone),
            Answer::None(NoAnswer::Withdrawn),
        ];
        for answer in answers {
            assert!(refusal(&mut permissions, answer.clone()).is_some(), "{answer:?}");
        }
        let verdict = permissions.policy.judge(&Call::command("bash", "make"));
        assert!(matches!(verdict, Verdict::Ask), "no refusal grants anything");
    }

    #[test]
    fn reason_of_user_reaches_the_model() {
        let mut permissions = waiting(PermissionMode::Ask);
        let refusal = refusal(&mut permissions, Answer::Denied("use ninja".to_owned())).unwrap();
        assert!(refusal.contains("use ninja"), "{refusal}");
    }

    #[test]
    fn answer_without_question_decides_nothing() {
        let mut permissions = waiting(PermissionMode::Ask);
        assert!(permissions.accept(Answer::Value(ONCE.to_owned())).is_none());
        permissions.asking = Some(asking(1));
        permissions.withdraw();
        assert!(permissions.accept(Answer::Value(ALWAYS.to_owned())).is_none());
    }

    #[test]
    fn forgotten_call_alone_loses_its_question() {
        let mut permissions = waiting(PermissionMode::Ask);
        permissions.asking = Some(asking(1));
        permissions.forget(|slot| slot == 2);
        assert!(permissions.asking.is_some());
        permissions.forget(|slot| slot == 1);
        assert!(permissions.asking.is_none());
    }

    #[test]
    fn chosen_mode_reports_whether_it_changes() {
        let mut permissions = waiting(PermissionMode::Ask);
        assert!(permissions.choose(PermissionMode::ReadOnly));
        assert!(!permissions.choose(PermissionMode::ReadOnly));
        assert_eq!(permissions.chosen(), Some(PermissionMode::ReadOnly));
    }

    #[test]
    fn stricter_choice_is_not_forgotten() {
        let mut permissions = waiting(PermissionMode::Ask);
        for (chosen, kept) in [
            (PermissionMode::Off, None),
            (PermissionMode::Auto, None),
            (PermissionMode::ReadOnly, Some(PermissionMode::ReadOnly)),
        ] {
            permissions.choose(chosen);
            permissions.forget_loose_choice();
            assert_eq!(permissions.chosen(), kept);
            assert_eq!(permissions.mode(), chosen, "until the next settings");
        }
    }

    #[test]
    fn waited_time_ends_with_the_wait() {
        let mut asked = asking(0);
        asked.wait = Some(Duration::ZERO);
        assert_eq!(asked.waited(), Duration::ZERO);
        asked.wait = None;
        asked.since = Instant::now().checked_sub(Duration::from_secs(60)).unwrap();
        assert!(asked.waited() >= Duration::from_secs(60));
    }

    #[test]
    fn existing_file_is_told_from_directory() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, "abc").unwrap();
        assert!(matches!(existing(&file), Existing::File(3)));
        assert!(matches!(existing(dir.path()), Existing::Other));
        assert!(matches!(existing(&dir.path().join("b")), Existing::Nothing));
    }
}
