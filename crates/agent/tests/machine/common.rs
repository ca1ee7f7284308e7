//! A world around the machine: plays model, tools and clock, and writes down what the machine wants as short lines.

use std::sync::Arc;

use pinion_agent::{
    Effect, Input, LoopSettings, Machine, ModelInput, Prepared, QueueKind, Queued, ToolInput, Verdict,
};
use serde_json::Map;
use wire::content::AssistantBlock;
use wire::{AssistantMessage, Event, Message, StopReason, ToolCall, ToolResult};

pub(crate) struct World {
    pub(crate) machine: Machine,
    pub(crate) log: Vec<String>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) now: i64,
    /// What the next question after the context is answered with.
    pub(crate) full: bool,
    /// Is that question answered in the same breath, as the host does?
    pub(crate) asks_itself: bool,
    /// Is every call allowed in the same breath?
    pub(crate) decides_itself: bool,
    /// Does the test say which model takes over? Otherwise none does, as in a session without fallback models.
    pub(crate) has_fallback: bool,
}

impl World {
    pub(crate) fn new(settings: LoopSettings) -> Self {
        Self {
            machine: Machine::new(settings, Vec::new()),
            log: Vec::new(),
            effects: Vec::new(),
            now: 1,
            full: false,
            asks_itself: true,
            decides_itself: true,
            has_fallback: false,
        }
    }

    /// Gives one input and notes what follows.
    pub(crate) fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut out = Vec::new();
        self.now += 1;
        self.machine.step(input, self.now, &mut out);
        let fails = !self.has_fallback && out.contains(&Effect::ChooseModel);
        let noted = out
            .iter()
            .filter(|&effect| !fails || *effect != Effect::ChooseModel);
        self.log.extend(noted.filter_map(short));
        self.effects.extend(out.iter().cloned());
        // As a session without permissions does.
        let asked = out.iter().find_map(|effect| match effect {
            Effect::Decide(slot) if self.decides_itself => Some(*slot),
            _ => None,
        });
        if let Some(slot) = asked {
            out.extend(self.step(Input::Tool(slot, ToolInput::Decided(Prepared::Run))));
        }
        if self.asks_itself && out.contains(&Effect::CheckContext) {
            let full = std::mem::take(&mut self.full);
            out.extend(self.step(Input::Context(full)));
        }
        if fails {
            out.extend(self.step(Input::Fallback(None)));
        }
        out
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        self.step(Input::Prompt {
            messages: vec![Arc::new(Message::user(text, 0))],
            full: false,
            limits: None,
            wants_result: false,
        });
    }

    pub(crate) fn queue(&mut self, kind: QueueKind, text: &str) {
        let message = Arc::new(Message::user(text, 0));
        self.step(Input::Enqueue(
            kind,
            Queued {
                text: text.to_owned(),
                message,
                interrupts: false,
            },
        ));
    }

    pub(crate) fn answer(&mut self, calls: &[&str], stop: StopReason) {
        self.step(Input::Model(ModelInput::Started(head())));
        self.step(Input::Model(ModelInput::Finished(
            answer(calls, stop),
            Verdict::Final,
        )));
    }

    pub(crate) fn fail(&mut self, text: &str, verdict: Verdict) {
        let mut message = answer(&[], StopReason::Error);
        message.error_message = Some(text.to_owned());
        self.step(Input::Model(ModelInput::Finished(message, verdict)));
    }

    pub(crate) fn prepared(&mut self, slot: usize) {
        self.step(Input::Tool(slot, ToolInput::Prepared(Prepared::Run)));
    }

    pub(crate) fn refused(&mut self, slot: usize, text: &str) {
        self.step(Input::Tool(
            slot,
            ToolInput::Prepared(Prepared::Refused(ToolResult::error(text))),
        ));
    }

    pub(crate) fn done(&mut self, slot: usize, text: &str) {
        let result = ToolResult::text(text);
        self.step(Input::Tool(
            slot,
            ToolInput::Done {
                result,
                is_error: false,
                duration_ms: 1,
            },
        ));
    }

    /// The lines noted since the last call.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

pub(crate) fn head() -> AssistantMessage {
    AssistantMessage::begin("api", "provider", "model", 0)
}

pub(crate) fn answer(calls: &[&str], stop: StopReason) -> AssistantMessage {
    let mut message = head();
    message.stop_reason = stop;
    message.content.push(AssistantBlock::text("hm"));
    message.content.extend(calls.iter().map(|id| {
        AssistantBlock::ToolCall(ToolCall {
            id: (*id).to_owned(),
            name: "tool".to_owned(),
            arguments: Map::new(),
            thought_signature: None,
            extra: wire::Extra::default(),
        })
    }));
    message
}

fn told(message: &Message) -> String {
    match message {
        Message::User(user) => format!("user {}", user.content.text()),
        Message::Assistant(answer) => format!("assistant {:?}", answer.stop_reason),
        Message::ToolResult(result) => {
            format!(
                "result {} {}",
                result.tool_call_id,
                wire::content::joined_text(&result.content)
            )
        }
        other => other.role().to_owned(),
    }
}

fn short(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::Persist(_) | Effect::Record(_) => return None,
        Effect::CallModel => "CALL".to_owned(),
        Effect::ChooseModel => "CHOOSE".to_owned(),
        Effect::CancelModel => "CANCEL MODEL".to_owned(),
        Effect::PrepareTool(slot, _) => format!("PREPARE {slot}"),
        Effect::Decide(_)
        | Effect::CancelTool(_)
        | Effect::AnswerNested { .. }
        | Effect::UpdateNested(..)
        | Effect::ForgetTools
        | Effect::Tell(..) => return None,
        Effect::HooksFailed(point, why) => format!("HOOKS FAILED {point} {why}"),
        Effect::RunHooks(_, point) => format!("HOOKS {}", point.name()),
        Effect::CancelHooks(_) => "CANCEL HOOKS".to_owned(),
        Effect::RunTool(slot) => format!("RUN {slot}"),
        Effect::CancelTools => "CANCEL TOOLS".to_owned(),
        Effect::StartRetryTimer(ms) => format!("TIMER {ms}"),
        Effect::CancelRetryTimer => "NO TIMER".to_owned(),
        Effect::CheckContext => return None,
        Effect::Compact(reason) => format!("COMPACT {reason:?}"),
        Effect::EndCompaction(made) => format!("END COMPACTION {}", made.is_some()),
        Effect::CancelCompaction => "CANCEL COMPACTION".to_owned(),
        Effect::Idle => "IDLE".to_owned(),
        Effect::Emit(event) => match event {
            Event::AgentStart => "agent_start".to_owned(),
            Event::AgentEnd {
                messages, will_retry, ..
            } => {
                format!(
                    "agent_end {}{}",
                    messages.len(),
                    if *will_retry { " retry" } else { "" }
                )
            }
            Event::AgentSettled { aborted } => format!("settled{}", if *aborted { " aborted" } else { "" }),
            Event::TurnStart => "turn_start".to_owned(),
            Event::TurnEnd { tool_results, .. } => format!("turn_end {}", tool_results.len()),
            Event::MessageStart { .. } => return None,
            Event::MessageEnd { message } => told(message),
            Event::ToolExecutionStart { tool_call_id, .. } => format!("start {tool_call_id}"),
            Event::ToolExecutionEnd {
                tool_call_id, result, ..
            } => {
                format!("end {tool_call_id} {}", result.joined_text())
            }
            Event::QueueUpdate { steering, follow_up } => format!("queue {steering:?} {follow_up:?}"),
            Event::AutoRetryStart {
                attempt, delay_ms, ..
            } => format!("retry {attempt} {delay_ms}"),
            Event::AutoRetryEnd {
                success,
                attempt,
                final_error,
            } => {
                format!(
                    "retry_end {success} {attempt} {}",
                    final_error.as_deref().unwrap_or("-")
                )
            }
            Event::CompactionStart { reason } => format!("compaction_start {reason:?}"),
            Event::CompactionEnd {
                reason,
                result,
                aborted,
                will_retry,
                error_message,
            } => format!(
                "compaction_end {reason:?} {} {aborted} {will_retry} {}",
                result.is_some(),
                error_message.as_deref().unwrap_or("-")
            ),
            other => format!("{other:?}"),
        },
    })
}
