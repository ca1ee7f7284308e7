//! Running the hooks that the machine asks for: what subscribers receive at each point, and what their answers mean. When hooks
//! run, and what waits for them, is decided in `agent`.

use std::collections::VecDeque;
use std::sync::Arc;

use agent::{HookPoint, HooksOutcome, Input};
use extensions::ProcessError;
use serde_json::{Value, json};
use wire::{Event, Message, StopReason, ToolResult};

use crate::strings;

use super::boundaries::{self, outcome};
use super::clock::now_ms;
use super::compaction;
use super::driver::Driver;
use super::extensions::{Continuation, failure, members, put, sync_hooks};
use super::prompt_delivery;
use super::tool_calls::{ToolCalls, block};

impl Driver {
    /// Runs the hooks of a point; the answer comes as a wakeup.
    pub(super) fn run_hooks(&mut self, ticket: u64, point: HookPoint, inputs: &mut VecDeque<Input>) {
        let Some(event) = self.event_at(&point) else {
            // In the same step: the machine waits for an outcome, and nothing else would give it one.
            return inputs.push_back(Input::HooksDone(ticket, HooksOutcome::Unchanged));
        };
        self.extensions.ask(
            &mut self.core,
            point.name(),
            &event,
            Continuation::Hooks(ticket, Box::new(point)),
        );
    }

    /// Waits no longer for the hooks of a point.
    pub(super) fn cancel_hooks(&mut self, ticket: u64) {
        let is_it = |continuation: &Continuation| matches!(continuation, Continuation::Hooks(own, _) if *own == ticket);
        // Without an outcome, since the machine waits for none any more (`Effect::CancelHooks`).
        self.extensions.questions.give_up(is_it);
    }

    /// Tells an event to subscribers that nothing waits for.
    pub(super) fn tell_subscribers(&mut self, event: &Event, turn: u64) {
        let told = self.subscribed_event(event, turn);
        self.extensions.tell_only(&mut self.core, event.name(), &told);
    }

    /// The hooks of a point have answered, or cannot.
    pub(super) async fn on_hooks_done(
        &mut self,
        ticket: u64,
        point: HookPoint,
        answer: Result<Value, ProcessError>,
    ) {
        let name = point.name();
        let outcome = match point {
            // The one point whose error counts: the others go on without the hooks.
            HookPoint::ToolCall { slot, .. } => checked(&mut self.turn.calls, slot, answer),
            HookPoint::ToolResult { result, is_error, .. } => {
                reviewed(result, is_error, answer.unwrap_or_default())
            }
            HookPoint::Event {
                event: Event::TurnEnd { .. },
                ..
            }
            | HookPoint::Settle { .. } => boundaries::take(self, name, answer.unwrap_or_default()).await,
            HookPoint::Event { .. } => HooksOutcome::Unchanged,
            HookPoint::Compact { .. } => {
                compaction::take_answer(answer.unwrap_or_default(), &self.core.outbox).await
            }
            HookPoint::Message(old) => {
                let new = self.replacement(&old, answer.unwrap_or_default()).await;
                new.map_or(HooksOutcome::Unchanged, |new| {
                    HooksOutcome::Message(Arc::new(new))
                })
            }
            HookPoint::Answer(old) => match self.replacement(&old.into(), answer.unwrap_or_default()).await {
                Some(Message::Assistant(new)) => HooksOutcome::Answer(new),
                // `replacement` keeps the role, so this is `None`.
                _ => HooksOutcome::Unchanged,
            },
        };
        self.drive(Input::HooksDone(ticket, outcome)).await;
    }

    /// The time of extensions is over: the rest happens without them.
    pub(super) async fn cut_off(&mut self) {
        self.extensions.abort_run(self.core.machine.has_settled());
        self.extensions.mute();
        // The machine must not ask hooks that will not answer any more.
        sync_hooks(&self.extensions, &mut self.core);
        // A call that hooks should check does not run without them.
        let is_skipped = |continuation: &Continuation| matches!(continuation, Continuation::Hooks(_, point) if !matches!(**point, HookPoint::ToolCall { .. }));
        // First the points that are skipped, so that the run can end; then requests that wait for an answer are refused.
        for continuation in self.extensions.questions.give_up(is_skipped) {
            if let Continuation::Hooks(ticket, _) = continuation {
                self.drive(Input::HooksDone(ticket, HooksOutcome::Unchanged))
                    .await;
            }
        }
        for continuation in self.extensions.questions.give_up(|_| true) {
            prompt_delivery::refuse(self, continuation).await;
        }
        let outbox = &self.core.outbox;
        self.shells.give_up_remote(strings::ABORTED, outbox).await;
        self.extensions.client_requests.refuse_all().await;
        self.extensions.providers.refuse_all().await;
    }

    /// The message that takes the place of one; none if it stays. The original then never reaches the session file, the client
    /// or the provider.
    async fn replacement(&self, old: &Message, mut answer: Value) -> Option<Message> {
        let new = answer.get_mut("message").map(Value::take)?;
        let refusal = match serde_json::from_value::<Message>(new) {
            Ok(mut new) if std::mem::discriminant(&new) == std::mem::discriminant(old) => {
                // JSON has no member for it.
                if let (Message::Assistant(new), Message::Assistant(old)) = (&mut new, old) {
                    new.http_status = old.http_status.filter(|_| new.failed());
                }
                return Some(new);
            }
            Ok(_) => "a message must keep its role".to_owned(),
            Err(error) => error.to_string(),
        };
        self.extension_failed(failure("<runtime>", "message_end", refusal))
            .await;
        None
    }

    /// The event of a point as subscribers receive it. `None` if they are not asked after all.
    fn event_at(&self, point: &HookPoint) -> Option<Value> {
        let name = point.name();
        let (mut event, parent) = match point {
            HookPoint::Event { event, turn } => return Some(self.subscribed_event(event, *turn)),
            HookPoint::Compact { reason, again } => {
                return compaction::event(&self.core, &self.summaries, *reason, *again);
            }
            HookPoint::Message(message) => (json!({"type": name, "message": message}), &None),
            HookPoint::Answer(answer) => {
                let message: Message = answer.clone().into();
                (json!({"type": name, "message": message}), &None)
            }
            HookPoint::Settle { aborted } => {
                let newest = self.core.machine.messages().iter().rev();
                let newest = newest.filter_map(|message| message.as_assistant()).next();
                let stop = newest.map(|answer| answer.stop_reason);
                let outcome = outcome(if *aborted { Some(StopReason::Aborted) } else { stop });
                (
                    json!({"type": name, "entries": [], "continue": false, "outcome": outcome}),
                    &None,
                )
            }
            HookPoint::ToolCall { slot, call, parent } => {
                // The checked arguments: the call would run with them.
                let input = self.turn.calls.args(*slot).unwrap_or(&call.arguments);
                let event =
                    json!({"type": name, "toolCallId": call.id, "toolName": call.name, "input": input});
                (event, parent)
            }
            HookPoint::ToolResult {
                call,
                parent,
                result,
                is_error,
                ..
            } => {
                let mut event = json!({
                    "type": name,
                    "toolCallId": call.id,
                    "toolName": call.name,
                    "input": call.arguments,
                    "content": result.content,
                    "isError": is_error,
                });
                if let Some(details) = &result.details {
                    put(&mut event, "details", details.clone());
                }
                if let Some(content) = &result.structured_content {
                    put(&mut event, "structuredContent", content.clone());
                }
                (event, parent)
            }
        };
        if let Some(parent) = parent {
            put(&mut event, "parentToolCallId", parent.as_str().into());
        }
        Some(event)
    }

    /// An event of a run as subscribers receive it.
    fn subscribed_event(&self, event: &Event, turn: u64) -> Value {
        let mut shown = serde_json::to_value(event).unwrap_or_default();
        match event {
            Event::TurnStart => {
                put(&mut shown, "timestamp", json!(now_ms()));
                put(&mut shown, "turnIndex", json!(turn));
            }
            Event::TurnEnd {
                message,
                tool_results,
            } => {
                put(&mut shown, "turnIndex", json!(turn));
                boundaries::describe(&self.core.conversation, &mut shown, message, tool_results);
            }
            Event::MessageUpdate { .. } => {
                // The event has the delta alone, and handlers of pi read the message so far.
                let message = self.turn.partial_message();
                put(&mut shown, "message", json!(message));
            }
            _ => {}
        }
        shown
    }
}

/// What `tool_call` hooks decided. A hook that should check a call and fails blocks it.
fn checked(calls: &mut ToolCalls, slot: usize, answer: Result<Value, ProcessError>) -> HooksOutcome {
    let mut answer = match answer {
        Ok(answer) => members(answer),
        Err(error) => return HooksOutcome::Refused(ToolResult::error(strings::unchecked(&error))),
    };
    if answer.get("block") == Some(&json!(true)) {
        let reason = answer.get("reason").and_then(Value::as_str);
        let mut result = ToolResult::error(
            reason
                .filter(|reason| !reason.is_empty())
                .unwrap_or(strings::BLOCKED),
        );
        result.terminate = answer.get("terminate").and_then(Value::as_bool);
        return HooksOutcome::Refused(result);
    }
    if let Some(Value::Object(args)) = answer.remove("input") {
        // Not validated again, as in pi (pi-core.md 1.5).
        calls.change_args(slot, args);
    }
    HooksOutcome::Unchanged
}

/// The result after `tool_result` hooks: each field that they give replaces one of the result.
fn reviewed(mut result: ToolResult, mut is_error: bool, answer: Value) -> HooksOutcome {
    let mut patch = members(answer);
    if let Some(Value::Array(content)) = patch.remove("content") {
        result.content = content.into_iter().map(block).collect();
        // It repeats the text that was replaced.
        result.structured_content = None;
        // For `serve`, which otherwise repeats the content of `read` as structured content.
        result.is_replaced = true;
    }
    // A field that is missing stays as it is; `null` removes it.
    // After the content: a hook that gives both keeps its own structured content.
    if let Some(content) = patch.remove("structuredContent") {
        result.structured_content = Some(content).filter(|content| !content.is_null());
    }
    if let Some(details) = patch.remove("details") {
        result.details = Some(details).filter(|details| !details.is_null());
    }
    if let Some(Value::Bool(failed)) = patch.remove("isError") {
        is_error = failed;
    }
    if let Some(Value::Bool(terminate)) = patch.remove("terminate") {
        result.terminate = Some(terminate);
    }
    HooksOutcome::Result { result, is_error }
}

#[cfg(test)]
mod tests {
    use wire::UserBlock;

    use super::*;

    fn refused(answer: Result<Value, ProcessError>) -> ToolResult {
        match checked(&mut ToolCalls::new(), 0, answer) {
            HooksOutcome::Refused(result) => result,
            other => panic!("{other:?}"),
        }
    }

    fn result() -> ToolResult {
        ToolResult {
            details: Some(json!({"exit": 0})),
            structured_content: Some(json!({"rows": 1})),
            ..ToolResult::text("before")
        }
    }

    fn changed(answer: Value) -> (ToolResult, bool) {
        match reviewed(result(), false, answer) {
            HooksOutcome::Result { result, is_error } => (result, is_error),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn failed_check_blocks_the_call() {
        let blocked = refused(Err(ProcessError::Gone("killed".to_owned())));
        let text = serde_json::to_string(&blocked).unwrap();
        assert!(text.contains("blocked") && text.contains("killed"), "{text}");
    }

    #[test]
    fn block_without_reason_has_a_default() {
        for answer in [json!({"block": true}), json!({"block": true, "reason": ""})] {
            assert_eq!(refused(Ok(answer)).content, [UserBlock::text(strings::BLOCKED)]);
        }
        let blocked = refused(Ok(json!({"block": true, "reason": "no", "terminate": true})));
        assert_eq!(blocked.content, [UserBlock::text("no")]);
        assert_eq!(blocked.terminate, Some(true));
    }

    #[test]
    fn only_true_blocks_a_call() {
        for answer in [
            json!(null),
            json!({"block": "true"}),
            json!({"block": 1}),
            json!({"reason": "no"}),
        ] {
            let outcome = checked(&mut ToolCalls::new(), 0, Ok(answer.clone()));
            assert!(matches!(outcome, HooksOutcome::Unchanged), "{answer}");
        }
    }

    #[test]
    fn answer_without_fields_keeps_the_result() {
        for answer in [
            json!(null),
            json!({}),
            json!({"content": "text", "isError": "yes", "terminate": 1}),
        ] {
            assert_eq!(changed(answer.clone()), (result(), false), "{answer}");
        }
    }

    #[test]
    fn new_content_drops_structured_content() {
        let (changed, _) = changed(json!({"content": ["after"]}));
        assert_eq!(changed.content, [UserBlock::text("after")]);
        assert_eq!(changed.structured_content, None);
        assert_eq!(changed.details, Some(json!({"exit": 0})), "details stay");
    }

    #[test]
    fn given_fields_replace_those_of_result() {
        let (changed, is_error) = changed(json!({
            "content": [], "structuredContent": {"rows": 2}, "details": null, "isError": true, "terminate": true
        }));
        assert_eq!(changed.structured_content, Some(json!({"rows": 2})));
        assert_eq!((changed.details, is_error), (None, true));
        assert_eq!(changed.terminate, Some(true));
    }

    #[test]
    fn null_removes_structured_content_alone() {
        let (changed, is_error) = changed(json!({"structuredContent": null}));
        assert_eq!((changed.structured_content, is_error), (None, false));
        assert_eq!(changed.content, result().content);
    }
}
