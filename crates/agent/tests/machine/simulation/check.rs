//! What must always hold: the checker follows inputs and effects and names violated rules.
//!
//! The rule for the conversation in memory: it is what the session file says, except that an answer which failed and is
//! tried again (retry, overflow) leaves memory and stays in the file. Rebuilding from the file (a kill, a compaction) brings
//! such answers back; only the ones that end a conversation which overflowed leave it at once again.

mod told;

use std::collections::VecDeque;
use std::sync::Arc;

use pinion_agent::{
    Activity, Change, Effect, FailureRules, HookPoint, Input, LoopSettings, Machine, ModelInput, ToolInput,
    Verdict, is_nested,
};
use wire::event::CompactionReason;
use wire::{AssistantMessage, Event, Message, StopReason};

use super::calls::Calls;
use super::hooked::Hooked;
use super::queues::Queues;

pub(crate) type Checked = Result<(), String>;

pub(crate) fn must(holds: bool, otherwise: &str) -> Checked {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

/// What has to come next, before anything else.
#[derive(Debug, Clone, PartialEq)]
enum Next {
    Anything,
    Told(Arc<Message>),
    Said(String),
    RetrySucceeded,
    /// Before the compaction after an overflow.
    RetryGivenUp,
    RetryStart,
    Timer(u64),
    CompactionStart(CompactionReason),
    Compact(CompactionReason),
    AgentStart,
    Idle,
}

/// A message that a turn has to begin with.
#[derive(Debug)]
enum Say {
    Prompt(Arc<Message>),
    Queued(String),
}

#[derive(Debug)]
struct Run {
    added: Vec<Arc<Message>>,
    turns: usize,
    /// Began for messages queued while no run could take them.
    queued: bool,
    immediate: bool,
    /// How much of the steering may go with the first turn, if a prompt joined the run before it began.
    steering: Option<usize>,
    answer: Option<Arc<Message>>,
    /// Tool results wait for the model.
    goes_on: bool,
}

/// A prompt that waits for the retry, and how much of the steering was there before it.
#[derive(Debug)]
struct Joined {
    messages: Vec<Arc<Message>>,
    steering: usize,
}

#[derive(Debug, Default)]
struct Turn {
    script: VecDeque<Say>,
    delivered: usize,
    asked: bool,
    answer: Option<Arc<Message>>,
    calls: Calls,
    results: Vec<Arc<Message>>,
}

#[derive(Debug)]
pub(crate) struct Checker {
    /// The conversation as it must be.
    pub(crate) expected: Vec<Arc<Message>>,
    /// In the file, but not in the conversation.
    pub(crate) left: Vec<Arc<Message>>,
    pub(crate) queues: Queues,
    pub(crate) settings: LoopSettings,
    given: Input,
    silent: bool,
    /// Something had been aborted when the input came.
    was_aborted: bool,
    next: Next,
    run: Option<Run>,
    turn: Option<Turn>,
    open: Option<Arc<Message>>,
    prompts: VecDeque<Arc<Message>>,
    asking: bool,
    retry: Option<u32>,
    /// A run has begun since the last `agent_settled`.
    has_run: bool,
    waiting: bool,
    joined: Option<Joined>,
    compaction: Option<CompactionReason>,
    moving: bool,
    /// A compaction made room for the run that overflowed.
    healed: bool,
    overflowed: bool,
    aborted: bool,
    /// The last run ended well, or there was none: a queued message must start one.
    rest: bool,
    fresh: usize,
    /// Questions to hooks, and calls that tools make.
    pub(crate) hooked: Hooked,
    /// Done todos that have to leave the list.
    pub(crate) cleared: usize,
    /// Situations that came up, for the test that they do.
    pub(crate) seen: Vec<&'static str>,
}

fn same(a: &[Arc<Message>], b: &[Arc<Message>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
}

fn good(message: &Message) -> Option<&AssistantMessage> {
    message.as_assistant().filter(|answer| !answer.failed())
}

impl Checker {
    pub(crate) fn new(settings: LoopSettings, expected: Vec<Arc<Message>>) -> Self {
        Self {
            expected,
            left: Vec::new(),
            queues: Queues::default(),
            settings,
            given: Input::Abort,
            silent: true,
            was_aborted: false,
            next: Next::Anything,
            run: None,
            turn: None,
            open: None,
            prompts: VecDeque::new(),
            asking: false,
            retry: None,
            has_run: false,
            waiting: false,
            joined: None,
            compaction: None,
            moving: false,
            healed: false,
            overflowed: false,
            aborted: false,
            rest: false,
            fresh: 0,
            hooked: Hooked::default(),
            cleared: 0,
            seen: Vec::new(),
        }
    }

    /// An input is about to be given; `noise`: it was not expected, so nothing may follow.
    pub(crate) fn begin(&mut self, input: &Input, machine: &Machine, noise: bool) {
        let busy = !machine.is_idle();
        self.given = input.clone();
        self.silent = noise;
        self.was_aborted = self.aborted;
        if noise {
            return;
        }
        match input {
            Input::Prompt { messages, .. } => {
                self.silent = busy;
                if !busy {
                    self.prompts = messages.iter().cloned().collect();
                    self.overflowed = false;
                }
            }
            Input::Join(messages) => {
                self.silent = true;
                if self.waiting && self.joined.is_none() {
                    self.joined = Some(Joined {
                        messages: messages.clone(),
                        steering: self.queues.steering_len(),
                    });
                    self.seen.push("prompt while waiting");
                }
            }
            Input::Compact => self.silent = busy,
            Input::Move => {
                self.silent = true;
                if !busy {
                    self.moving = true;
                    self.rest = true;
                    self.fresh = 0;
                    self.seen.push("move in the tree");
                }
            }
            Input::Moved { .. } => self.moving = false,
            Input::Enqueue(kind, item) => {
                self.queues.push(*kind, item.text.clone());
                self.fresh += usize::from(busy);
            }
            Input::ClearQueue => {
                self.queues.clear();
                self.fresh = 0;
                if let Some(joined) = &mut self.joined {
                    joined.steering = 0;
                }
            }
            Input::Abort => {
                self.silent = !busy;
                self.note_abort(busy);
                self.aborted |= busy;
                self.joined = None;
            }
            Input::AbortRetry => self.silent = !self.waiting,
            Input::Model(ModelInput::Finished(..)) => self.asking = false,
            Input::Tool(slot, news) => {
                let reviews = machine
                    .subscriptions()
                    .waits
                    .iter()
                    .any(|name| name == "tool_result");
                let is_reviewed = reviews && matches!(news, ToolInput::Done { .. });
                let steered = self.is_steered() && !is_reviewed;
                if let Some(turn) = &mut self.turn {
                    turn.calls.given(*slot, news, steered);
                }
            }
            Input::HooksDone(ticket, outcome) => {
                let steered = self.is_steered();
                if let Some(HookPoint::ToolCall { slot, .. } | HookPoint::ToolResult { slot, .. }) =
                    self.hooked.end(*ticket)
                    && let Some(turn) = &mut self.turn
                {
                    turn.calls.hooked(slot, outcome, steered);
                }
            }
            Input::Nest(call) => {
                if let Some(request) = call.request {
                    self.hooked.request(request);
                }
            }
            Input::WithdrawNested(request) => self.hooked.withdraw(*request),
            Input::Change(change) => self.silent = !matches!(change, Change::TodosDue),
            Input::RetryDue | Input::Compacted(_) | Input::Context(_) | Input::Model(_) => {}
            // Not among the moves of the simulation; see `resume`.
            Input::EditQueued(..)
            | Input::RemoveQueued(_)
            | Input::Continue { .. }
            | Input::Spent(_)
            | Input::Fallback(_) => {}
        }
    }

    fn is_newest_pi(&self) -> bool {
        self.settings.failures == FailureRules::NewestPi
    }

    /// Does this answer end the retries before it as a success?
    fn ends_retries(&self, answer: &AssistantMessage) -> bool {
        match self.settings.failures {
            FailureRules::General => !answer.failed(),
            // Also if it was aborted.
            FailureRules::Pi | FailureRules::NewestPi => answer.stop_reason != StopReason::Error,
        }
    }

    /// A run has failed for good. In today's pi, messages that wait begin another one.
    fn note_failure(&mut self) {
        if self.is_newest_pi() && !self.aborted {
            self.rest = true;
            self.fresh = self.queues.len();
            self.seen
                .extend((self.fresh > 0).then_some("run after a failure"));
        }
    }

    /// Does steering wait that skips calls?
    fn is_steered(&self) -> bool {
        let immediate = self.run.as_ref().is_some_and(|run| run.immediate);
        immediate && !self.aborted && self.queues.has_steering()
    }

    /// Do calls of the newest answer wait for results?
    pub(crate) fn has_open_calls(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.calls.len() > 0)
    }

    fn note_abort(&mut self, busy: bool) {
        let calls = self.turn.as_ref().is_some_and(|turn| turn.calls.len() > 0);
        self.seen.push(match () {
            () if !busy => "abort while idle",
            () if self.asking => "abort while asking",
            () if calls => "abort while tools run",
            () if self.waiting => "abort while waiting",
            () if self.compaction.is_some() => "abort while compacting",
            () if self.moving => "abort while moving",
            () => "abort while checking",
        });
    }

    /// Everything that followed from the input has been seen.
    pub(crate) fn end(&mut self, machine: &Machine) -> Checked {
        must(
            self.next == Next::Anything,
            &format!("nothing came, but {:?} had to", self.next),
        )?;
        let busy = self.run.is_some() || self.waiting || self.compaction.is_some() || self.moving;
        must(!(machine.is_idle() && busy), "idle in the middle of something")?;
        must(
            machine.activity().is_running() == self.run.is_some(),
            "is_running tells the wrong thing",
        )?;
        must(
            machine.activity().is_compacting() == (self.compaction.is_some() || self.moving),
            "is_compacting tells the wrong thing",
        )?;
        must(
            matches!(machine.activity(), Activity::WaitingToRetry { .. }) == self.waiting,
            "is_waiting_to_retry tells the wrong thing",
        )?;
        let has_joined = machine.activity() == Activity::WaitingToRetry { joined: true };
        must(
            has_joined == self.joined.is_some(),
            "tells the wrong thing of a prompt that waits",
        )?;
        let (steering, follow_up) = machine.queues().texts();
        self.queues.same(&steering, &follow_up)?;
        must(
            same(machine.messages(), &self.expected),
            "the conversation is not what it should be",
        )?;
        match &self.given {
            _ if self.silent => Ok(()),
            Input::Prompt { .. } | Input::Compact => {
                must(!machine.is_idle(), "what was asked for did not begin")
            }
            Input::Context(true) if !self.was_aborted => {
                must(self.compaction.is_some(), "a full context was not compacted")
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn effect(&mut self, effect: &Effect) -> Checked {
        must(!self.silent, "something followed from nothing")?;
        self.expect(effect)?;
        let starts = matches!(
            effect,
            Effect::CallModel
                | Effect::PrepareTool(..)
                | Effect::Decide(_)
                | Effect::RunTool(_)
                | Effect::RunHooks(_, HookPoint::ToolCall { .. })
                | Effect::StartRetryTimer(_)
                | Effect::Compact(_)
                | Effect::CheckContext
        );
        must(!(starts && self.aborted), "something began after an abort")?;
        self.hooked.effect(effect)?;
        match effect {
            Effect::Persist(message) => self.on_persist(message),
            Effect::Record(_) => must(false, "recorded an entry without rules"),
            Effect::Emit(event) => self.on_event(event),
            Effect::CallModel => self.on_call(),
            Effect::ChooseModel => {
                let failed = matches!(
                    &self.given,
                    Input::Model(ModelInput::Finished(_, Verdict::Retry(_)))
                );
                must(failed && !self.aborted, "chose a model although none has failed")
            }
            Effect::CancelModel => must(self.asking && self.aborted, "cancelled a model for no reason"),
            Effect::PrepareTool(slot, _) | Effect::Decide(slot) | Effect::RunTool(slot)
                if is_nested(*slot) =>
            {
                Ok(())
            }
            Effect::Decide(slot) => self.turn()?.calls.on_decide(*slot),
            Effect::RunHooks(ticket, point) => {
                self.hooked.ask(*ticket, point)?;
                match point {
                    HookPoint::ToolCall { slot, .. } | HookPoint::ToolResult { slot, .. }
                        if is_nested(*slot) =>
                    {
                        Ok(())
                    }
                    HookPoint::ToolCall { slot, .. } => self.turn()?.calls.on_check(*slot),
                    HookPoint::ToolResult { slot, .. } => self.turn()?.calls.on_review(*slot),
                    HookPoint::Compact { reason, .. } => must(
                        self.compaction == Some(*reason),
                        "asked about a compaction that has not begun",
                    ),
                    _ => must(false, "asked subscribers that are not there"),
                }
            }
            Effect::CancelHooks(ticket) => must(
                self.hooked.end(*ticket).is_some(),
                "withdrew hooks that do not run",
            ),
            Effect::CancelTool(slot) => must(is_nested(*slot), "cancelled a single call of the model"),
            Effect::AnswerNested { .. } | Effect::UpdateNested(..) => Ok(()),
            Effect::ForgetTools => self.hooked.turn_over(),
            // The twin has no subscribers to events.
            Effect::Tell(..) | Effect::HooksFailed(..) => must(false, "told subscribers that are not there"),
            Effect::PrepareTool(slot, call) => self.turn()?.calls.on_prepare(*slot, call),
            Effect::RunTool(slot) => {
                let calls = &mut self.turn()?.calls;
                calls.on_run(*slot)?;
                let full = calls.running() == pinion_agent::limits::MAX_PARALLEL_TOOLS;
                self.seen.extend(full.then_some("as many tools as allowed"));
                Ok(())
            }
            Effect::CancelTools => {
                let stops = self.aborted || self.turn()?.calls.is_interrupted();
                must(stops, "cancelled tools for no reason")
            }
            Effect::StartRetryTimer(_) => {
                self.waiting = true;
                Ok(())
            }
            Effect::CancelRetryTimer => must(std::mem::take(&mut self.waiting), "no timer to cancel"),
            Effect::CheckContext => must(self.turn.is_none() && !self.asking, "checking inside a turn"),
            Effect::Compact(_) | Effect::EndCompaction(_) => {
                must(self.compaction.is_some(), "no compaction to make")
            }
            Effect::CancelCompaction => must(
                (self.compaction.is_some() || self.moving) && self.aborted,
                "cancelled a compaction for no reason",
            ),
            Effect::Idle => {
                self.aborted = false;
                self.rest = false;
                Ok(())
            }
        }
    }

    /// Is this what had to come next?
    fn expect(&mut self, effect: &Effect) -> Checked {
        let next = std::mem::replace(&mut self.next, Next::Anything);
        let event = match effect {
            Effect::Emit(event) => Some(event),
            _ => None,
        };
        let right = match (&next, event) {
            (Next::Anything, _) => true,
            (Next::Told(message), Some(Event::MessageEnd { message: told })) => Arc::ptr_eq(message, told),
            (Next::Said(text), Some(Event::MessageStart { message })) => said(message) == *text,
            (Next::RetrySucceeded, Some(Event::AutoRetryEnd { success, .. })) => *success,
            (Next::RetryGivenUp, Some(Event::AutoRetryEnd { success, .. })) => !success,
            (Next::RetryStart, Some(Event::AutoRetryStart { .. })) => true,
            (Next::Timer(ms), None) => *effect == Effect::StartRetryTimer(*ms),
            (Next::CompactionStart(reason), Some(Event::CompactionStart { reason: started })) => {
                reason == started
            }
            (Next::Compact(reason), None) => {
                let is_hook = |point: &HookPoint| matches!(point, HookPoint::Compact { reason: own, .. } if own == reason);
                *effect == Effect::Compact(*reason)
                    || matches!(effect, Effect::RunHooks(_, point) if is_hook(point))
            }
            (Next::AgentStart, Some(Event::AgentStart)) => true,
            (Next::Idle, None) => *effect == Effect::Idle,
            _ => false,
        };
        must(right, &format!("{next:?} had to come next"))?;
        if next == Next::RetryGivenUp {
            self.next = Next::CompactionStart(CompactionReason::Overflow);
        }
        if matches!(effect, Effect::Idle) && next != Next::Idle {
            // A compaction or a move by itself is no run, so there is nothing to settle.
            must(!self.has_run, "idle without being settled")?;
            self.at_rest(self.aborted)?;
            self.next = Next::Anything;
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<&mut Turn, String> {
        self.turn.as_mut().ok_or_else(|| "outside of a turn".to_owned())
    }

    fn run(&mut self) -> Result<&mut Run, String> {
        self.run.as_mut().ok_or_else(|| "outside of a run".to_owned())
    }

    fn on_persist(&mut self, message: &Arc<Message>) -> Checked {
        must(self.open.is_some(), "persisted what never began")?;
        self.expected.push(Arc::clone(message));
        self.next = Next::Told(Arc::clone(message));
        Ok(())
    }

    fn on_call(&mut self) -> Checked {
        must(!self.asking, "two requests at once")?;
        must(self.compaction.is_none(), "asking while compacting")?;
        let turn = self.turn()?;
        must(turn.script.is_empty(), "asked before all was said that is due")?;
        must(
            !turn.asked && turn.answer.is_none(),
            "asked twice in the same turn",
        )?;
        turn.asked = true;
        self.asking = true;
        let answered = self.expected.last().is_some_and(|last| good(last).is_some());
        must(!answered, "asked although there is nothing to answer")?;
        calls_answered(&self.expected)
    }

    /// A compaction is on disk, or a new machine was made: the conversation is what the file says.
    pub(crate) fn reload(&mut self, conversation: Vec<Arc<Message>>) {
        self.expected = conversation;
        self.left.clear();
        if self.compaction == Some(CompactionReason::Overflow) {
            while let Some(failed) = self
                .expected
                .pop_if(|last| last.as_assistant().is_some_and(AssistantMessage::failed))
            {
                self.left.push(failed);
            }
        }
    }
}

fn said(message: &Message) -> String {
    match message {
        Message::User(user) => user.content.text(),
        _ => String::new(),
    }
}

/// Each call of a good answer has exactly one result, right after the answer, and no result stands alone.
pub(crate) fn calls_answered(messages: &[Arc<Message>]) -> Checked {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match message.as_ref() {
            Message::ToolResult(result) => {
                let at = open.iter().position(|id| *id == result.tool_call_id);
                open.remove(at.ok_or("a result without a call")?);
            }
            _ => must(open.is_empty(), "a call without a result in the conversation")?,
        }
        if let Some(answer) = good(message) {
            open.extend(answer.tool_calls().map(|call| call.id.as_str()));
        }
    }
    must(open.is_empty(), "a call without a result at the end")
}
