//! The beginning of the answer that is streaming in, for snapshots: clients that join or lost events in the middle of an answer
//! get it. The updates for all clients are made from the events themselves, in `serve`.

use wire::partial_json::PartialJson;
use wire::{
    AssistantBlock, AssistantMessage, Message, StreamEvent, TextContent, ThinkingContent, ToolCall, Usage,
};

/// An answer in the making.
#[derive(Debug)]
pub(super) struct Progress {
    message: AssistantMessage,
    /// JSON text of the arguments of calls that are not complete, by content index.
    arguments: Vec<(usize, String)>,
}

impl Progress {
    /// An answer that begins.
    pub(super) fn new(message: AssistantMessage) -> Self {
        Self {
            message,
            arguments: Vec::new(),
        }
    }

    /// The answer grew.
    pub(super) fn grow(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::TextStart { content_index } => {
                self.put(*content_index, AssistantBlock::Text(TextContent::default()));
            }
            StreamEvent::TextDelta { content_index, delta } => {
                if let Some(AssistantBlock::Text(text)) = self.message.content.get_mut(*content_index) {
                    text.text.push_str(delta);
                }
            }
            StreamEvent::TextEnd {
                content_index,
                content,
            } => {
                if let Some(AssistantBlock::Text(text)) = self.message.content.get_mut(*content_index) {
                    text.text.clone_from(content);
                }
            }
            StreamEvent::ThinkingStart { content_index } => {
                self.put(
                    *content_index,
                    AssistantBlock::Thinking(ThinkingContent::default()),
                );
            }
            StreamEvent::ThinkingDelta { content_index, delta } => {
                if let Some(AssistantBlock::Thinking(block)) = self.message.content.get_mut(*content_index) {
                    block.thinking.push_str(delta);
                }
            }
            StreamEvent::ThinkingEnd {
                content_index,
                content,
            } => {
                if let Some(AssistantBlock::Thinking(block)) = self.message.content.get_mut(*content_index) {
                    block.thinking.clone_from(content);
                }
            }
            StreamEvent::ToolcallStart {
                content_index,
                id,
                tool_name,
            } => {
                let call = ToolCall {
                    id: id.clone(),
                    name: tool_name.clone(),
                    ..ToolCall::default()
                };
                self.put(*content_index, AssistantBlock::ToolCall(call));
                self.arguments.push((*content_index, String::new()));
            }
            StreamEvent::ToolcallDelta { content_index, delta } => {
                if let Some((_, text)) = self.arguments.iter_mut().find(|(at, _)| at == content_index) {
                    text.push_str(delta);
                }
            }
            StreamEvent::ToolcallEnd {
                content_index,
                tool_call,
            } => {
                self.put(*content_index, AssistantBlock::ToolCall(tool_call.clone()));
                self.arguments.retain(|(at, _)| at != content_index);
            }
        }
    }

    /// The message so far; arguments that are still arriving are closed where they stand.
    pub(super) fn message(&self, usage: &Usage) -> Message {
        let mut message = self.message.clone();
        message.usage = usage.clone();
        for (at, text) in &self.arguments {
            if let Some(AssistantBlock::ToolCall(call)) = message.content.get_mut(*at) {
                let mut json = PartialJson::new();
                json.push(text);
                call.arguments = json.finish();
            }
        }
        Message::Assistant(message)
    }

    /// Blocks come in their order; a block that leaves a gap or repeats a place goes to the nearest place.
    fn put(&mut self, at: usize, block: AssistantBlock) {
        match self.message.content.get_mut(at) {
            Some(place) => *place = block,
            None => self.message.content.push(block),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wire::{AssistantMessage, StreamEvent, Usage};

    use super::Progress;

    fn shown(progress: &Progress) -> serde_json::Value {
        serde_json::to_value(progress.message(&Usage::default())).unwrap()["content"].clone()
    }

    #[test]
    fn streamed_text_and_arguments_accumulate() {
        let mut progress = Progress::new(AssistantMessage::begin("a", "p", "m", 0));
        let text = |delta: &str| StreamEvent::TextDelta {
            content_index: 0,
            delta: delta.to_owned(),
        };
        progress.grow(&StreamEvent::TextStart { content_index: 0 });
        progress.grow(&text("one "));
        progress.grow(&text("two"));
        progress.grow(&StreamEvent::ToolcallStart {
            content_index: 1,
            id: "c1".to_owned(),
            tool_name: "read".to_owned(),
        });
        progress.grow(&StreamEvent::ToolcallDelta {
            content_index: 1,
            delta: "{\"path\": \"Car".to_owned(),
        });
        assert_eq!(
            shown(&progress),
            json!([
                {"type": "text", "text": "one two"},
                {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "Car"}},
            ])
        );
    }

    #[test]
    fn delta_of_unknown_block_changes_nothing() {
        let mut progress = Progress::new(AssistantMessage::begin("a", "p", "m", 0));
        progress.grow(&StreamEvent::ThinkingDelta {
            content_index: 7,
            delta: "lost".to_owned(),
        });
        assert_eq!(shown(&progress), json!([]));
    }
}
