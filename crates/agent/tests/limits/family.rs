//! Sessions with sub-agents by chance against a provider that bills each request: together they never ask it once more than a
//! limit of the session allows. The members step as `session::machine` lets them: what others used comes first.

use std::sync::Arc;

use pinion_agent::{
    AccountMember, CompactOutcome, Effect, Input, LoopSettings, Machine, ModelInput, Prepared, RetrySettings,
    SharedAccount, Spent, ToolInput, Verdict,
};
use wire::content::AssistantBlock;
use wire::run_limits::LimitKind;
use wire::{AssistantMessage, Event, Message, RunLimits, StopReason, ToolCall, ToolResult, Usage};

use super::simulation::{Bill, Chance, SEEDS, some_limits, within};

/// Steps of one family.
const STEPS: usize = 200;

/// Sub-agents that may work at the same time.
const PLACES: usize = 4;

/// A session that takes part.
struct Member {
    machine: Machine,
    account: AccountMember,
    is_asked: bool,
    is_retry_due: bool,
    is_compacting: bool,
    running: Vec<usize>,
}

impl Member {
    fn new(limits: RunLimits, account: AccountMember) -> Self {
        let settings = LoopSettings {
            limits,
            retry: RetrySettings {
                max_retries: 2,
                ..RetrySettings::default()
            },
            ..LoopSettings::default()
        };
        Self {
            machine: Machine::new(settings, Vec::new()),
            account,
            is_asked: false,
            is_retry_due: false,
            is_compacting: false,
            running: Vec::new(),
        }
    }
}

/// A task: the slot of its call in the owner's batch, and who does it.
struct Task {
    slot: usize,
    member: Option<Member>,
    limits: RunLimits,
    account: Option<AccountMember>,
    alone: bool,
}

struct Family {
    chance: Chance,
    now: i64,
    owner: Member,
    tasks: Vec<Task>,
    account: SharedAccount,
    limits: RunLimits,
    prompt_limits: RunLimits,
    bill: Bill,
    prompt_bill: Bill,
    shared: bool,
    most_at_once: usize,
    ended_by: Vec<LimitKind>,
}

/// Who steps.
#[derive(Clone, Copy)]
enum Who {
    Owner,
    Task(usize),
}

impl Family {
    fn new(seed: u64, shared: bool) -> Self {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let plain = |limits| RunLimits {
            max_seconds: None,
            max_repeats: None,
            ..limits
        };
        let limits = plain(some_limits(&mut chance));
        let prompt_limits = match chance.once_in(2) {
            true => plain(some_limits(&mut chance)),
            false => RunLimits::default(),
        };
        let account = SharedAccount::default();
        Self {
            owner: Member::new(limits, account.join()),
            chance,
            now: 0,
            tasks: Vec::new(),
            account,
            limits,
            prompt_limits,
            bill: Bill::default(),
            prompt_bill: Bill::default(),
            shared,
            most_at_once: 0,
            ended_by: Vec::new(),
        }
    }

    fn play(&mut self) -> Result<(), String> {
        self.step(
            Who::Owner,
            Input::Prompt {
                messages: vec![Arc::new(Message::user("go", 0))],
                full: false,
                limits: Some(self.prompt_limits),
                wants_result: false,
            },
        )?;
        for _ in 0..STEPS {
            if self.owner.machine.is_idle() {
                return Ok(());
            }
            self.now += 10;
            self.begin_tasks()?;
            let working: Vec<usize> = (0..self.tasks.len())
                .filter(|at| self.tasks.get(*at).is_some_and(|task| task.member.is_some()))
                .collect();
            self.most_at_once = self.most_at_once.max(working.len());
            let count = working.len();
            let chosen =
                usize::try_from(self.chance.below(u64::try_from(count).unwrap_or(0) + 1)).unwrap_or(0);
            match working.get(chosen) {
                Some(task) => self.go_on(Who::Task(*task))?,
                None => self.go_on(Who::Owner)?,
            }
            self.end_tasks()?;
        }
        Ok(())
    }

    /// Gives places to tasks that wait.
    fn begin_tasks(&mut self) -> Result<(), String> {
        for at in 0..self.tasks.len() {
            let working = self.tasks.iter().filter(|task| task.member.is_some()).count();
            let Some(task) = self.tasks.get_mut(at) else {
                continue;
            };
            let places = if task.alone { 1 } else { PLACES };
            if task.member.is_some() || working >= places {
                continue;
            }
            let account = task.account.take().unwrap_or_else(|| self.account.join());
            task.member = Some(Member::new(task.limits, account));
            self.step(
                Who::Task(at),
                Input::Prompt {
                    messages: vec![Arc::new(Message::user("task", self.now))],
                    full: false,
                    limits: None,
                    wants_result: false,
                },
            )?;
        }
        Ok(())
    }

    fn end_tasks(&mut self) -> Result<(), String> {
        let is_done = |task: &Task| {
            task.member
                .as_ref()
                .is_some_and(|member| member.machine.is_idle())
        };
        while let Some(at) = self.tasks.iter().position(is_done) {
            let task = self.tasks.remove(at);
            self.step(
                Who::Owner,
                Input::Tool(
                    task.slot,
                    ToolInput::Done {
                        result: ToolResult::text("done"),
                        is_error: false,
                        duration_ms: 1,
                    },
                ),
            )?;
        }
        Ok(())
    }

    fn member(&mut self, who: Who) -> Option<&mut Member> {
        match who {
            Who::Owner => Some(&mut self.owner),
            Who::Task(at) => self.tasks.get_mut(at)?.member.as_mut(),
        }
    }

    fn go_on(&mut self, who: Who) -> Result<(), String> {
        let Some(member) = self.member(who) else {
            return Ok(());
        };
        if std::mem::take(&mut member.is_compacting) {
            return self.summarise(who);
        }
        if std::mem::take(&mut member.is_retry_due) {
            return self.step(who, Input::RetryDue);
        }
        if std::mem::take(&mut member.is_asked) {
            return self.answer(who);
        }
        let Some(slot) = member.running.pop() else {
            return Ok(());
        };
        let is_task = matches!(who, Who::Owner) && !self.chance.once_in(5);
        if is_task {
            self.count_others(Who::Owner);
            let budget = self.owner.machine.budget();
            self.tasks.push(Task {
                slot,
                member: None,
                limits: budget.left(),
                account: Some(self.account.join()),
                alone: budget.limits_use(),
            });
            return Ok(());
        }
        self.step(
            who,
            Input::Tool(
                slot,
                ToolInput::Done {
                    result: ToolResult::text("done"),
                    is_error: false,
                    duration_ms: 1,
                },
            ),
        )
    }

    /// As `session::run_limits::TaskBudget` counts: what others use meanwhile comes first.
    fn summarise(&mut self, who: Who) -> Result<(), String> {
        self.count_others(who);
        let mut requests = self.account.join();
        let Some(mut budget) = self.member(who).map(|member| member.machine.budget().clone()) else {
            return Ok(());
        };
        for _ in 0..=self.chance.below(3) {
            budget.spend(requests.take().unwrap_or_default());
            if budget.reached().is_some() {
                break;
            }
            self.ask()?;
            let usage = self.usage();
            self.note(&usage);
            let spent = Spent::of(&usage);
            requests.note(spent);
            budget.spend(spent);
        }
        self.step(
            who,
            Input::Compacted(CompactOutcome::Failed("too short".to_owned())),
        )
    }

    fn answer(&mut self, who: Who) -> Result<(), String> {
        let mut answer = AssistantMessage::begin("api", "provider", "model", self.now);
        answer.usage = self.usage();
        let mut verdict = Verdict::Final;
        match self.chance.below(8) {
            0 | 1 => {
                answer.stop_reason = StopReason::Error;
                verdict = Verdict::Retry(None);
            }
            2 => {
                answer.stop_reason = StopReason::Error;
                verdict = Verdict::Overflow;
            }
            3 => answer.stop_reason = StopReason::Stop,
            _ => {
                answer.stop_reason = StopReason::ToolUse;
                for call in 0..=self.chance.below(4) {
                    answer.content.push(AssistantBlock::ToolCall(ToolCall {
                        id: format!("call-{call}"),
                        name: "tool".to_owned(),
                        ..ToolCall::default()
                    }));
                }
            }
        }
        self.note(&answer.usage.clone());
        self.step(who, Input::Model(ModelInput::Finished(answer, verdict)))
    }

    fn usage(&mut self) -> Usage {
        let cents = self.chance.below(4);
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let total = cents as f64 / 100.0;
        Usage {
            input: 1 + self.chance.below(20),
            cost: wire::Cost {
                total,
                ..wire::Cost::default()
            },
            ..Usage::default()
        }
    }

    /// A request of any member: it must be within the limits of the owner.
    fn ask(&mut self) -> Result<(), String> {
        within(self.limits, self.bill)?;
        within(self.prompt_limits, self.prompt_bill)?;
        self.bill.requests += 1;
        self.prompt_bill.requests += 1;
        Ok(())
    }

    fn note(&mut self, usage: &Usage) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let cents = (usage.cost.total * 100.0).round() as u64;
        for bill in [&mut self.bill, &mut self.prompt_bill] {
            bill.tokens += usage.input;
            bill.cents += cents;
        }
    }

    fn count_others(&mut self, who: Who) {
        let (now, shared) = (self.now, self.shared);
        let Some(member) = self.member(who) else {
            return;
        };
        if let Some(spent) = member.account.take()
            && shared
        {
            member.machine.step(Input::Spent(spent), now, &mut Vec::new());
        }
    }

    fn step(&mut self, who: Who, input: Input) -> Result<(), String> {
        self.count_others(who);
        let now = self.now;
        let Some(member) = self.member(who) else {
            return Ok(());
        };
        let before = member.machine.budget().spent();
        let mut out = Vec::new();
        member.machine.step(input, now, &mut out);
        let spent = member.machine.budget().spent().since(before);
        member.account.note(spent);
        for effect in out {
            if let Some(input) = self.perform(who, effect)? {
                self.step(who, input)?;
            }
        }
        Ok(())
    }

    fn perform(&mut self, who: Who, effect: Effect) -> Result<Option<Input>, String> {
        let full = self.chance.once_in(8);
        if matches!(effect, Effect::CallModel) {
            self.ask()?;
        }
        if matches!(effect, Effect::RunTool(_)) {
            self.start_call()?;
        }
        if let (Who::Owner, Effect::Emit(Event::AgentEnd { limit, .. })) = (who, &effect) {
            self.ended_by.extend(limit.map(|limit| limit.kind));
        }
        let Some(member) = self.member(who) else {
            return Ok(None);
        };
        match effect {
            Effect::CallModel => member.is_asked = true,
            Effect::Compact(_) => member.is_compacting = true,
            Effect::StartRetryTimer(_) => member.is_retry_due = true,
            Effect::CancelRetryTimer => member.is_retry_due = false,
            Effect::RunTool(slot) => member.running.push(slot),
            Effect::CheckContext => return Ok(Some(Input::Context(full))),
            Effect::ChooseModel => return Ok(Some(Input::Fallback(None))),
            Effect::PrepareTool(slot, _) => {
                return Ok(Some(Input::Tool(slot, ToolInput::Prepared(Prepared::Run))));
            }
            Effect::Decide(slot) => {
                return Ok(Some(Input::Tool(slot, ToolInput::Decided(Prepared::Run))));
            }
            _ => {}
        }
        Ok(None)
    }

    fn start_call(&mut self) -> Result<(), String> {
        let scopes = [
            (self.limits, &mut self.bill),
            (self.prompt_limits, &mut self.prompt_bill),
        ];
        for (limits, bill) in scopes {
            if limits.max_tool_calls.is_some_and(|limit| bill.calls >= limit) {
                return Err(format!("a call beyond {limits:?}"));
            }
            bill.calls += 1;
        }
        Ok(())
    }
}

#[test]
fn family_never_asks_beyond_limits() {
    let mut ended_by = Vec::new();
    let mut parallel = 0;
    for seed in 1..=SEEDS {
        let mut family = Family::new(seed, true);
        if let Err(error) = family.play() {
            panic!("seed {seed}: {error}");
        }
        parallel += usize::from(family.most_at_once > 1);
        ended_by.append(&mut family.ended_by);
    }
    assert!(
        parallel > 500,
        "sub-agents worked at the same time in {parallel} families"
    );
    for kind in [LimitKind::Turns, LimitKind::Tokens, LimitKind::Cost] {
        let times = ended_by.iter().filter(|other| **other == kind).count();
        assert!(times > 100, "{kind:?}: {times}");
    }
}

/// Without the account the check above would find requests beyond the limits.
#[test]
fn family_without_account_asks_beyond_limits() {
    let beyond = (1..=SEEDS / 10).filter(|seed| Family::new(*seed, false).play().is_err());
    assert!(beyond.count() > 20);
}
