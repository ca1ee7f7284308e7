//! The result messages of the calls of one answer, and when clients receive them: all at the end of the turn (`turn_loop`), or each one
//! when its call ends.

use std::collections::HashSet;
use std::sync::Arc;

use wire::{AssistantMessage, Event, Message, ToolCall, ToolResult, ToolResultMessage};

use crate::effect::Effect;
use crate::settings::ResultOrder;

/// Results that are stored and sent while other calls of their answer go on. Empty if the results come in the order of the calls.
#[derive(Debug, Clone)]
pub(crate) struct EarlyResults {
    order: ResultOrder,
    /// The time of the newest input.
    now: i64,
    /// In the order of the ends, with the position of the call.
    told: Vec<(usize, Arc<Message>)>,
    /// How many of them have joined the conversation.
    joined: usize,
}

impl EarlyResults {
    pub(crate) fn new(order: ResultOrder, answer: &AssistantMessage, now: i64) -> Self {
        let mut ids = HashSet::new();
        let are_distinct = answer.tool_calls().all(|call| ids.insert(call.id.as_str()));
        Self {
            // Only the order of the calls says which of the calls with the same id a result belongs to.
            order: if are_distinct { order } else { ResultOrder::Calls },
            now,
            told: Vec::new(),
            joined: 0,
        }
    }

    /// An input comes at this time.
    pub(crate) fn tick(&mut self, now: i64) {
        self.now = now;
    }

    /// A call has ended: stores and sends its result, unless it waits for the other calls. `result` makes the message for a time.
    pub(crate) fn tell(
        &mut self,
        slot: usize,
        result: impl FnOnce(i64) -> Arc<Message>,
        out: &mut Vec<Effect>,
    ) {
        if self.order != ResultOrder::Ends {
            return;
        }
        let message = result(self.now);
        out.push(Effect::Emit(Event::MessageStart {
            message: Arc::clone(&message),
        }));
        // As every message: on disk first, then told (GUARANTEES.md, 4).
        out.push(Effect::Persist(Arc::clone(&message)));
        out.push(Effect::Emit(Event::MessageEnd {
            message: Arc::clone(&message),
        }));
        self.told.push((slot, message));
    }

    /// The results that clients have and the conversation lacks. Each is returned once.
    pub(crate) fn join(&mut self) -> Vec<Arc<Message>> {
        let joined = std::mem::replace(&mut self.joined, self.told.len());
        self.messages().skip(joined).map(Arc::clone).collect()
    }

    /// The results that clients have, in the order of the ends.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.told.iter().map(|(_, message)| message)
    }

    /// The results in the order of the calls; none if clients have none yet.
    pub(crate) fn in_call_order(&self) -> Option<Vec<Arc<Message>>> {
        let mut told: Vec<_> = self.told.iter().collect();
        told.sort_by_key(|(slot, _)| *slot);
        let messages = told.into_iter().map(|(_, message)| Arc::clone(message));
        (!self.told.is_empty()).then(|| messages.collect())
    }

    /// Puts another message in the place of a result that has not left the machine.
    pub(crate) fn replace(&mut self, old: &Arc<Message>, new: &Arc<Message>) {
        // By address: the effects of the result share it.
        let found = self.told.iter_mut().find(|(_, known)| Arc::ptr_eq(known, old));
        if let Some((_, message)) = found {
            *message = Arc::clone(new);
        }
    }
}

/// The message with the result of a call. `duration_ms` is none if the tool did not run.
pub(crate) fn result_message(
    call: &ToolCall,
    result: ToolResult,
    is_error: bool,
    duration_ms: Option<u64>,
    now: i64,
) -> Arc<Message> {
    let mut extra = serde_json::Map::new();
    // Requests that the tool made itself: pi stores their usage with the result and counts it in totals (pi-1.5-delta.md 3).
    if let Some(usage) = result.usage.and_then(|usage| serde_json::to_value(usage).ok()) {
        extra.insert("usage".to_owned(), usage);
    }
    Arc::new(Message::ToolResult(ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: result.content,
        details: result.details,
        is_error,
        duration_ms,
        timestamp: now,
        extra: extra.into(),
    }))
}
