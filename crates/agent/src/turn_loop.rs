//! The turn loop: what follows what (pi-core.md 1.3 to 1.9, behaviour.md 2 and 3).

use std::sync::Arc;

use wire::event::CompactionReason;
use wire::run_limits::ReachedLimit;
use wire::state::InterruptMode;
use wire::{AssistantMessage, Event, Message, StopReason};

use crate::batch::{Batch, Refusal};
use crate::budget::RunBudget;
use crate::conversation::Conversation;
use crate::effect::Effect;
use crate::hooks::{Hooks, HooksOutcome};
use crate::input::{Input, ModelInput, ToolInput, Verdict};
use crate::nested::is_nested;
use crate::output::{Ending, MISSING_MESSAGE, Output};
use crate::phase::{Activity, Next, Phase, Recovery, Run, RunStart};
use crate::queue::{QueueKind, Queues};
use crate::settings::{FailureRules, LoopSettings};
use crate::stream_rules::StreamRules;
use crate::todo::Todos;
use crate::ttsr::hidden;

/// The type of the message that tells the model that most of a limit is used.
const LIMIT_MESSAGE: &str = "limit-warning";
/// Why there is no retry after an abort in the wait before it.
pub(crate) const RETRY_CANCELLED: &str = "Retry cancelled";

/// What follows what in one session, as if nothing had to wait for hooks. A [`Machine`](crate::Machine) gives it inputs and lets its
/// effects leave.
#[derive(Debug, Clone, Default)]
pub struct TurnLoop {
    pub(crate) settings: LoopSettings,
    pub(crate) conversation: Conversation,
    pub(crate) queues: Queues,
    pub(crate) phase: Phase,
    /// Attempts to make the current prompt succeed.
    pub(crate) recovery: Recovery,
    /// The result that the run must give, if it must.
    pub(crate) output: Output,
    pub(crate) todos: Todos,
    pub(crate) rules: StreamRules,
    /// A run was told to begin; `agent_settled` must follow when nothing comes after it.
    pub(crate) has_run: bool,
    /// Which hook points have subscribers.
    pub(crate) hooks: Hooks,
    /// Limits, and how much is used of them.
    pub(crate) budget: RunBudget,
    /// Was the current work aborted? Nothing may begin before the machine is idle again.
    pub(crate) aborted: bool,
}

impl TurnLoop {
    /// A loop for a conversation that exists already.
    pub(crate) fn new(settings: LoopSettings, messages: Vec<Arc<Message>>) -> Self {
        Self {
            settings,
            conversation: Conversation::new(messages),
            budget: RunBudget::new(settings.limits),
            ..Self::default()
        }
    }

    /// The settings of the loop.
    #[must_use]
    pub fn settings(&self) -> LoopSettings {
        self.settings
    }

    /// The todo list.
    #[must_use]
    pub fn todos(&self) -> &Todos {
        &self.todos
    }

    /// The conversation: finished messages only.
    #[must_use]
    pub fn messages(&self) -> &[Arc<Message>] {
        self.conversation.messages()
    }

    /// Is nothing going on?
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    /// What the session is doing.
    #[must_use]
    pub fn activity(&self) -> Activity {
        self.phase.activity()
    }

    /// Messages that wait.
    #[must_use]
    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    /// The result that the run must give, if it must.
    #[must_use]
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// Takes an input at a time (Unix milliseconds) and appends what follows.
    pub(crate) fn step(&mut self, input: Input, now: i64, out: &mut Vec<Effect>) {
        match input {
            // What begins something comes too late when something is under way.
            Input::Prompt { .. } | Input::Compact | Input::Move if !self.is_idle() => {}
            Input::Prompt {
                messages,
                full,
                limits,
                wants_result,
            } => {
                // Before the first request, which counts.
                self.budget.begin_prompt(limits);
                self.output = Output::of_prompt(wants_result);
                self.begin(messages, full, now, out);
            }
            Input::Fallback(fallback) => self.on_fallback(fallback, now, out),
            Input::Spent(spent) => self.budget.spend(spent),
            Input::Compact => {
                // Messages that waited before stay in their queues; only messages that come during the compaction start a run.
                let newest = self.queues.newest();
                self.compact(CompactionReason::Manual, Next::Rest(newest), out);
            }
            // As with a manual compaction: what waited before starts no run afterwards.
            Input::Move => self.phase = Phase::Moving(self.queues.newest()),
            Input::Moved { messages, aborted } => {
                let Phase::Moving(newest) = self.phase else { return };
                if let Some(messages) = messages {
                    self.conversation.set(messages, None);
                }
                self.go_on(Next::Rest(newest), aborted, now, out);
            }
            Input::Compacted(outcome) => self.on_compacted(outcome, now, out),
            Input::Context(full) => self.on_context(full, now, out),
            input @ (Input::Enqueue(..)
            | Input::ClearQueue
            | Input::EditQueued(..)
            | Input::RemoveQueued(_)) => out.extend(self.queues.take(input).map(Effect::Emit)),
            Input::Continue { full } => {
                if self.is_idle() && self.conversation.can_be_asked() {
                    // As with a retry, failed answers stay in the file but leave the conversation.
                    self.conversation.drop_failed();
                    self.budget.user_spoke();
                    self.output.resume();
                    self.begin(Vec::new(), full, now, out);
                }
            }
            Input::Abort => self.abort(now, out),
            Input::AbortRetry => self.abort_retry(false, now, out),
            Input::RetryDue => {
                if let Some(start) = self.phase.end_delay() {
                    self.start_run(start, now, out);
                }
            }
            Input::Join(messages) => self.phase.join(messages, self.queues.newest()),
            Input::Change(change) => self.change(change, now, out),
            Input::Model(input) => self.on_model(input, now, out),
            Input::Tool(slot, input) => self.on_tool(slot, input, now, out),
            Input::HooksDone(ticket, outcome) => self.on_hooks_done(ticket, outcome, now, out),
            Input::Nest(call) => self.phase.nest(call, self.aborted, &mut self.budget, out),
            Input::WithdrawNested(request) => self.phase.withdraw_nested(request, out),
        }
    }

    /// How many calls of tools are open, if the call with this id may make one.
    #[must_use]
    pub fn nested_calls(&self, parent: &str) -> Option<usize> {
        match &self.phase {
            Phase::Tools(_, batch) if batch.may_nest(parent) => Some(batch.nested.len()),
            _ => None,
        }
    }

    /// Begins a run with these messages; a context that is full is compacted first.
    pub(crate) fn begin(&mut self, prompts: Vec<Arc<Message>>, full: bool, now: i64, out: &mut Vec<Effect>) {
        // The one compaction after an overflow is per prompt.
        self.recovery.overflowed = false;
        if full {
            // The prompt is stored and acknowledged after the compaction, as in pi (GUARANTEES.md, 4).
            self.compact(CompactionReason::Threshold, Next::Run(prompts), out);
        } else {
            self.start_run(prompts.into(), now, out);
        }
    }

    /// Begins a run and its first turn with these messages.
    pub(crate) fn open_run(
        &mut self,
        interrupt_mode: InterruptMode,
        prompts: Vec<Arc<Message>>,
        out: &mut Vec<Effect>,
    ) -> Run {
        let mut run = Run::new(interrupt_mode);
        self.has_run = true;
        out.push(Effect::Emit(Event::AgentStart));
        out.push(Effect::Emit(Event::TurnStart));
        for message in prompts {
            self.say(&mut run, message, out);
        }
        run
    }

    pub(crate) fn start_run(&mut self, start: RunStart, now: i64, out: &mut Vec<Effect>) {
        let RunStart { messages, newest } = start;
        let mut run = self.open_run(self.settings.interrupt_mode, messages, out);
        // Steering that waits goes out with the first request of the run, not after its first turn.
        let due = self.queues.due(QueueKind::Steering, self.settings.steering_mode);
        let steering = due.min(self.queues.steering_until(newest));
        self.deliver(&mut run, QueueKind::Steering, steering, out);
        self.ask(run, now, out);
    }

    /// A message that is complete as soon as it begins.
    pub(crate) fn say(&mut self, run: &mut Run, message: Arc<Message>, out: &mut Vec<Effect>) {
        out.push(Effect::Emit(Event::MessageStart {
            message: Arc::clone(&message),
        }));
        self.complete(run, message, out);
    }

    /// A message is complete: on disk first, then told.
    fn complete(&mut self, run: &mut Run, message: Arc<Message>, out: &mut Vec<Effect>) {
        // Counts per message of the user begin anew: the recovery from an overflow, reminders, repeated calls.
        if matches!(*message, Message::User(_)) {
            self.recovery.user_spoke();
            self.todos.user_spoke();
            self.budget.user_spoke();
        }
        out.push(Effect::Persist(Arc::clone(&message)));
        out.push(Effect::Emit(Event::MessageEnd {
            message: Arc::clone(&message),
        }));
        self.conversation.push(Arc::clone(&message));
        run.added.push(message);
    }

    /// Begins the oldest messages of a queue; the event of the shorter queue precedes each (behaviour.md 2.11).
    pub(crate) fn deliver(&mut self, run: &mut Run, kind: QueueKind, count: usize, out: &mut Vec<Effect>) {
        for _ in 0..count {
            if let Some(item) = self.queues.pop(kind) {
                if item.is_shown() {
                    out.push(Effect::Emit(self.queues.event()));
                }
                self.say(run, item.message, out);
            }
        }
    }

    /// Asks the model, unless a limit is reached.
    pub(crate) fn ask(&mut self, mut run: Run, now: i64, out: &mut Vec<Effect>) {
        // Between requests, so that a limit never cuts an answer off in the middle.
        if let Some(limit) = self.budget.reached() {
            return self.end_unanswered_turn(run, Ending::at_limit(Some(limit)), now, out);
        }
        if let Some(reminder) = self.output.take_reminder() {
            self.say(&mut run, Arc::new(hidden(MISSING_MESSAGE, reminder, now)), out);
        }
        if let Some(warning) = self.budget.take_warning() {
            self.say(&mut run, Arc::new(hidden(LIMIT_MESSAGE, warning, now)), out);
        }
        // After the looks at limits and warnings, which are about earlier requests.
        self.budget.asked();
        self.phase = Phase::Asking(run, false);
        self.rules.begin_request();
        out.push(Effect::CallModel);
    }

    fn on_model(&mut self, input: ModelInput, now: i64, out: &mut Vec<Effect>) {
        // `Idle` for the moment only: every arm puts a phase back, or gives the run to a method that does.
        match (input, std::mem::replace(&mut self.phase, Phase::Idle)) {
            // Clients get one `message_start` per answer: a second start of the same request falls through to the last arm.
            (ModelInput::Started(message), Phase::Asking(run, false)) => {
                out.push(Effect::Emit(Event::MessageStart {
                    message: message.into(),
                }));
                self.phase = Phase::Asking(run, true);
            }
            // Only after a start: without one clients have no message to add to.
            (ModelInput::Update(assistant_message_event, usage), Phase::Asking(run, true)) => {
                // After an abort the request ends by itself, and no rule may begin another run.
                let stops = !self.aborted;
                let matched = stops.then(|| self.rules.on_update(&assistant_message_event));
                out.push(Effect::Emit(Event::MessageUpdate {
                    usage,
                    assistant_message_event,
                }));
                self.phase = Phase::Asking(run, true);
                // The request still ends like every other; `tell_rules` follows then.
                if let Some(rules) = matched.flatten() {
                    out.extend([Effect::Emit(Event::TtsrTriggered { rules }), Effect::CancelModel]);
                }
            }
            (ModelInput::Finished(answer, verdict), Phase::Asking(run, started)) => {
                self.on_answer(run, started, answer, verdict, now, out);
            }
            // A request that no run waits for any more may still report.
            (_, phase) => self.phase = phase,
        }
    }

    fn on_answer(
        &mut self,
        mut run: Run,
        started: bool,
        mut answer: AssistantMessage,
        verdict: Verdict,
        now: i64,
        out: &mut Vec<Effect>,
    ) {
        // Before anything can end the run: the tokens of a failed or aborted answer were used all the same.
        self.budget.answered(&answer.usage);
        let rules = self.rules.end_request();
        if (self.aborted || !rules.is_empty()) && !answer.failed() {
            // The answer won the race against the abort; nothing may follow from it all the same.
            answer.stop_reason = StopReason::Aborted;
            // Without a full stop, as for an abort after the beginning of the response (behaviour.md 3.6).
            answer.error_message = Some("Request was aborted".to_owned());
        }
        let message: Arc<Message> = answer.clone().into();
        // A request that failed at once never started. Clients still get a start before each end.
        if !started {
            out.push(Effect::Emit(Event::MessageStart {
                message: Arc::clone(&message),
            }));
        }
        self.complete(&mut run, Arc::clone(&message), out);
        // An answer that found no room is as good as none.
        let failed = answer.failed() || verdict == Verdict::Overflow;
        if !failed {
            self.recovery.overflowed = false;
        }
        // pi ends retries with any answer that is no error. It knows no rules, whose next answer may still fail.
        let is_answer = answer.stop_reason != StopReason::Error && (rules.is_empty() || self.aborted);
        if !failed || is_answer && self.settings.failures != FailureRules::General {
            // Before `turn_end`, as in pi (behaviour.md 7.2).
            out.extend(self.recovery.end_retries(None).map(Effect::Emit));
        }
        if failed {
            run.turns += 1;
            out.push(Effect::Emit(Event::TurnEnd {
                message,
                // Its calls never run, so the turn has no results (pi-core.md 1.3).
                tool_results: Vec::new(),
            }));
            // Rules come before a retry: an answer that fails after the match was stopped by them all the same.
            // An abort wins over the rules that stopped the answer, since `tell_rules` would begin another run.
            if rules.is_empty() || self.aborted {
                if verdict == Verdict::Discarded && !self.aborted {
                    self.conversation.drop_failed_answer();
                }
                let verdict = self.recovery.weigh_quota(verdict, self.settings.retry);
                self.end_run(run, &answer, verdict, now, out);
            } else {
                self.tell_rules(run, &rules, now, out);
            }
            return;
        }
        // The calls of the answer decide whether tools run, and not its stop reason (pi-core.md 1.3).
        let mut batch = Box::new(Batch::new(message, &answer, self.settings.results, now));
        if answer.stop_reason == StopReason::Length {
            // These calls never start, so they use up nothing of the limit of tool calls.
            batch.refuse_rest(Refusal::CutOff, out);
        } else {
            // Counted before the first call runs, so that calls which tools make meanwhile see the rest.
            self.budget.called(batch.limit(self.budget.calls_left()));
        }
        self.advance(run, batch, false, now, out);
    }

    fn on_tool(&mut self, slot: usize, input: ToolInput, now: i64, out: &mut Vec<Effect>) {
        let (run, mut batch) = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Tools(run, batch) => (run, batch),
            // A call that was given up may report after its batch.
            phase => {
                self.phase = phase;
                return;
            }
        };
        let mut ended = false;
        match input {
            // This arm is the first one, because numbers of nested calls are no positions in the answer.
            input if is_nested(slot) => batch.nested.on_input(slot, input, &mut self.hooks, out),
            ToolInput::Repaired(arguments) => batch.repair(slot, arguments),
            ToolInput::Prepared(outcome) => {
                batch.on_prepared(slot, outcome, self.aborted, &mut self.hooks, out);
            }
            ToolInput::Decided(decision) => batch.on_decided(slot, decision, out),
            ToolInput::Progress(partial) => {
                if !self.aborted {
                    batch.on_progress(slot, partial, out);
                }
            }
            ToolInput::Done {
                result,
                is_error,
                duration_ms,
            } => {
                // With the result of the tool, before hooks change it: they review texts, not the value of the run.
                self.output.call_ended(slot, batch.tool(slot), &result);
                ended = batch.on_done(slot, result, is_error, duration_ms, &mut self.hooks, out);
            }
        }
        self.advance(run, batch, ended, now, out);
    }

    /// The hooks of a call or a compaction are done.
    fn on_hooks_done(&mut self, ticket: u64, outcome: HooksOutcome, now: i64, out: &mut Vec<Effect>) {
        if self.hooks.ends_compaction(ticket) {
            out.push(match (outcome, self.activity()) {
                (HooksOutcome::Compacted(made), _) => Effect::EndCompaction(Some(made)),
                (HooksOutcome::Cancel, _) => Effect::EndCompaction(None),
                (_, Activity::Compacting { reason, .. }) => Effect::Compact(reason),
                _ => Effect::EndCompaction(None),
            });
            return;
        }
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Tools(run, mut batch) => {
                let ended = batch.on_hooks_done(ticket, outcome, out);
                self.advance(run, batch, ended, now, out);
            }
            phase => self.phase = phase,
        }
    }

    /// Takes a batch as far as it can go without further news. Steering that waits when a call has `ended` may skip the calls that
    /// are left.
    pub(crate) fn advance(
        &mut self,
        mut run: Run,
        mut batch: Box<Batch>,
        ended: bool,
        now: i64,
        out: &mut Vec<Effect>,
    ) {
        // The mode of the run, since a change during it counts from the next run on.
        let immediate = run.interrupt_mode == InterruptMode::Immediate;
        let steered = immediate && self.queues.has_steering() || self.queues.interrupts();
        if ended && steered && !self.aborted && !batch.is_interrupted() {
            batch.stop(Refusal::Steered, out);
        }
        if self.aborted {
            // In the order of the calls: ready calls come before calls that were not announced.
            batch.refuse_ready(Refusal::Aborted, out);
            batch.refuse_rest(Refusal::Aborted, out);
        }
        // Only when the calls within the limit are prepared, so that the events of all calls keep their order.
        if batch.is_at_limit() {
            batch.refuse_rest(Refusal::Limit, out);
        }
        // Stored and sent when their calls ended.
        for result in batch.early.join() {
            self.conversation.push(Arc::clone(&result));
            run.added.push(result);
        }
        if batch.is_done() {
            self.end_turn(run, *batch, now, out);
            return;
        }
        // All calls are prepared before the first one runs, as in pi (pi-core.md 1.5).
        if batch.all_prepared() {
            batch.start_ready(out);
        } else {
            batch.announce_next(out);
        }
        self.phase = Phase::Tools(run, batch);
    }

    fn end_turn(&mut self, mut run: Run, mut batch: Batch, now: i64, out: &mut Vec<Effect>) {
        let message = run.repair(&batch, &mut self.conversation);
        let answered = batch.is_empty();
        // Results that ask the loop to stop leave queued messages to be delivered (pi-core.md 1.3); `has_more` counts these.
        run.goes_on = !answered && !batch.terminates();
        let is_over = batch.is_over_limit();
        // Taken out first: `results` consumes the batch, and nested calls end after its results.
        let mut nested = std::mem::take(&mut batch.nested);
        let told: Vec<_> = batch.early.messages().map(Arc::clone).collect();
        let results = batch.results(now);
        if told.is_empty() {
            for result in &results {
                self.say(&mut run, Arc::clone(result), out);
            }
        }
        // Messages from outside waited for the results.
        self.conversation.end_calls();
        if !answered {
            nested.end(out);
            out.push(Effect::ForgetTools);
        }
        run.turns += 1;
        if !answered {
            self.budget.turn_ended(&message, &results);
        }
        let has_more = !self.queues.is_empty() || self.rules.have_notes();
        // This may keep the run going: a model that owes a result is asked again, unless messages wait for it anyway.
        self.output.turn_ended(&mut run, &results, has_more);
        out.push(Effect::Emit(Event::TurnEnd {
            message: Arc::clone(&message),
            tool_results: if told.is_empty() { results } else { told },
        }));
        if self.aborted {
            // The abort comes in a turn of its own (pi-core.md 1.8): the calls of this turn have ended.
            out.push(Effect::Emit(Event::TurnStart));
            return self.end_unanswered_turn(run, Ending::ABORTED, now, out);
        }
        // A used-up limit of tool calls forbids no request. It ends the run only if the model wanted more calls than it may have.
        let beyond = is_over.then(|| self.budget.call_limit()).flatten();
        let limit = beyond.or_else(|| self.budget.reached());
        if run.goes_on || has_more {
            // Messages that wait stay in their queues, as after an abort.
            if limit.is_some() {
                return self.finish_run(run, Ending::at_limit(limit), out);
            }
            self.phase = Phase::Checking(Next::Turn(run));
        } else {
            // A tool that ends the run knows why.
            let is_asked = self.output.is_expected();
            let may_remind = answered && limit.is_none() && !is_asked;
            let most = self.settings.silent_answers;
            // `note_answer` comes first, since it counts the answers without text.
            let will_retry =
                may_remind && (self.recovery.note_answer(&message, most) || self.todos.wants_reminder());
            let ending = Ending {
                will_retry,
                ..Ending::default()
            };
            out.push(Effect::Emit(self.output.end(run, ending)));
            // The queues are empty, so any message that comes from here on is a new one.
            let next = if will_retry { Next::Remind } else { Next::Rest(0) };
            self.phase = Phase::Checking(next);
        }
        // Also between turns: unlike old pi, a long run is compacted before it fills the window (pi-core.md 3.2).
        out.push(Effect::CheckContext);
    }

    /// The next turn: first steering, and only when there is nothing else to do follow-ups.
    pub(crate) fn next_turn(&mut self, mut run: Run, now: i64, out: &mut Vec<Effect>) {
        if !run.goes_on && self.queues.is_empty() && !self.rules.have_notes() {
            // The queues were emptied meanwhile: there is nothing left to ask.
            self.finish_run(run, Ending::default(), out);
            return;
        }
        if let Some(limit) = self.budget.reached() {
            // The summary of a compaction used the rest.
            return self.finish_run(run, Ending::at_limit(Some(limit)), out);
        }
        // On delivery the order is `turn_start`, `queue_update`, `message_start` (pi-core.md 1.7).
        let (kind, count) = self.queues.next_due(&self.settings, run.goes_on);
        out.push(Effect::Emit(Event::TurnStart));
        self.deliver(&mut run, kind, count, out);
        // Notes are for the end of the run, so that messages of the user go first.
        if count == 0
            && !run.goes_on
            && let Some((message, entry)) = self.rules.tell_notes(now)
        {
            self.say(&mut run, Arc::new(message), out);
            out.push(Effect::Record(entry));
        }
        self.ask(run, now, out);
    }
}

/// Why no further retry follows: a limit, or else an abort.
pub(crate) fn no_retry(limit: Option<ReachedLimit>) -> String {
    match limit {
        Some(limit) => format!("Limit reached: {limit}"),
        None => RETRY_CANCELLED.to_owned(),
    }
}
