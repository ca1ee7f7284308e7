//! The machine of a session: the turn loop, and what it holds back while hooks run. An event with subscribers that may answer leaves
//! when they are done, and so does everything after it. Without subscribers every effect leaves at once.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

use wire::{AssistantMessage, Event, Message, ToolResult, Usage};

use crate::batch::ABORTED;
use crate::budget::RunBudget;
use crate::effect::Effect;
use crate::hooks::{BEFORE_SETTLE, HookPoint, Hooks, HooksOutcome, MESSAGE_END, Subscriptions};
use crate::input::{Change, Input, ModelInput, ToolInput, Verdict};
use crate::phase::{Activity, Next, Phase};
use crate::settings::LoopSettings;
use crate::turn_loop::TurnLoop;

/// The state of one session. Only [`Machine::step`] changes it, so the inputs of a session are all there is to know of it.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    turn_loop: TurnLoop,
    gate: Gate,
}

impl Deref for Machine {
    type Target = TurnLoop;

    fn deref(&self) -> &TurnLoop {
        &self.turn_loop
    }
}

/// What waits for hooks.
#[derive(Debug, Clone, Default)]
struct Gate {
    /// Hooks that everything after them waits for.
    pending: Option<(u64, Pending)>,
    /// Effects that wait, in order.
    held: VecDeque<Effect>,
    /// An answer that hooks look at, before its calls count.
    answer: Option<(u64, AssistantMessage, Verdict)>,
    /// A complete answer that came while effects of its beginning wait.
    complete: Option<(AssistantMessage, Verdict)>,
    /// The answer that is stored next has been shown to hooks.
    is_answer_shown: bool,
    /// The message that hooks have seen and that is announced next.
    shown: Option<Arc<Message>>,
    /// Hooks want one more request.
    goes_on: bool,
    /// Hooks have been asked whether the session may settle.
    has_asked: bool,
    /// So many of the next ends of runs are not continued: they were held back when the client aborted.
    stopped: usize,
    /// The turn of the run, from 0, as far as effects have left.
    turn: u64,
}

/// What happens once hooks are done.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Pending {
    /// Clients receive the event.
    Event(Event),
    /// The message is stored.
    Message(Arc<Message>),
    /// The session settles, or goes on.
    Settle(bool),
}

impl Gate {
    fn is_holding(&self) -> bool {
        self.pending.is_some() || !self.held.is_empty() || self.complete.is_some()
    }

    /// How many runs have ended and not settled: hooks decide about them, or they are held back.
    fn unsettled(&self) -> usize {
        let settles = |effect: &&Effect| matches!(effect, Effect::Emit(Event::AgentSettled { .. }));
        let is_decided = matches!(self.pending, Some((_, Pending::Settle(_))));
        self.held.iter().filter(settles).count() + usize::from(is_decided)
    }

    /// Takes out the starts of calls that are held back.
    fn take_starts(&mut self) -> Vec<usize> {
        let started = |effect: &Effect| match effect {
            Effect::RunTool(slot) => Some(*slot),
            _ => None,
        };
        let slots = self.held.iter().filter_map(started).collect();
        self.held.retain(|effect| started(effect).is_none());
        slots
    }

    /// Everything that follows waits for these hooks.
    fn wait(&mut self, pending: Pending, point: HookPoint, hooks: &mut Hooks, out: &mut Vec<Effect>) {
        let ticket = hooks.ticket();
        self.pending = Some((ticket, pending));
        out.push(Effect::RunHooks(ticket, point));
    }

    /// An event leaves: its subscribers receive it before clients do.
    fn pass_event(&mut self, event: Event, hooks: &mut Hooks, out: &mut Vec<Effect>) {
        // Read before the event counts: `turn_end` belongs to the turn that it ends.
        let turn = self.turn;
        match &event {
            Event::AgentStart => self.turn = 0,
            Event::TurnEnd { .. } => self.turn += 1,
            Event::MessageEnd { message } if is_it(self.shown.as_ref(), message) => {
                // Subscribers have seen it, and changed it perhaps.
                self.shown = None;
                return out.push(Effect::Emit(event));
            }
            _ => {}
        }
        let name = event.name();
        if hooks.hear(name) && is_awaited(&event) {
            let point = HookPoint::Event {
                event: event.clone(),
                turn,
            };
            self.wait(Pending::Event(event), point, hooks, out);
        } else if hooks.tell(name) {
            out.push(Effect::Tell(event, turn));
        } else {
            out.push(Effect::Emit(event));
        }
    }

    /// A message is to be stored: subscribers see it before, unless they have.
    fn pass_message(&mut self, message: Arc<Message>, hooks: &mut Hooks, out: &mut Vec<Effect>) {
        // Hooks have seen it in `on_complete`, so its `message_end` is not held back either.
        if self.is_answer_shown && message.as_assistant().is_some() {
            self.is_answer_shown = false;
            self.shown = Some(Arc::clone(&message));
        } else if hooks.hear(MESSAGE_END) {
            let point = HookPoint::Message(Arc::clone(&message));
            return self.wait(Pending::Message(message), point, hooks, out);
        }
        out.push(Effect::Persist(message));
    }

    /// The run is aborted: an event is not held back any more. Messages and the question whether the session may settle get
    /// a moment, since the caller bounds how long hooks may take then.
    fn withdraw_event(&mut self, out: &mut Vec<Effect>) {
        let is_event = |pending: &mut (u64, Pending)| matches!(pending.1, Pending::Event(_));
        if let Some((ticket, Pending::Event(event))) = self.pending.take_if(is_event) {
            out.extend([Effect::CancelHooks(ticket), Effect::Emit(event)]);
        }
    }
}

/// Returns true if client and run wait for the subscribers of an event.
fn is_awaited(event: &Event) -> bool {
    // Updates stream in, and a handler may take seconds (docs/internals/decisions/15-handlers-before-clients.md).
    !matches!(
        event,
        Event::MessageUpdate { .. } | Event::ToolExecutionUpdate { .. }
    )
}

fn is_in(messages: &[Arc<Message>], message: &Arc<Message>) -> bool {
    messages.iter().rev().any(|known| Arc::ptr_eq(known, message))
}

fn is_it(known: Option<&Arc<Message>>, message: &Arc<Message>) -> bool {
    known.is_some_and(|known| Arc::ptr_eq(known, message))
}

impl Machine {
    /// A machine for a conversation that exists already.
    #[must_use]
    pub fn new(settings: LoopSettings, messages: Vec<Arc<Message>>) -> Self {
        Self {
            turn_loop: TurnLoop::new(settings, messages),
            gate: Gate::default(),
        }
    }

    /// Takes an input at a time (Unix milliseconds) and appends the effects that follow. While hooks run that the run waits for, what
    /// follows is held back.
    pub fn step(&mut self, input: Input, now: i64, out: &mut Vec<Effect>) {
        // Without subscribers no effect is held back or copied: hooks cost a session nothing that has none.
        // Hooks lose their subscription when their process is given up (`cut_off` in `session`). An answer that they look at then still
        // gets its `HooksDone`, which only the path below takes.
        if self.turn_loop.hooks.are_unused() && !self.gate.is_holding() && self.gate.answer.is_none() {
            let is_change = matches!(input, Input::Change(_));
            self.advance(input, now, out);
            self.end_prompt();
            if is_change {
                // Subscribers may have come in the middle of a run.
                self.gate.turn = self.turn_loop.phase.run().map_or(0, |run| run.turns);
            }
            return;
        }
        match input {
            Input::HooksDone(ticket, outcome) => self.on_hooks_done(ticket, outcome, now, out),
            Input::Abort => self.on_abort(now, out),
            Input::Model(ModelInput::Finished(answer, verdict)) => self.on_complete(answer, verdict, now),
            Input::Change(change) => {
                if matches!(change, Change::Open { .. }) {
                    // Hooks that the former session waited for must not answer in this one.
                    self.gate = Gate::default();
                }
                let unstored = match change {
                    Change::Conversation(_) => self.unstored(),
                    _ => Vec::new(),
                };
                self.hold(change.into(), now);
                self.turn_loop.conversation.append_unstored(unstored);
                if self.turn_loop.hooks.are_unused() {
                    // What subscribers wanted that are gone does not count any more.
                    self.gate.goes_on = false;
                    self.gate.has_asked = false;
                }
            }
            other => self.hold(other, now),
        }
        self.release(now, out);
    }

    /// Returns true while what follows is held back until hooks are done.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.gate.is_holding()
    }

    /// Returns true if nothing is under way, and hooks hold back the end of no run.
    #[must_use]
    pub fn has_settled(&self) -> bool {
        self.turn_loop.is_idle() && self.gate.unsettled() == 0
    }

    /// Returns true if a run is active that [`Input::Abort`] may end and [`Input::Continue`] resume. Limits and a result that belong to its
    /// prompt alone would not hold for the rest of it.
    #[must_use]
    pub fn can_be_interrupted(&self) -> bool {
        self.turn_loop.activity().is_running()
            && !self.turn_loop.aborted
            && !self.turn_loop.budget.has_prompt_limits()
            && !self.turn_loop.output.is_expected()
    }

    /// Returns true if the model can be asked once more because the last run died.
    #[must_use]
    pub fn can_continue(&self) -> bool {
        self.turn_loop.is_idle() && self.turn_loop.conversation.lacks_answer()
    }

    /// Returns true if [`Input::Continue`] would begin a run. `can_continue` asks for more: a message of the user or a result. A run that
    /// was interrupted may have begun with a message of an extension.
    #[must_use]
    pub fn can_resume(&self) -> bool {
        self.turn_loop.is_idle() && self.turn_loop.conversation.can_be_asked()
    }

    /// Returns true once the caller has given the rules of this branch.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        self.turn_loop.rules.are_set()
    }

    /// The hook points that have subscribers.
    #[must_use]
    pub fn subscriptions(&self) -> &Subscriptions {
        self.turn_loop.hooks.subscribed()
    }

    /// Carries out an input, and counts the time of active runs.
    fn advance(&mut self, input: Input, now: i64, out: &mut Vec<Effect>) {
        // Before the input, so that the time until now counts for the run that was active until now.
        self.turn_loop.budget.tick(now);
        self.turn_loop.phase.tick(now);
        self.turn_loop.step(input, now, out);
        let is_active = !self.turn_loop.is_idle();
        self.turn_loop.budget.set_active(is_active, now);
    }

    /// The limits of the prompt end with its last run. A run that hooks want is active by the time that the session would be idle.
    fn end_prompt(&mut self) {
        if self.turn_loop.is_idle() {
            self.turn_loop.budget.end_prompt();
        }
    }

    /// Limits, and how much is used of them.
    #[must_use]
    pub fn budget(&self) -> &RunBudget {
        &self.turn_loop.budget
    }

    /// When the active run reaches its limit of time, in Unix milliseconds: the caller aborts it then.
    #[must_use]
    pub fn deadline(&self) -> Option<i64> {
        // None after an abort: the run is ending already.
        self.budget().deadline().filter(|_| !self.turn_loop.aborted)
    }

    /// Carries out an input; its effects follow the effects that wait.
    fn hold(&mut self, input: Input, now: i64) {
        let mut effects = Vec::new();
        self.advance(input, now, &mut effects);
        self.gate.held.extend(effects);
    }

    /// Ends the run. Effects that are held back leave as before, except the starts of tool calls: after an abort none begins
    /// (GUARANTEES.md, 3).
    /// A request that leaves is cancelled right behind.
    fn on_abort(&mut self, now: i64, out: &mut Vec<Effect>) {
        // The event is older than everything that is held, so it leaves first.
        self.gate.withdraw_event(out);
        self.gate.stopped = self.gate.unsettled();
        let unstarted = self.gate.take_starts();
        self.hold(Input::Abort, now);
        for slot in unstarted {
            // For the turn loop the call runs, so its turn waits for this report.
            let done = ToolInput::Done {
                result: ToolResult::error(ABORTED),
                is_error: true,
                duration_ms: 0,
            };
            self.hold(Input::Tool(slot, done), now);
        }
    }

    /// Messages of the conversation that hooks keep from the file. Who reads the file does not find them.
    fn unstored(&self) -> Vec<Arc<Message>> {
        let pending = self.gate.pending.iter().filter_map(|(_, pending)| match pending {
            Pending::Message(message) => Some(message),
            _ => None,
        });
        let held = self.gate.held.iter().filter_map(|effect| match effect {
            Effect::Persist(message) => Some(message),
            _ => None,
        });
        // Failed answers have left the conversation by now.
        let known = self.turn_loop.conversation.messages();
        let is_known = |message: &&Arc<Message>| is_in(known, message);
        pending.chain(held).filter(is_known).map(Arc::clone).collect()
    }

    /// Lets effects leave until an effect waits for hooks.
    fn release(&mut self, now: i64, out: &mut Vec<Effect>) {
        while self.gate.pending.is_none() {
            // Held effects go first: they are about the time before the answer was complete.
            if let Some(effect) = self.gate.held.pop_front() {
                self.pass(effect, out);
            } else if let Some((answer, verdict)) = self.gate.complete.take() {
                self.on_complete(answer, verdict, now);
            } else {
                break;
            }
        }
    }

    fn pass(&mut self, effect: Effect, out: &mut Vec<Effect>) {
        let hooks = &mut self.turn_loop.hooks;
        match effect {
            Effect::Emit(Event::AgentSettled { aborted }) => self.pass_settled(aborted, out),
            Effect::Emit(event) => self.gate.pass_event(event, hooks, out),
            Effect::Persist(message) => self.gate.pass_message(message, hooks, out),
            Effect::CallModel => {
                // The request is made. If hooks of `turn_end` wanted one more, this is it.
                self.gate.goes_on = false;
                out.push(Effect::CallModel);
            }
            Effect::Idle => {
                self.end_prompt();
                out.push(Effect::Idle);
            }
            other => out.push(other),
        }
    }

    /// An answer is complete: hooks may replace it before its calls count. Events about its beginning come first. An answer
    /// that never began is shown when it is stored.
    fn on_complete(&mut self, answer: AssistantMessage, verdict: Verdict, now: i64) {
        // Without a start, subscribers must get `message_start` first, which the turn loop sends together with the answer.
        if !self.turn_loop.hooks.hear(MESSAGE_END)
            || self.activity() != (Activity::Asking { has_begun: true })
        {
            return self.hold(Input::Model(ModelInput::Finished(answer, verdict)), now);
        }
        if self.gate.pending.is_some() || !self.gate.held.is_empty() {
            self.gate.complete = Some((answer, verdict));
            return;
        }
        let ticket = self.turn_loop.hooks.ticket();
        // A copy stays here: hooks that change nothing do not give the answer back.
        let point = HookPoint::Answer(answer.clone());
        self.gate.answer = Some((ticket, answer, verdict));
        self.gate.held.push_back(Effect::RunHooks(ticket, point));
    }

    fn on_hooks_done(&mut self, ticket: u64, outcome: HooksOutcome, now: i64, out: &mut Vec<Effect>) {
        if let Some((_, pending)) = self.gate.pending.take_if(|(own, _)| *own == ticket) {
            return self.on_waited(pending, outcome, out);
        }
        match self.gate.answer.take_if(|(own, _, _)| *own == ticket) {
            Some((_, answer, verdict)) => {
                let answer = match outcome {
                    HooksOutcome::Answer(mut replacement) => {
                        // The provider bills the request also if hooks replace its answer, and limits count what it used.
                        if replacement.usage == Usage::default() {
                            replacement.usage = answer.usage;
                        }
                        replacement
                    }
                    _ => answer,
                };
                self.gate.is_answer_shown = true;
                self.hold(Input::Model(ModelInput::Finished(answer, verdict)), now);
            }
            // The turn loop asked about a call or a compaction, or the answer is late: it knows its tickets.
            None => self.hold(Input::HooksDone(ticket, outcome), now),
        }
    }

    /// The hooks are done that everything waited for.
    fn on_waited(&mut self, pending: Pending, outcome: HooksOutcome, out: &mut Vec<Effect>) {
        // Kept until the session would settle: hooks of `turn_end` may want one more request, too.
        self.gate.goes_on |= matches!(outcome, HooksOutcome::Continue);
        match pending {
            Pending::Event(event) => out.push(Effect::Emit(event)),
            Pending::Settle(aborted) => self.pass_settled(aborted, out),
            Pending::Message(mut message) => {
                if let HooksOutcome::Message(new) = outcome {
                    // A failed answer may have left the conversation for a retry by now. It is stored and announced all the same.
                    if let Some(newer) = self.turn_loop.conversation.replace(&message, &new) {
                        self.turn_loop.phase.replace(&message, &new, newer);
                    }
                    // Held effects still name the original, which must reach neither the file nor clients.
                    for effect in &mut self.gate.held {
                        effect.replace(&message, &new);
                    }
                    message = new;
                }
                // Its `message_end` follows and must not ask the same hooks again.
                self.gate.shown = Some(Arc::clone(&message));
                out.push(Effect::Persist(message));
            }
        }
    }

    /// The run is over and the session would settle, unless hooks want one more request.
    fn pass_settled(&mut self, aborted: bool, out: &mut Vec<Effect>) {
        let hooks = &mut self.turn_loop.hooks;
        // The answer of the hooks leads here a second time; the flag tells it from the first.
        if !std::mem::replace(&mut self.gate.has_asked, true) && hooks.hear(BEFORE_SETTLE) {
            let point = HookPoint::Settle { aborted };
            return self.gate.wait(Pending::Settle(aborted), point, hooks, out);
        }
        self.gate.has_asked = false;
        let goes_on = std::mem::take(&mut self.gate.goes_on);
        // The abort may have come when the run had ended, while hooks held back that the session settles.
        let is_stopped = aborted || self.gate.stopped > 0;
        self.gate.stopped = self.gate.stopped.saturating_sub(1);
        // After an abort nothing begins (GUARANTEES.md, 3). Something else may have begun meanwhile.
        if goes_on && !is_stopped && self.turn_loop.is_idle() {
            let limit = self.turn_loop.budget.reached();
            if self.turn_loop.conversation.can_be_asked() && limit.is_none() {
                // It is a run of its own, so it may recover from an overflow once, too.
                self.turn_loop.recovery.overflowed = false;
                // As before a prompt: a full context is compacted first. No `agent_settled`, since the session goes on.
                self.turn_loop.phase = Phase::Checking(Next::Run(Vec::new()));
                return self.gate.held.push_back(Effect::CheckContext);
            }
            let why = match limit {
                Some(_) => "a limit is reached, so the model is not asked again",
                None => "there is nothing to answer: the conversation ends with an answer",
            };
            out.push(Effect::HooksFailed(BEFORE_SETTLE, why));
        }
        let settled = Event::AgentSettled { aborted };
        self.gate.pass_event(settled, &mut self.turn_loop.hooks, out);
    }
}
