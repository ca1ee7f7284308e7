//! The fake world: clients, model, tools, clock and disk around a machine, all by chance.

mod changes;
mod hooks;
mod twin;

use std::sync::Arc;

use pinion_agent::compaction::{Keep, Settings};
use pinion_agent::record::{Recorder, replay, sessions};
use pinion_agent::todo::{TodoSettings, Todos};
use pinion_agent::{
    Activity, Change, CompactOutcome, Deferred, Effect, FailureRules, HookPoint, Input, LoopSettings,
    Machine, ModelInput, Prepared, QueueKind, Queued, ResultOrder, ToolInput,
};
use wire::event::CompactionReason;
use wire::state::{InterruptMode, QueueMode};
use wire::{BashExecutionMessage, Message, ToolResult};

use super::check::{Checked, Checker, calls_answered, must};
use super::disk::Disk;
use super::model::{Habits, Reply};
use super::rng::Rng;
use super::{Played, SEEDS_OF_RULES};

use self::twin::Twin;

/// Steps after which a session without further input must be idle.
const PATIENCE: usize = 20_000;

/// One of so many seeds is recorded and replayed; writing JSON takes longer than playing.
const RECORDED: u64 = 16;

/// Something that may happen.
#[derive(Debug, Clone, Copy)]
enum Move {
    /// The world does something that it owes.
    Go,
    Prompt,
    /// A prompt for the delay before a retry.
    Join,
    Steer,
    FollowUp,
    Clear,
    Abort,
    AbortRetry,
    Compact,
    /// To another place of the session's tree.
    Elsewhere,
    Settings,
    /// A message from outside.
    Add,
    /// The conversation is read again.
    ReadAgain,
    Todos,
    Bash,
    /// Extensions subscribe to hook points, or leave.
    Subscribe,
    /// A tool calls another one.
    Nest,
    WithdrawNested,
    /// Another session takes the place of this one, once its run has ended.
    SwitchSession,
    Kill,
    Noise,
}

const MOVES: [Move; 21] = [
    Move::Go,
    Move::Prompt,
    Move::Join,
    Move::Steer,
    Move::FollowUp,
    Move::Clear,
    Move::Abort,
    Move::AbortRetry,
    Move::Compact,
    Move::Elsewhere,
    Move::Settings,
    Move::Add,
    Move::ReadAgain,
    Move::Todos,
    Move::Bash,
    Move::Subscribe,
    Move::Nest,
    Move::WithdrawNested,
    Move::SwitchSession,
    Move::Kill,
    Move::Noise,
];

/// What the world has still to report.
#[derive(Debug, Default)]
struct Owed {
    reply: Option<Reply>,
    prepare: Vec<usize>,
    running: Vec<usize>,
    /// Permissions that are asked.
    decisions: Vec<usize>,
    /// Hooks that run.
    hooks: Vec<(u64, HookPoint)>,
    /// Permissions and hooks that never answer.
    hung_decisions: Vec<usize>,
    hung_hooks: Vec<u64>,
    timer: bool,
    compaction: Option<CompactionReason>,
    /// Hooks refused the compaction, or made it.
    decided: Option<bool>,
    moving: bool,
    cancelled: bool,
    context: bool,
    choosing: bool,
}

#[derive(Debug)]
pub(crate) struct World {
    rng: Rng,
    machine: Machine,
    twin: Twin,
    check: Checker,
    disk: Disk,
    owed: Owed,
    habits: Habits,
    /// Once in so many questions the context is full.
    full: usize,
    /// One of so many hooks and permissions never answers.
    hangs: usize,
    /// Requests of tools for calls so far.
    requests: u64,
    /// Weights of [`MOVES`].
    weights: [usize; MOVES.len()],
    /// The user's commands that ended during a run, and recorded ones without an event yet.
    parked: Vec<Arc<Message>>,
    unheard: Vec<Arc<Message>>,
    /// Session changes that wait for the run to end.
    deferred: Deferred<()>,
    /// Messages that came while tools ran.
    added: Vec<Arc<Message>>,
    /// Messages that are not in the file before the end of the turn has left the machine.
    unwritten: Vec<Arc<Message>>,
    /// The list as it must be.
    todos: Todos,
    /// The record of the inputs, with some seeds.
    record: Option<(Recorder, Vec<String>)>,
    serial: usize,
    now: i64,
    /// The process dies after so many effects of the next input.
    cut: Option<usize>,
    /// Writes down what happens.
    tracing: bool,
    pub(crate) trace: Vec<String>,
    pub(crate) played: Played,
}

impl World {
    pub(crate) fn new(seed: u64, tracing: bool) -> Self {
        let mut rng = Rng::new(seed);
        let mut settings = LoopSettings::default();
        change(&mut rng, &mut settings);
        // Not drawn, so that a seed stays what it was.
        (settings.failures, settings.results) = match seed / SEEDS_OF_RULES {
            0 => (FailureRules::General, ResultOrder::Calls),
            1 => (FailureRules::Pi, ResultOrder::Calls),
            2 => (FailureRules::NewestPi, ResultOrder::Calls),
            _ => (FailureRules::General, ResultOrder::Ends),
        };
        let habits = Habits {
            calls: 1 + rng.below(3),
            fails: rng.pick(&[0, 0, 2, 5, 12]).unwrap_or(0),
            overflows: rng.pick(&[0, 0, 3, 12]).unwrap_or(0),
            cut_off: rng.pick(&[0, 3, 12]).unwrap_or(0),
        };
        let full = rng.pick(&[0, 0, 2, 5, 12]).unwrap_or(0);
        let hangs = rng.pick(&[0, 0, 3, 12]).unwrap_or(0);
        // Each seed leaves some kinds of moves out and likes others: that reaches further than an even mixture.
        let mut weights = MOVES.map(|_| rng.pick(&[0, 1, 2, 6]).unwrap_or(0));
        let [go, prompt, ..] = &mut weights;
        *go = 10 + rng.below(60);
        *prompt += 2;
        let mut world = Self {
            rng,
            machine: Machine::default(),
            twin: Twin::new(Machine::new(settings, Vec::new())),
            check: Checker::new(settings, Vec::new()),
            disk: Disk::default(),
            owed: Owed::default(),
            habits,
            full,
            hangs,
            requests: 0,
            weights,
            parked: Vec::new(),
            unheard: Vec::new(),
            deferred: Deferred::default(),
            added: Vec::new(),
            unwritten: Vec::new(),
            todos: Todos::default(),
            record: seed
                .is_multiple_of(RECORDED)
                .then(|| (Recorder::new(seed), Vec::new())),
            serial: 0,
            now: 1,
            cut: None,
            tracing,
            trace: Vec::new(),
            played: Played::default(),
        };
        let messages = Vec::new();
        world.advance(Change::Open { settings, messages }.into());
        world
    }

    /// Plays the session: moves by chance, then calm until it rests, then once more from the file.
    pub(crate) fn play(&mut self) -> Checked {
        let long = if self.rng.once_in(16) { 6 } else { 1 };
        let moves = 1 + self.rng.below(200 * long);
        for _ in 0..moves {
            let next = self.choose();
            self.make(next)?;
        }
        self.calm_down()?;
        self.make(Move::Prompt)?;
        self.calm_down()?;
        must(self.machine.queues().is_empty(), "what was queued was never said")?;
        self.rebuild()?;
        self.replay()?;
        self.played.seen.extend(self.check.seen.drain(..));
        Ok(())
    }

    fn calm_down(&mut self) -> Checked {
        self.habits = Habits {
            calls: 0,
            fails: 0,
            overflows: 0,
            cut_off: 0,
        };
        self.full = 0;
        self.hangs = 0;
        for _ in 0..PATIENCE {
            if !self.go()? {
                if self.is_hung() {
                    // What never answers must not keep an abort from ending the run.
                    self.step(Input::Abort)?;
                    self.end_grace();
                    continue;
                }
                return must(
                    self.machine.is_idle(),
                    "stuck: nothing is owed and the machine is not idle",
                );
            }
        }
        Err("never came to rest".to_owned())
    }

    fn choose(&mut self) -> Move {
        let sum = self.weights.iter().sum();
        let mut at = self.rng.below(sum);
        for (weight, kind) in self.weights.iter().zip(MOVES) {
            if at < *weight {
                return kind;
            }
            at -= weight;
        }
        Move::Go
    }

    fn make(&mut self, what: Move) -> Checked {
        match what {
            Move::Go => self.go().map(drop),
            Move::Prompt => self.prompt(),
            Move::Steer => self.queue(QueueKind::Steering),
            Move::FollowUp => self.queue(QueueKind::FollowUp),
            Move::Clear => self.step(Input::ClearQueue),
            Move::Abort => self.step(Input::Abort),
            Move::AbortRetry => self.step(Input::AbortRetry),
            Move::Join if self.is_behind() => Ok(()),
            Move::Join => {
                let message = Arc::new(Message::user(self.text("prompt "), self.now));
                self.step(Input::Join(vec![message]))
            }
            Move::Compact if self.is_behind() => Ok(()),
            Move::Elsewhere if self.is_behind() => Ok(()),
            Move::Add | Move::ReadAgain if self.is_behind() => Ok(()),
            Move::Compact => {
                if self.machine.is_idle() {
                    self.hear()?;
                }
                self.step(Input::Compact)
            }
            Move::Elsewhere => {
                if self.machine.is_idle() {
                    self.hear()?;
                    self.owed.moving = true;
                }
                self.step(Input::Move)
            }
            Move::Settings => self.change_settings(),
            Move::Add => self.add(),
            Move::ReadAgain => self.read_again(),
            Move::Todos => self.change_todos(),
            Move::Bash => self.bash(),
            Move::Subscribe => self.subscribe(),
            Move::Nest => self.nest(),
            Move::WithdrawNested => self.withdraw_nested(),
            Move::SwitchSession => self.switch_session(),
            Move::Kill => self.kill(),
            Move::Noise => self.noise(),
        }
    }

    fn text(&mut self, kind: &str) -> String {
        self.serial += 1;
        format!("{kind}{}", self.serial)
    }

    fn prompt(&mut self) -> Checked {
        if self.machine.is_idle() {
            self.hear()?;
        }
        let count = if self.rng.once_in(8) { 2 } else { 1 };
        let messages = (0..count).map(|_| Arc::new(Message::user(self.text("prompt "), self.now)));
        let messages = messages.collect();
        let full = self.rng.once_in(self.full);
        self.step(Input::Prompt {
            messages,
            full,
            limits: None,
            wants_result: false,
        })
    }

    fn queue(&mut self, kind: QueueKind) -> Checked {
        let text = self.text("queued ");
        let message = Arc::new(Message::user(text.clone(), self.now));
        let interrupts = false;
        self.step(Input::Enqueue(
            kind,
            Queued {
                text,
                message,
                interrupts,
            },
        ))
    }

    /// A command of the user's ends; what happens then is the host's rule (`shell` there).
    fn bash(&mut self) -> Checked {
        let command = self.text("command ");
        self.parked
            .push(Arc::new(Message::BashExecution(BashExecutionMessage {
                command,
                output: String::new(),
                exit_code: Some(0),
                cancelled: false,
                truncated: false,
                full_output_path: None,
                exclude_from_context: self.rng.once_in(4).then_some(true),
                timestamp: self.now,
                extra: wire::Extra::default(),
            })));
        if self.machine.is_idle() && !self.is_behind() {
            self.unpark();
            self.hear()?;
        }
        Ok(())
    }

    fn unpark(&mut self) {
        if !self.parked.is_empty() {
            self.check.seen.push("commands heard later");
        }
        for message in std::mem::take(&mut self.parked) {
            self.disk.persist(&message);
            self.unheard.push(message);
        }
    }

    fn hear(&mut self) -> Checked {
        for message in std::mem::take(&mut self.unheard) {
            self.check.expected.push(Arc::clone(&message));
            self.tell(Change::Add(message))?;
        }
        Ok(())
    }

    /// The process dies, perhaps in the middle of what follows from an input, and a new one opens the file.
    fn kill(&mut self) -> Checked {
        self.check.seen.push("kill");
        if self.rng.once_in(2) {
            self.cut = Some(self.rng.below(6));
            let next = match self.choose() {
                Move::Kill => Move::Go,
                other => other,
            };
            self.make(next)?;
            if self.cut.take().is_none() {
                self.check.seen.push("kill between effects");
                return Ok(());
            }
        }
        self.rebuild()
    }

    fn rebuild(&mut self) -> Checked {
        self.note("--- killed".to_owned());
        self.disk.reopen();
        let messages = self.disk.conversation();
        calls_answered(&messages)?;
        if self.disk.has_dangling_calls() {
            self.check.seen.push("dangling calls closed");
        }
        let settings = self.machine.settings();
        if self.record.is_some() || self.rng.once_in(2) {
            // An unfinished run must leave no trace in a machine that goes on with another session.
            self.check.seen.push("session opened in a used machine");
            let messages = messages.clone();
            self.advance(Change::Open { settings, messages }.into());
        } else {
            self.machine = Machine::new(settings, messages.clone());
            self.twin = Twin::default();
        }
        // Subscribers of the real machine stay.
        let mut twin = Machine::new(settings, messages.clone());
        let calls = Change::Hooks(self.machine.subscriptions().clone());
        if let Some(calls) = self.twin.translate(&calls.into(), &self.machine) {
            twin.step(calls, self.now, &mut Vec::new());
        }
        self.twin = Twin::new(twin);
        self.todos = Todos::new(TodoSettings::default(), Vec::new());
        let seen = std::mem::take(&mut self.check.seen);
        self.check = Checker::new(settings, messages);
        self.check.seen = seen;
        self.owed = Owed::default();
        self.parked.clear();
        self.unheard.clear();
        self.added.clear();
        self.unwritten.clear();
        self.check.end(&self.twin.machine)
    }

    /// Does the machine hold back what has happened already?
    fn is_behind(&self) -> bool {
        self.machine.is_holding() || !self.twin.is_even()
    }

    /// Gives the machine an input and writes it down, if this seed is recorded.
    fn advance(&mut self, input: Input) -> Vec<Effect> {
        let mut out = Vec::new();
        let pending = match &mut self.record {
            Some((recorder, _)) => recorder.begin(&input, self.now).ok(),
            None => None,
        };
        self.machine.step(input, self.now, &mut out);
        if let (Some((_, lines)), Some(pending)) = (&mut self.record, pending) {
            lines.extend(pending.finish(&out, |text| text));
        }
        out
    }

    /// The same inputs have the same effects, after a journey through JSON.
    fn replay(&mut self) -> Checked {
        let Some((_, lines)) = &self.record else {
            return Ok(());
        };
        let mut steps = 0;
        let session = lines.first().and_then(|line| sessions([line.as_str()]).pop());
        let session = session.ok_or("nothing was recorded")?;
        replay(lines.iter().map(String::as_str), session, |_| steps += 1)
            .map_err(|error| error.to_string())?;
        self.check.seen.push("replayed");
        must(steps == lines.len(), "a step was not replayed")
    }

    /// Unexpected input must change nothing.
    fn noise(&mut self) -> Checked {
        if self.is_behind() {
            // The machine waits for news of what it holds back.
            return Ok(());
        }
        let slot = self.rng.below(5);
        let runs = self.owed.running.contains(&slot);
        let input = match self.rng.below(7) {
            0 if !self.owed.timer => Input::RetryDue,
            1 if self.owed.compaction.is_none() && !self.owed.asks_something() => {
                Input::Compacted(CompactOutcome::Failed("noise".to_owned()))
            }
            6 if !self.owed.moving => Input::Moved {
                messages: Some(Vec::new()),
                aborted: false,
            },
            2 if !self.owed.context => Input::Context(true),
            3 if self.owed.reply.is_none() => {
                let reply = Reply::new(&mut self.rng, self.habits, 0, 0).next(&mut self.rng);
                Input::Model(reply)
            }
            4 if !runs => Input::Tool(slot, done(ToolResult::text("noise"))),
            5 if !self.owed.prepare.contains(&slot) => Input::Tool(slot, ToolInput::Prepared(Prepared::Run)),
            _ => return Ok(()),
        };
        self.give(input, true)
    }

    /// One of the things that the world owes. False: it owes nothing.
    fn go(&mut self) -> Result<bool, String> {
        let running = self.rng.below(self.owed.running.len());
        let input = if self.owed.context {
            self.owed.context = false;
            Input::Context(self.rng.once_in(self.full))
        } else if self.owed.timer {
            self.owed.timer = false;
            Input::RetryDue
        } else if let Some(reason) = self.owed.compaction.take() {
            Input::Compacted(self.compacted(reason))
        } else if let Some(reply) = &mut self.owed.reply {
            let news = reply.next(&mut self.rng);
            if matches!(news, ModelInput::Finished(..)) {
                self.owed.reply = None;
            }
            Input::Model(news)
        } else if let Some(slot) = self.owed.prepare.pop() {
            let prepared = if self.rng.once_in(5) {
                Prepared::Refused(ToolResult::error("Tool not found"))
            } else {
                Prepared::Run
            };
            Input::Tool(slot, ToolInput::Prepared(prepared))
        } else if let Some(input) = self.answer_question() {
            input
        } else if std::mem::take(&mut self.owed.moving) {
            self.moved()
        } else if let Some(slot) = self.owed.running.get(running).copied() {
            self.tool(slot, running)
        } else {
            return Ok(false);
        };
        self.step(input).map(|()| true)
    }

    fn tool(&mut self, slot: usize, at: usize) -> Input {
        if self.rng.once_in(3) {
            return Input::Tool(slot, ToolInput::Progress(ToolResult::text("so far")));
        }
        self.owed.running.swap_remove(at);
        let mut result = ToolResult::text(self.text("result "));
        if self.rng.once_in(2) {
            result.terminate = Some(true);
        }
        Input::Tool(slot, done(result))
    }

    fn compacted(&mut self, reason: CompactionReason) -> CompactOutcome {
        let cancelled = std::mem::take(&mut self.owed.cancelled);
        let decided = self.owed.decided.take();
        if decided == Some(false) {
            self.check.seen.push("compaction refused by hooks");
            return CompactOutcome::Aborted;
        }
        if cancelled && !self.rng.once_in(4) {
            return CompactOutcome::Aborted;
        }
        if self.rng.once_in(4) {
            return CompactOutcome::Failed(format!("no {reason:?}"));
        }
        let settings = Settings {
            reserve_tokens: 100,
            keep_recent_tokens: self.rng.next() % 60,
            keep: Keep::default(),
        };
        match self.disk.compact(settings) {
            Err(refusal) => CompactOutcome::Failed(refusal),
            Ok(result) => {
                let messages = self.disk.conversation();
                CompactOutcome::Done { result, messages }
            }
        }
    }

    fn moved(&mut self) -> Input {
        let cancelled = std::mem::take(&mut self.owed.cancelled);
        let aborted = cancelled && !self.rng.once_in(4);
        let messages = (!aborted && !self.rng.once_in(4)).then(|| {
            self.disk.move_to(&mut self.rng);
            self.disk.conversation()
        });
        Input::Moved { messages, aborted }
    }

    fn step(&mut self, input: Input) -> Checked {
        self.give(input, false)?;
        // There are no fallback models in this world. With them, the run would go on as after a retry.
        while std::mem::take(&mut self.owed.choosing) {
            self.give(Input::Fallback(None), false)?;
        }
        // The host answers this question in the same breath, but nothing says that it has to.
        while self.owed.context && !self.rng.once_in(6) {
            self.owed.context = false;
            let full = self.rng.once_in(self.full);
            self.give(Input::Context(full), false)?;
        }
        // So does a session without permissions.
        while !self.owed.decisions.is_empty() && !self.rng.once_in(6) {
            if let Some(input) = self.answer_question() {
                self.give(input, false)?;
            }
        }
        self.catch_up()
    }

    fn give(&mut self, input: Input, noise: bool) -> Checked {
        self.played.steps += 1;
        self.now += 1;
        if self.tracing {
            self.note(format!("> {input:?}"));
        }
        // Nothing follows from a change that a kill could cut short.
        let dies = match &input {
            Input::Change(_) => None,
            _ => self.cut.take(),
        };
        let unstarted = match &input {
            Input::Abort => self.twin.withdraw_starts(),
            _ => Vec::new(),
        };
        if let Some(given) = self.twin.translate(&input, &self.machine) {
            self.step_twin(given, noise)?;
        }
        for slot in unstarted {
            self.check.seen.push("start of a call withdrawn");
            let aborted = ToolInput::Done {
                result: ToolResult::error("Operation aborted"),
                is_error: true,
                duration_ms: 0,
            };
            self.step_twin(Input::Tool(slot, aborted), noise)?;
        }
        let out = self.advance(input);
        let count = dies.unwrap_or(out.len());
        for effect in out.into_iter().take(count) {
            if self.tracing {
                self.note(format!("    {effect:?}"));
            }
            let effect = self.twin.follow(effect)?;
            self.write_added(&effect);
            self.perform(effect)?;
        }
        if dies.is_some() {
            return self.rebuild();
        }
        must(
            self.machine.is_holding() || self.twin.is_done(),
            "something never left the machine",
        )
    }

    /// Gives the twin an input and checks what follows.
    fn step_twin(&mut self, input: Input, noise: bool) -> Checked {
        self.check.begin(&input, &self.twin.machine, noise);
        if let Input::Compacted(CompactOutcome::Done { messages, .. })
        | Input::Moved {
            messages: Some(messages),
            ..
        } = &input
            && !noise
        {
            self.check.reload(messages.clone());
        }
        let mut effects = Vec::new();
        self.twin.machine.step(input, self.now, &mut effects);
        for effect in &effects {
            self.join_added(effect);
            self.check.effect(effect)?;
        }
        self.twin.did(&effects);
        self.check.end(&self.twin.machine)
    }

    fn perform(&mut self, effect: Effect) -> Checked {
        match effect {
            Effect::Persist(message) => self.disk.persist(&message),
            Effect::CallModel => {
                self.serial += 1;
                self.owed.reply = Some(Reply::new(&mut self.rng, self.habits, self.serial, self.now));
            }
            Effect::CancelModel => {
                if let Some(reply) = &mut self.owed.reply {
                    reply.cancelled = true;
                }
            }
            Effect::PrepareTool(slot, _) => self.owed.prepare.push(slot),
            Effect::RunTool(slot) => self.owed.running.push(slot),
            Effect::Decide(_) | Effect::RunHooks(..) => self.ask(effect),
            Effect::CancelHooks(ticket) => self.cancel_hooks(ticket),
            Effect::ChooseModel => self.owed.choosing = true,
            Effect::CancelTools => self.cancel_decisions(|_| true),
            Effect::CancelTool(slot) => self.cancel_tool(slot),
            Effect::StartRetryTimer(_) => self.owed.timer = true,
            Effect::CancelRetryTimer => self.owed.timer = false,
            Effect::CheckContext => self.owed.context = true,
            Effect::Compact(reason) => self.owed.compaction = Some(reason),
            Effect::EndCompaction(made) => {
                self.owed.decided = Some(made.is_some());
                self.owed.compaction = match self.machine.activity() {
                    Activity::Compacting { reason, .. } => Some(reason),
                    _ => None,
                };
            }
            Effect::CancelCompaction => self.owed.cancelled = true,
            Effect::Idle => return self.idle(),
            Effect::Emit(_)
            | Effect::Record(_)
            | Effect::AnswerNested { .. }
            | Effect::UpdateNested(..)
            | Effect::Tell(..)
            | Effect::HooksFailed(..)
            | Effect::ForgetTools => {}
        }
        Ok(())
    }

    fn owes_something(&self) -> bool {
        let owed = &self.owed;
        owed.reply.is_some()
            || !owed.prepare.is_empty()
            || !owed.running.is_empty()
            || owed.asks_something()
            || owed.timer
            || owed.context
            || owed.choosing
            || owed.compaction.is_some()
            || owed.moving
    }

    /// The session rests: nothing is owed, and the file says what memory says.
    fn idle(&mut self) -> Checked {
        let busy = self.owes_something();
        if self.is_behind() {
            // Another run has been accepted while hooks saw this one settle.
            return Ok(());
        }
        must(!busy, "idle although something is still going on")?;
        self.owed.cancelled = false;
        calls_answered(&self.check.expected)?;
        let replayed = self.disk.conversation();
        let left = &self.check.left;
        let on_disk = replayed
            .iter()
            .filter(|message| !left.iter().any(|gone| Arc::ptr_eq(gone, message)));
        if !left.is_empty() {
            self.check.seen.push("failed answers in the file only");
        }
        let in_memory = self.check.expected.iter().chain(&self.unheard);
        let equal = on_disk.clone().count() == in_memory.clone().count()
            && on_disk
                .zip(in_memory)
                .all(|(disk, memory)| Arc::ptr_eq(disk, memory) || disk == memory);
        must(equal, "the file says something else than memory")?;
        self.unpark();
        Ok(())
    }

    fn note(&mut self, line: String) {
        if self.tracing {
            self.trace.push(line);
        }
    }
}

fn done(result: ToolResult) -> ToolInput {
    ToolInput::Done {
        result,
        is_error: false,
        duration_ms: 1,
    }
}

fn change(rng: &mut Rng, settings: &mut LoopSettings) {
    let mode = |all| {
        if all {
            QueueMode::All
        } else {
            QueueMode::OneAtATime
        }
    };
    settings.steering_mode = mode(rng.once_in(2));
    settings.follow_up_mode = mode(rng.once_in(2));
    settings.interrupt_mode = if rng.once_in(2) {
        InterruptMode::Immediate
    } else {
        InterruptMode::Wait
    };
    settings.retry.enabled = !rng.once_in(6);
    settings.retry.max_retries = u32::try_from(rng.below(4)).unwrap_or(0);
}
