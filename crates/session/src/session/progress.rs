//! The beginning of the answer that is streaming in, for snapshots and extensions: clients that join or lost events in the middle
//! of an answer get it. The stream holds the text, which can be megabytes, so here is only how much of it was announced. The
//! updates for all clients are made from the events themselves, in `serve`.

use wire::partial_json::PartialJson;
use wire::{
    AssistantBlock, AssistantMessage, Message, StreamEvent, TextContent, ThinkingContent, ToolCall, Usage,
};

/// An answer in the making.
#[derive(Debug)]
pub(super) struct Progress {
    /// The message as it began.
    head: AssistantMessage,
    blocks: Vec<Block>,
}

/// As much of a block as was announced.
#[derive(Debug)]
enum Block {
    /// Bytes of a text.
    Text(usize),
    /// Bytes of reasoning.
    Thinking(usize),
    /// A call, and the JSON text of its arguments until it is complete.
    Call(ToolCall, Option<String>),
}

impl Progress {
    /// An answer that begins.
    pub(super) fn new(head: AssistantMessage) -> Self {
        Self {
            head,
            blocks: Vec::new(),
        }
    }

    /// The answer grew.
    pub(super) fn grow(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::TextStart { content_index } => self.put(*content_index, Block::Text(0)),
            StreamEvent::ThinkingStart { content_index } => self.put(*content_index, Block::Thinking(0)),
            StreamEvent::TextDelta { content_index, delta }
            | StreamEvent::ThinkingDelta { content_index, delta } => {
                if let Some(Block::Text(bytes) | Block::Thinking(bytes)) = self.blocks.get_mut(*content_index)
                {
                    *bytes += delta.len();
                }
            }
            StreamEvent::TextEnd {
                content_index,
                content,
            }
            | StreamEvent::ThinkingEnd {
                content_index,
                content,
            } => {
                // The end brings the whole text, which a provider may have replaced.
                if let Some(Block::Text(bytes) | Block::Thinking(bytes)) = self.blocks.get_mut(*content_index)
                {
                    *bytes = content.len();
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
                self.put(*content_index, Block::Call(call, Some(String::new())));
            }
            StreamEvent::ToolcallDelta { content_index, delta } => {
                if let Some(Block::Call(_, Some(text))) = self.blocks.get_mut(*content_index) {
                    text.push_str(delta);
                }
            }
            StreamEvent::ToolcallEnd {
                content_index,
                tool_call,
            } => self.put(*content_index, Block::Call(tool_call.clone(), None)),
        }
    }

    /// The message so far, with text of `content`, which may be ahead; arguments that are still arriving are closed where they
    /// stand.
    pub(super) fn message(&self, content: &[AssistantBlock], usage: &Usage) -> Message {
        let mut message = self.head.clone();
        message.usage = usage.clone();
        let blocks = self.blocks.iter().enumerate();
        message
            .content
            .extend(blocks.map(|(at, block)| block.shown(content.get(at))));
        Message::Assistant(message)
    }

    /// Blocks come in their order; a block that leaves a gap or repeats a place goes to the nearest place.
    fn put(&mut self, at: usize, block: Block) {
        match self.blocks.get_mut(at) {
            Some(place) => *place = block,
            None => self.blocks.push(block),
        }
    }
}

impl Block {
    fn shown(&self, whole: Option<&AssistantBlock>) -> AssistantBlock {
        match (self, whole) {
            (Self::Text(bytes), whole) => {
                let text = match whole {
                    Some(AssistantBlock::Text(whole)) => start(&whole.text, *bytes),
                    _ => "",
                };
                AssistantBlock::Text(TextContent {
                    text: text.to_owned(),
                    ..TextContent::default()
                })
            }
            (Self::Thinking(bytes), whole) => {
                let text = match whole {
                    Some(AssistantBlock::Thinking(whole)) => start(&whole.thinking, *bytes),
                    _ => "",
                };
                AssistantBlock::Thinking(ThinkingContent {
                    thinking: text.to_owned(),
                    ..ThinkingContent::default()
                })
            }
            (Self::Call(call, None), _) => AssistantBlock::ToolCall(call.clone()),
            (Self::Call(call, Some(text)), _) => {
                // Parsed only for a snapshot. Parsing with each delta would cost every answer what hardly any client asks for.
                let mut json = PartialJson::new();
                json.push(text);
                AssistantBlock::ToolCall(ToolCall {
                    arguments: json.finish(),
                    ..call.clone()
                })
            }
        }
    }
}

/// The first bytes of a text.
fn start(text: &str, bytes: usize) -> &str {
    // A provider may have replaced the text since, so that the place may be inside of a character.
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wire::{AssistantBlock, AssistantMessage, StreamEvent, TextContent, Usage};

    use super::Progress;

    fn shown(progress: &Progress, text: &str) -> serde_json::Value {
        let content = [AssistantBlock::Text(TextContent {
            text: text.to_owned(),
            ..TextContent::default()
        })];
        let message = progress.message(&content, &Usage::default());
        serde_json::to_value(message).unwrap()["content"].clone()
    }

    #[test]
    fn text_ahead_of_events_is_cut() {
        let mut progress = Progress::new(AssistantMessage::begin("a", "p", "m", 0));
        let text = |delta: &str| StreamEvent::TextDelta {
            content_index: 0,
            delta: delta.to_owned(),
        };
        progress.grow(&StreamEvent::TextStart { content_index: 0 });
        assert_eq!(shown(&progress, "one"), json!([{"type": "text", "text": ""}]));
        progress.grow(&text("one"));
        assert_eq!(
            shown(&progress, "one two"),
            json!([{"type": "text", "text": "one"}])
        );
        // Replaced since: the place is in the middle of a character.
        assert_eq!(
            shown(&progress, "o\u{20ac}"),
            json!([{"type": "text", "text": "o"}])
        );
        progress.grow(&StreamEvent::TextEnd {
            content_index: 0,
            content: "one two".to_owned(),
        });
        assert_eq!(
            shown(&progress, "one two"),
            json!([{"type": "text", "text": "one two"}])
        );
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
            shown(&progress, "one two three"),
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
        assert_eq!(shown(&progress, "lost"), json!([]));
    }
}
