//! Sessions by chance against a provider that bills each request: it is never asked once more than a limit allows.

use std::sync::Arc;

use pinion_agent::{
    CompactOutcome, Effect, Fallback, Input, LoopSettings, Machine, ModelInput, NestedCall, Prepared,
    RetrySettings, RunBudget, Spent, ToolInput, Verdict,
};
use serde_json::Map;
use wire::content::AssistantBlock;
use wire::model::Prices;
use wire::run_limits::LimitKind;
use wire::{AssistantMessage, Event, Message, RunLimits, StopReason, ToolCall, ToolResult, Usage};

/// Sessions that are played.
pub(crate) const SEEDS: u64 = 10_000;

/// Steps of one session.
const STEPS: usize = 120;

/// Numbers by chance (xorshift).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn maybe(&mut self, end: u64) -> Option<u64> {
        self.once_in(2).then(|| 1 + self.below(end))
    }
}

/// What the provider and the tools have seen.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bill {
    pub(crate) requests: u64,
    pub(crate) tokens: u64,
    pub(crate) cents: u64,
    pub(crate) calls: u64,
}

/// Prices of the models that a run may fall back to. The provider bills all of them; what the last one costs is unknown to the session.
const PRICES: [f64; 3] = [3.0, 1.0, 0.0];

struct World {
    chance: Chance,
    /// The model of the run, by its place in `PRICES`.
    model: usize,
    has_fallback: bool,
    /// Whether the session heeds that a price is unknown.
    heeds_prices: bool,
    machine: Machine,
    now: i64,
    limits: RunLimits,
    prompt_limits: Option<RunLimits>,
    bill: Bill,
    prompt_bill: Bill,
    is_asked: bool,
    running: Vec<usize>,
    is_retry_due: bool,
    is_compacting: bool,
    serial: u64,
    ended_by: Vec<LimitKind>,
}

impl World {
    fn new(seed: u64, heeds_prices: bool) -> Self {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let limits = some_limits(&mut chance);
        let has_fallback = chance.once_in(2);
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
            chance,
            model: 0,
            has_fallback,
            heeds_prices,
            now: 0,
            limits,
            prompt_limits: None,
            bill: Bill::default(),
            prompt_bill: Bill::default(),
            is_asked: false,
            running: Vec::new(),
            is_retry_due: false,
            is_compacting: false,
            serial: 0,
            ended_by: Vec::new(),
        }
    }

    fn play(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            self.now += i64::try_from(self.chance.below(400)).unwrap_or(0);
            if self
                .machine
                .deadline()
                .is_some_and(|deadline| deadline <= self.now)
            {
                self.step(Input::Abort)?;
                continue;
            }
            if self.machine.is_idle() {
                self.begin()?;
            } else {
                self.go_on()?;
            }
        }
        for _ in 0..STEPS {
            if self.machine.is_idle() {
                return Ok(());
            }
            self.go_on()?;
            self.step(Input::Abort)?;
        }
        Err("the session does not come to rest".to_owned())
    }

    /// As the session does it: a prompt beyond a limit is refused.
    fn begin(&mut self) -> Result<(), String> {
        self.prompt_limits = None;
        self.prompt_bill = Bill::default();
        self.model = 0;
        if self.machine.budget().reached().is_some() {
            // The host allows more.
            for limit in [
                &mut self.limits.max_turns,
                &mut self.limits.max_tokens,
                &mut self.limits.max_seconds,
            ] {
                *limit = limit.map(|limit| limit + 1 + self.chance.below(9));
            }
            self.limits.max_cost = self.limits.max_cost.map(|limit| limit + 0.05);
            let limits = self.limits;
            return self.step(pinion_agent::Change::Limits { limits, reset: false }.into());
        }
        if self.chance.once_in(6) && self.machine.can_continue() {
            let full = self.chance.once_in(4);
            return self.step(Input::Continue { full });
        }
        if self.chance.once_in(12) {
            return self.step(Input::Compact);
        }
        let limits = self.chance.once_in(3).then(|| some_limits(&mut self.chance));
        self.prompt_limits = limits;
        let full = self.chance.once_in(5);
        let wants_result = self.chance.once_in(4);
        self.step(Input::Prompt {
            messages: vec![Arc::new(Message::user("go", self.now))],
            full,
            limits,
            wants_result,
        })
    }

    fn go_on(&mut self) -> Result<(), String> {
        if self.chance.once_in(40) {
            return self.step(Input::Abort);
        }
        if std::mem::take(&mut self.is_compacting) {
            return self.summarise();
        }
        if std::mem::take(&mut self.is_retry_due) {
            return self.step(Input::RetryDue);
        }
        if std::mem::take(&mut self.is_asked) {
            return self.answer();
        }
        if self.chance.once_in(4) && !self.running.is_empty() {
            self.serial += 1;
            return self.step(Input::Nest(NestedCall {
                request: Some(self.serial),
                parent: "call-0".to_owned(),
                name: "inner".to_owned(),
                args: Map::new(),
            }));
        }
        let text = if self.chance.once_in(2) { "same" } else { "other" };
        match self.running.pop() {
            Some(slot) => self.step(Input::Tool(
                slot,
                ToolInput::Done {
                    result: ToolResult::text(text),
                    is_error: false,
                    duration_ms: 1,
                },
            )),
            None => self.step(Input::Abort),
        }
    }

    /// Summaries are asked for within a copy of the budget, as the session does; some are asked for twice.
    fn summarise(&mut self) -> Result<(), String> {
        let mut budget: RunBudget = self.machine.budget().clone();
        let mut spent = Spent::default();
        for _ in 0..=self.chance.below(3) {
            if budget.reached().is_some() {
                break;
            }
            let usage = seen(self.bill()?, price_of(0));
            budget.spend(Spent::of(&usage));
            spent.add(Spent::of(&usage));
        }
        self.step(Input::Spent(spent))?;
        self.step(Input::Compacted(CompactOutcome::Failed("too short".to_owned())))
    }

    fn answer(&mut self) -> Result<(), String> {
        let mut answer = AssistantMessage::begin("api", "provider", "model", self.now);
        let usage = self.usage();
        answer.usage = seen(usage.clone(), price_of(self.model));
        let mut verdict = Verdict::Final;
        match self.chance.below(10) {
            0 | 1 => {
                answer.stop_reason = StopReason::Error;
                verdict = Verdict::Retry(None);
            }
            2 => {
                answer.stop_reason = StopReason::Error;
                verdict = Verdict::Overflow;
            }
            3 => {
                answer.stop_reason = StopReason::Error;
                verdict = Verdict::Unavailable;
            }
            4 => answer.stop_reason = StopReason::Stop,
            _ => {
                answer.stop_reason = StopReason::ToolUse;
                for call in 0..=self.chance.below(3) {
                    answer.content.push(AssistantBlock::ToolCall(ToolCall {
                        id: format!("call-{call}"),
                        name: "tool".to_owned(),
                        ..ToolCall::default()
                    }));
                }
            }
        }
        self.note(&usage);
        self.step(Input::Model(ModelInput::Finished(answer, verdict)))
    }

    /// The price of each request is known only with its answer.
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

    /// A request: it must be within all limits. Then it is billed.
    fn ask(&mut self) -> Result<(), String> {
        within(self.limits, self.bill)?;
        within(self.prompt_limits.unwrap_or_default(), self.prompt_bill)?;
        self.bill.requests += 1;
        self.prompt_bill.requests += 1;
        Ok(())
    }

    fn bill(&mut self) -> Result<Usage, String> {
        self.ask()?;
        let usage = self.usage();
        self.note(&usage);
        Ok(usage)
    }

    fn note(&mut self, usage: &Usage) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let cents = (usage.cost.total * 100.0).round() as u64;
        for bill in [&mut self.bill, &mut self.prompt_bill] {
            bill.tokens += usage.input;
            bill.cents += cents;
        }
    }

    fn step(&mut self, input: Input) -> Result<(), String> {
        let mut out = Vec::new();
        self.machine.step(input, self.now, &mut out);
        for effect in out {
            let follows = match effect {
                Effect::CallModel => {
                    self.ask()?;
                    self.is_asked = true;
                    None
                }
                Effect::ChooseModel => Some(Input::Fallback(self.fall_back())),
                Effect::CancelModel | Effect::CancelTools => None,
                Effect::CheckContext => Some(Input::Context(self.chance.once_in(8))),
                Effect::Compact(_) => {
                    self.is_compacting = true;
                    None
                }
                Effect::StartRetryTimer(_) => {
                    self.is_retry_due = true;
                    None
                }
                Effect::CancelRetryTimer => {
                    self.is_retry_due = false;
                    None
                }
                Effect::PrepareTool(slot, _) => Some(Input::Tool(slot, ToolInput::Prepared(Prepared::Run))),
                Effect::Decide(slot) => Some(Input::Tool(slot, ToolInput::Decided(Prepared::Run))),
                Effect::RunTool(slot) => {
                    self.start_call()?;
                    self.running.push(slot);
                    None
                }
                Effect::Emit(Event::AgentEnd { limit, .. }) => {
                    self.ended_by.extend(limit.map(|limit| limit.kind));
                    None
                }
                _ => None,
            };
            if let Some(input) = follows {
                self.step(input)?;
            }
        }
        Ok(())
    }

    /// As `session::fallbacks` does it: a model that the budget does not allow is skipped.
    fn fall_back(&mut self) -> Option<Fallback> {
        if !self.has_fallback {
            return None;
        }
        for _ in 0..=self.chance.below(2) {
            let next = usize::try_from(self.chance.below(3)).unwrap_or(0);
            let prices = Prices {
                input: price_of(next),
                ..Prices::default()
            };
            if self.machine.budget().allows_prices(&prices) || !self.heeds_prices {
                let from = format!("model/{}", self.model);
                self.model = next;
                let to = format!("model/{next}");
                return Some(Fallback { from, to });
            }
        }
        None
    }

    fn start_call(&mut self) -> Result<(), String> {
        let scopes = [
            (self.limits, &mut self.bill),
            (self.prompt_limits.unwrap_or_default(), &mut self.prompt_bill),
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

/// What the session sees of a bill: no cost if it does not know the price.
fn seen(mut usage: Usage, price: f64) -> Usage {
    if price <= 0.0 {
        usage.cost = wire::Cost::default();
    }
    usage
}

fn price_of(model: usize) -> f64 {
    PRICES.get(model).copied().unwrap_or_default()
}

pub(crate) fn some_limits(chance: &mut Chance) -> RunLimits {
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let max_cost = chance.maybe(30).map(|cents| cents as f64 / 100.0);
    RunLimits {
        max_turns: chance.maybe(12),
        max_tool_calls: chance.maybe(12),
        max_tokens: chance.maybe(150),
        max_cost,
        max_seconds: chance.maybe(8),
        max_repeats: chance.maybe(4).map(|times| times + 1),
        warn: Some(chance.once_in(2)),
    }
}

pub(crate) fn within(limits: RunLimits, bill: Bill) -> Result<(), String> {
    let is_beyond = limits.max_turns.is_some_and(|limit| bill.requests >= limit)
        || limits.max_tokens.is_some_and(|limit| bill.tokens >= limit)
        || limits.max_cost.is_some_and(|limit| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
            let cents = (limit * 100.0).round() as u64;
            bill.cents >= cents
        });
    if is_beyond {
        return Err(format!("a request beyond {limits:?}: {bill:?}"));
    }
    Ok(())
}

#[test]
fn provider_is_never_asked_beyond_limits() {
    let mut ended_by = Vec::new();
    for seed in 1..=SEEDS {
        let mut world = World::new(seed, true);
        if let Err(error) = world.play() {
            panic!("seed {seed}: {error}");
        }
        ended_by.append(&mut world.ended_by);
    }
    // The limits were reached, each of them often.
    for kind in [
        LimitKind::Turns,
        LimitKind::ToolCalls,
        LimitKind::Tokens,
        LimitKind::Cost,
        LimitKind::Seconds,
        LimitKind::Repeats,
    ] {
        let times = ended_by.iter().filter(|other| **other == kind).count();
        assert!(times > 100, "{kind:?}: {times}");
    }
}

/// Without the check the first test would find requests beyond a limit of the cost.
#[test]
fn unpriced_fallback_without_check_exceeds_cost_limit() {
    let beyond = (1..=SEEDS / 10).filter(|seed| World::new(*seed, false).play().is_err());
    assert!(beyond.count() > 20);
}
