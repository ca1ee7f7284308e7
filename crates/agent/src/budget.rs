//! What a run may use and has used: the limits of the session and of the prompt that started the run
//! (docs/guides/limits.md).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wire::model::Prices;
use wire::run_limits::{LimitKind, LimitUse, ReachedLimit};
use wire::{Message, RunLimits, Usage};

use crate::limits::LIMIT_WARNING_PERCENT;

/// The use of models outside of the turn loop: summaries, requests of extensions, sub-agents.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Requests to a model.
    pub requests: u64,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// US dollars.
    pub cost: f64,
    /// Tool calls.
    #[serde(default)]
    pub tool_calls: u64,
}

impl Spent {
    /// One request that used this.
    #[must_use]
    pub fn of(usage: &Usage) -> Self {
        // Not `total_tokens`, which may be 0 although the parts are known (pi-core.md 3.2).
        let counts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
        Self {
            requests: 1,
            tokens: counts.into_iter().fold(0, u64::saturating_add),
            cost: usage.cost.total,
            tool_calls: 0,
        }
    }

    /// Adds what another request used.
    pub fn add(&mut self, other: Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost += other.cost;
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
    }

    /// The use since `earlier`. Counting may have begun again meanwhile: then nothing.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(earlier.requests),
            tokens: self.tokens.saturating_sub(earlier.tokens),
            cost: (self.cost - earlier.cost).max(0.0),
            tool_calls: self.tool_calls.saturating_sub(earlier.tool_calls),
        }
    }
}

/// What a session has used. It is kept while the session is closed for a while.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct SessionUse {
    /// All but time.
    pub spent: Spent,
    /// Milliseconds during which a run was active.
    pub active_ms: u64,
    /// Whether the model was told that most of a limit is used.
    pub has_warned: bool,
}

/// The limits of one scope and how much is used of them.
#[derive(Debug, Clone, Copy, Default)]
struct Budget {
    limits: RunLimits,
    spent: Spent,
    /// Milliseconds during which a run was active.
    active_ms: u64,
    /// The model was told that most of a limit is used.
    has_warned: bool,
}

impl Budget {
    fn new(limits: RunLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Each limit with how much is used of it.
    fn shares(&self) -> impl Iterator<Item = (LimitKind, f64, f64)> {
        let limits = self.limits;
        let counts = [
            (LimitKind::Turns, limits.max_turns, self.spent.requests),
            (LimitKind::Tokens, limits.max_tokens, self.spent.tokens),
            // Whole seconds: the limit is reached when the last one has passed, which is at the deadline.
            (LimitKind::Seconds, limits.max_seconds, self.active_ms / 1000),
            (LimitKind::ToolCalls, limits.max_tool_calls, self.spent.tool_calls),
        ];
        let counts = counts
            .into_iter()
            .filter_map(|(kind, limit, used)| limit.map(|limit| (kind, number(limit), number(used))));
        let cost = limits
            .max_cost
            .map(|limit| (LimitKind::Cost, limit, self.spent.cost));
        counts.chain(cost)
    }

    /// The limit that prevents another request. Without calls left a model may still answer.
    fn reached(&self) -> Option<ReachedLimit> {
        self.used_up(|kind| kind != LimitKind::ToolCalls)
    }

    /// The limit of time, if it is over.
    fn timed_out(&self) -> Option<ReachedLimit> {
        self.used_up(|kind| kind == LimitKind::Seconds)
    }

    /// The first limit of these kinds that is used up.
    fn used_up(&self, counts: impl Fn(LimitKind) -> bool) -> Option<ReachedLimit> {
        let mut shares = self.shares();
        let share = shares.find(|(kind, limit, used)| counts(*kind) && is_used_up(*limit, *used));
        share.map(|(kind, value, _)| ReachedLimit { kind, value })
    }

    fn calls_left(&self) -> Option<u64> {
        let limit = self.limits.max_tool_calls;
        limit.map(|limit| limit.saturating_sub(self.spent.tool_calls))
    }

    fn ms_left(&self) -> Option<u64> {
        let limit = self.limits.max_seconds?.saturating_mul(1000);
        Some(limit.saturating_sub(self.active_ms))
    }

    /// Tells once that most of a limit is used.
    fn take_warning(&mut self) -> Option<String> {
        if self.has_warned || self.limits.warn != Some(true) {
            return None;
        }
        let mut shares = self.shares();
        let (kind, limit, used) =
            shares.find(|(_, limit, used)| used * 100.0 >= limit * number(LIMIT_WARNING_PERCENT))?;
        // It borrows the budget, which changes next.
        drop(shares);
        self.has_warned = true;
        let limit = ReachedLimit { kind, value: limit };
        Some(format!(
            "The limit of this work is {limit}; {used} are used. When the limit is reached, the work ends. Finish what matters \
             most, and say what is left to do."
        ))
    }

    fn used(&self) -> LimitUse {
        LimitUse {
            turns: self.spent.requests,
            tool_calls: self.spent.tool_calls,
            tokens: self.spent.tokens,
            cost: self.spent.cost,
            seconds: number(self.active_ms) / 1000.0,
        }
    }
}

/// Sums of prices have rounding errors: five times 0.2 must use up 1.
fn is_used_up(limit: f64, used: f64) -> bool {
    used >= limit * (1.0 - 1e-9)
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn number(count: u64) -> f64 {
    count as f64
}

/// The limits of a session and of its current prompt, and how much is used of them.
#[derive(Debug, Clone, Default)]
pub struct RunBudget {
    session: Budget,
    prompt: Option<Budget>,
    /// Since when a run is active and not yet counted, in Unix milliseconds.
    active_since: Option<i64>,
    repeats: Repeats,
}

impl RunBudget {
    /// A budget of which nothing was used.
    pub(crate) fn new(limits: RunLimits) -> Self {
        Self {
            session: Budget::new(limits),
            ..Self::default()
        }
    }

    /// The limits of the session.
    #[must_use]
    pub fn limits(&self) -> RunLimits {
        self.session.limits
    }

    /// What the session used.
    #[must_use]
    pub fn used(&self) -> LimitUse {
        self.session.used()
    }

    /// What the session used, time left out.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.session.spent
    }

    /// All that the session used, for [`Change::Used`](crate::Change::Used).
    #[must_use]
    pub fn session_use(&self) -> SessionUse {
        let Budget {
            limits: _,
            spent,
            active_ms,
            has_warned,
        } = self.session;
        SessionUse {
            spent,
            active_ms,
            has_warned,
        }
    }

    /// Counting goes on from this use of the session.
    pub(crate) fn go_on(&mut self, used: SessionUse) {
        self.session.spent = used.spent;
        self.session.active_ms = used.active_ms;
        self.session.has_warned = used.has_warned;
    }

    /// The rest of the limits of session and prompt: the limits of a session that works for this one. Time is left out, since
    /// the run ends the work when its time is over.
    #[must_use]
    pub fn left(&self) -> RunLimits {
        fn least<T: PartialOrd>(values: impl Iterator<Item = T>) -> Option<T> {
            // Not `min`: costs have no total order.
            values.reduce(|least, value| if value < least { value } else { least })
        }
        let count = |limit: fn(&RunLimits) -> Option<u64>, used: fn(&Spent) -> u64| {
            let scopes = self.scopes();
            least(scopes.filter_map(|scope| Some(limit(&scope.limits)?.saturating_sub(used(&scope.spent)))))
        };
        let cost = self.scopes().filter_map(|scope| {
            let (limit, used) = (scope.limits.max_cost?, scope.spent.cost);
            // A rounding error that is left over is no money.
            Some(if is_used_up(limit, used) {
                0.0
            } else {
                limit - used
            })
        });
        RunLimits {
            max_turns: count(|limits| limits.max_turns, |spent| spent.requests),
            max_tool_calls: count(|limits| limits.max_tool_calls, |spent| spent.tool_calls),
            max_tokens: count(|limits| limits.max_tokens, |spent| spent.tokens),
            max_cost: least(cost),
            max_seconds: None,
            // The whole limit: calls repeat within one conversation, and that of a sub-agent is new.
            max_repeats: least(self.scopes().filter_map(|scope| scope.limits.max_repeats)),
            warn: None,
        }
    }

    /// Returns true if what one request uses is limited, so that requests at the same time could together pass the limit.
    #[must_use]
    pub fn limits_use(&self) -> bool {
        self.scopes()
            .any(|scope| scope.limits.max_cost.is_some() || scope.limits.max_tokens.is_some())
    }

    /// Returns true if a cost is limited.
    #[must_use]
    pub fn limits_cost(&self) -> bool {
        self.scopes().any(|budget| budget.limits.max_cost.is_some())
    }

    /// Returns true if a model with these prices may be asked: while a cost is limited, the prices must be known.
    #[must_use]
    pub fn allows_prices(&self, prices: &Prices) -> bool {
        !self.limits_cost() || prices.are_known()
    }

    /// The limit that prevents another request to a model.
    #[must_use]
    pub fn reached(&self) -> Option<ReachedLimit> {
        self.scopes()
            .find_map(Budget::reached)
            .or_else(|| self.repeated())
    }

    /// The limit that ended the run if time was limited and is over.
    pub(crate) fn timed_out(&self) -> Option<ReachedLimit> {
        // Not through `reached`, which names another limit if that is used up, too.
        self.scopes().find_map(Budget::timed_out)
    }

    /// Tool calls that may still start.
    pub(crate) fn calls_left(&self) -> Option<u64> {
        self.scopes().filter_map(Budget::calls_left).min()
    }

    /// The limit of tool calls that has the fewest left.
    pub(crate) fn call_limit(&self) -> Option<ReachedLimit> {
        let scope = self
            .scopes()
            .filter(|budget| budget.limits.max_tool_calls.is_some());
        let scope = scope.min_by_key(|budget| budget.calls_left())?;
        Some(ReachedLimit {
            kind: LimitKind::ToolCalls,
            value: number(scope.limits.max_tool_calls?),
        })
    }

    /// When the active run must end, in Unix milliseconds.
    #[must_use]
    pub fn deadline(&self) -> Option<i64> {
        let since = self.active_since?;
        // Time before `since` is in `active_ms` already: `tick` moves both.
        let left = self.scopes().filter_map(Budget::ms_left).min()?;
        Some(since.saturating_add(i64::try_from(left).unwrap_or(i64::MAX)))
    }

    /// Sets the limits of the session; counting begins again if it is `reset`.
    pub(crate) fn set(&mut self, limits: RunLimits, reset: bool) {
        // Use so far stays, so that a raised limit gives the difference only.
        self.session.limits = limits;
        // The model has not seen a warning about these limits.
        self.session.has_warned = false;
        if reset {
            self.session = Budget::new(limits);
            self.repeats = Repeats::default();
        }
    }

    /// A prompt with limits of its own begins.
    pub(crate) fn begin_prompt(&mut self, limits: Option<RunLimits>) {
        self.prompt = limits.map(Budget::new);
    }

    /// Returns true if the prompt of the run has limits of its own.
    pub(crate) fn has_prompt_limits(&self) -> bool {
        self.prompt.is_some()
    }

    /// The session has settled: the limits of the prompt hold for all of its attempts, also for a request that hooks want after its run,
    /// and for nothing after that.
    pub(crate) fn end_prompt(&mut self) {
        self.prompt = None;
        // Turns of one run are in a row. Otherwise a run that repeated itself would keep the next prompt from being accepted.
        self.repeats = Repeats::default();
    }

    /// Counts the time up to now, if a run was active.
    pub(crate) fn tick(&mut self, now: i64) {
        let Some(since) = self.active_since else {
            return;
        };
        self.active_since = Some(now);
        // A clock that was set back counts as no time.
        let ms = u64::try_from(now.saturating_sub(since)).unwrap_or(0);
        for budget in self.scopes_mut() {
            budget.active_ms = budget.active_ms.saturating_add(ms);
        }
    }

    /// Notes whether a run is active from now on.
    pub(crate) fn set_active(&mut self, is_active: bool, now: i64) {
        match (is_active, self.active_since) {
            (true, None) => self.active_since = Some(now),
            (false, Some(_)) => self.active_since = None,
            _ => {}
        }
    }

    /// A request is made. What it used follows with `answered`.
    pub fn asked(&mut self) {
        // Counted before the answer: sub-agents share the account and may send requests meanwhile.
        self.spend(Spent {
            requests: 1,
            ..Spent::default()
        });
    }

    /// A request was answered, or failed.
    pub fn answered(&mut self, usage: &Usage) {
        self.spend(Spent {
            // `asked` has counted the request.
            requests: 0,
            ..Spent::of(usage)
        });
    }

    /// Counts requests that others made.
    pub fn spend(&mut self, spent: Spent) {
        for budget in self.scopes_mut() {
            budget.spent.add(spent);
        }
    }

    /// Tool calls start.
    pub(crate) fn called(&mut self, calls: u64) {
        self.spend(Spent {
            tool_calls: calls,
            ..Spent::default()
        });
    }

    /// The calls of a turn have ended with these results.
    pub(crate) fn turn_ended(&mut self, answer: &Message, results: &[Arc<Message>]) {
        // Hashing reads all results, which can be large: only a limit is worth it.
        if self.scopes().any(|budget| budget.limits.max_repeats.is_some()) {
            self.repeats.add(answer, results);
        }
    }

    /// The user said something: what the model does now is no repetition.
    pub(crate) fn user_spoke(&mut self) {
        self.repeats = Repeats::default();
    }

    /// Tells once per scope that most of a limit is used.
    pub(crate) fn take_warning(&mut self) -> Option<String> {
        let warnings: Vec<String> = self.scopes_mut().filter_map(Budget::take_warning).collect();
        (!warnings.is_empty()).then(|| warnings.join("\n"))
    }

    fn repeated(&self) -> Option<ReachedLimit> {
        let limits = self.scopes().filter_map(|budget| budget.limits.max_repeats);
        let limit = limits.min()?;
        (self.repeats.count >= limit).then(|| ReachedLimit {
            kind: LimitKind::Repeats,
            value: number(limit),
        })
    }

    fn scopes(&self) -> impl Iterator<Item = &Budget> {
        // The narrower scope first, so that messages name its limit.
        self.prompt.iter().chain([&self.session])
    }

    fn scopes_mut(&mut self) -> impl Iterator<Item = &mut Budget> {
        self.prompt.iter_mut().chain([&mut self.session])
    }
}

/// How often the newest calls were made in a row with the same results.
#[derive(Debug, Clone, Copy, Default)]
struct Repeats {
    /// A hash of calls and results.
    newest: u64,
    count: u64,
}

impl Repeats {
    fn add(&mut self, answer: &Message, results: &[Arc<Message>]) {
        // Compared within this process only, so the hash need not be stable as in `record`.
        let mut hasher = DefaultHasher::new();
        for call in answer
            .as_assistant()
            .iter()
            .flat_map(|answer| answer.tool_calls())
        {
            call.name.hash(&mut hasher);
            // The order of members counts: two ways to write the same arguments are two calls.
            serde_json::to_string(&call.arguments)
                .unwrap_or_default()
                .hash(&mut hasher);
        }
        for result in results {
            if let Message::ToolResult(result) = result.as_ref() {
                result.is_error.hash(&mut hasher);
                serde_json::to_string(&result.content)
                    .unwrap_or_default()
                    .hash(&mut hasher);
            }
        }
        let newest = hasher.finish();
        // The count tells a first turn from one whose hash happens to be the initial 0.
        self.count = if self.count > 0 && self.newest == newest {
            self.count + 1
        } else {
            1
        };
        self.newest = newest;
    }
}
