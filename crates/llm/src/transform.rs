//! Prepares a conversation for a model that may be another one than the one it was held with (providers.md 2.2). How it is
//! then written is decided in the families.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use wire::{
    AssistantBlock, AssistantMessage, Message, Model, TextContent, ThinkingContent, ToolResultMessage,
    UserBlock, UserContent, UserMessage,
};

use crate::ids;
use crate::image_limits;
use crate::request::ForeignThinking;

/// Stands for an image in a user message.
pub(crate) const USER_IMAGE: &str = "(image omitted: model does not support images)";

/// Stands for an image in a tool result.
pub(crate) const TOOL_IMAGE: &str = "(tool image omitted: model does not support images)";

/// Text of a tool result that has nothing but images.
pub(crate) const ONLY_IMAGES: &str = "(see attached image)";

/// Text of a tool result that says nothing.
pub(crate) const NO_OUTPUT: &str = "(no tool output)";

/// Leads the images of tool results where a result cannot hold them.
pub(crate) const IMAGES_FOLLOW: &str = "Attached image(s) from tool result:";

/// Stands for images in the result of a failed call, where they follow all results.
const ERROR_IMAGES: &str = "(the images follow the tool results)";

/// Result of a call that has none.
pub(crate) const NO_RESULT: &str = "No result provided";

/// Makes an id of a call that the target's API takes, given the answer of another model that the call is in.
pub(crate) type Normalise<'a> = &'a dyn Fn(&str, &AssistantMessage) -> String;

/// Gives the conversation as `target` can take it: failed answers are gone, every call has exactly one result, directly
/// behind its answer, and what only the original model understands is plain. Messages that need no change are shared.
pub(crate) fn transform<'a>(
    messages: &'a [Arc<Message>],
    target: &'a Model,
    foreign_thinking: ForeignThinking,
    normalise: Normalise<'a>,
) -> Vec<Arc<Message>> {
    let mut pass = Pass {
        target,
        foreign_thinking,
        normalise,
        taken: HashSet::new(),
        open: Vec::new(),
        out: Vec::with_capacity(messages.len()),
    };
    for message in messages {
        match &**message {
            Message::User(user) => {
                pass.settle();
                pass.user(message, user);
            }
            Message::Assistant(answer) if !answer.failed() => {
                pass.settle();
                pass.assistant(message, answer);
            }
            Message::ToolResult(result) => pass.result(message, result),
            _ => {}
        }
    }
    pass.settle();
    image_limits::apply(&mut pass.out, target);
    pass.out
}

/// The result of a failed call for APIs that refuse images in it: its images follow all results of the turn.
pub(crate) struct TextOnlyError<'a> {
    /// The text of the result, with a placeholder for each run of images.
    pub(crate) text: String,
    /// Leads the images, which no longer stand in the result of their call.
    pub(crate) caption: String,
    /// The images.
    pub(crate) images: Vec<&'a UserBlock>,
}

impl<'a> TextOnlyError<'a> {
    /// None for a result that can be sent as it is.
    pub(crate) fn of(result: &'a ToolResultMessage) -> Option<Self> {
        let is_image = |block: &&UserBlock| matches!(block, UserBlock::Image(_));
        let images: Vec<&UserBlock> = result.content.iter().filter(is_image).collect();
        if !result.is_error || images.is_empty() {
            return None;
        }
        let mut texts = Vec::with_capacity(result.content.len());
        for block in &result.content {
            let text = block.as_text().unwrap_or(ERROR_IMAGES);
            if text != ERROR_IMAGES || texts.last() != Some(&ERROR_IMAGES) {
                texts.push(text);
            }
        }
        let (id, name) = (&result.tool_call_id, &result.tool_name);
        Some(Self {
            text: texts.join("\n"),
            caption: format!("Image(s) of the failed tool call {id} ({name}):"),
            images,
        })
    }
}

/// One pass over a conversation.
struct Pass<'a> {
    target: &'a Model,
    foreign_thinking: ForeignThinking,
    normalise: Normalise<'a>,
    /// The ids of other models' calls, as the target takes them.
    taken: HashSet<String>,
    /// Calls of the last answer that have no result yet.
    open: Vec<OpenCall<'a>>,
    out: Vec<Arc<Message>>,
}

/// A call without a result.
struct OpenCall<'a> {
    /// Its id in the conversation, by which its result is found. Servers that number the calls of each answer anew use it again.
    original: &'a str,
    /// Its id as the target takes it.
    id: Cow<'a, str>,
    tool: &'a str,
}

impl<'a> Pass<'a> {
    /// Answers open calls with a result.
    fn settle(&mut self) {
        for call in self.open.drain(..) {
            let content = vec![UserBlock::text(NO_RESULT)];
            let result = ToolResultMessage {
                tool_call_id: call.id.into_owned(),
                tool_name: call.tool.to_owned(),
                content,
                details: None,
                is_error: true,
                duration_ms: None,
                timestamp: 0,
                extra: wire::Extra::default(),
            };
            self.out.push(Arc::new(Message::ToolResult(result)));
        }
    }

    /// A user message, images replaced where they cannot be seen.
    fn user(&mut self, message: &Arc<Message>, user: &UserMessage) {
        let shared = match &user.content {
            UserContent::Blocks(blocks) => self.without_images(blocks, USER_IMAGE),
            UserContent::Text(_) => None,
        };
        self.out.push(match shared {
            None => Arc::clone(message),
            Some(blocks) => {
                let content = UserContent::Blocks(blocks);
                Arc::new(Message::User(UserMessage {
                    content,
                    timestamp: user.timestamp,
                    extra: wire::Extra::default(),
                }))
            }
        });
    }

    /// An answer. A second call of the same id is left out: no result could be told from the other's.
    fn assistant(&mut self, message: &Arc<Message>, answer: &'a AssistantMessage) {
        let same = self.target.is_same(&answer.provider, &answer.api, &answer.model);
        if same && unchanged(answer) {
            let calls = answer.content.iter().filter_map(AssistantBlock::as_tool_call);
            self.open.extend(calls.map(|call| OpenCall {
                original: &call.id,
                id: Cow::Borrowed(&*call.id),
                tool: &call.name,
            }));
            self.out.push(Arc::clone(message));
            return;
        }
        let mut ids = HashSet::new();
        let mut content = Vec::with_capacity(answer.content.len());
        for original in &answer.content {
            if let AssistantBlock::ToolCall(call) = original
                && !ids.insert(call.id.as_str())
            {
                continue;
            }
            let Some(block) = (if same {
                own_block(original)
            } else {
                self.foreign_block(original, answer)
            }) else {
                continue;
            };
            if let (AssistantBlock::ToolCall(call), AssistantBlock::ToolCall(named)) = (&block, original) {
                self.open.push(OpenCall {
                    original: &named.id,
                    id: Cow::Owned(call.id.clone()),
                    tool: &named.name,
                });
            }
            content.push(block);
        }
        let changed = content != answer.content;
        self.out.push(if changed {
            Arc::new(Message::Assistant(AssistantMessage {
                content,
                ..answer.clone()
            }))
        } else {
            Arc::clone(message)
        });
    }

    /// A block that another model wrote: without what only that model understands.
    fn foreign_block(&mut self, block: &AssistantBlock, answer: &AssistantMessage) -> Option<AssistantBlock> {
        match block {
            AssistantBlock::Text(text) => Some(AssistantBlock::text(text.text.clone())),
            AssistantBlock::Thinking(thinking) => {
                let hidden = self.foreign_thinking == ForeignThinking::Omit
                    || thinking.redacted == Some(true)
                    || thinking.thinking.trim().is_empty();
                (!hidden).then(|| AssistantBlock::Text(TextContent::new(thinking.thinking.clone())))
            }
            AssistantBlock::ToolCall(call) => {
                let id = self.foreign_id(&call.id, answer);
                let mut call = call.clone();
                call.id = id;
                call.thought_signature = None;
                Some(AssistantBlock::ToolCall(call))
            }
        }
    }

    /// The id of another model's call as the target takes it. No two calls get the same, even if two answers use the same:
    /// Anthropic refuses a conversation in which an id occurs twice.
    fn foreign_id(&mut self, old: &str, answer: &AssistantMessage) -> String {
        let mut id = (self.normalise)(old, answer);
        let mut number = self.taken.len();
        while !self.taken.insert(id.clone()) {
            let hash = ids::short_hash(&format!("{old} {number}"));
            id = (self.normalise)(&format!("call_{hash}"), answer);
            number += 1;
        }
        id
    }

    /// Sends a result if its call is open. Providers refuse requests with other results.
    fn result(&mut self, message: &Arc<Message>, result: &ToolResultMessage) {
        let own = result.tool_call_id.as_str();
        let Some(at) = self.open.iter().position(|call| call.original == own) else {
            return;
        };
        let id = self.open.remove(at).id;
        let images = self.without_images(&result.content, TOOL_IMAGE);
        if images.is_none() && id == own {
            self.out.push(Arc::clone(message));
            return;
        }
        let content = images.unwrap_or_else(|| result.content.clone());
        let result = ToolResultMessage {
            tool_call_id: id.into_owned(),
            content,
            details: None,
            ..result.clone()
        };
        self.out.push(Arc::new(Message::ToolResult(result)));
    }

    /// The blocks with a placeholder for each run of images; none when nothing has to change.
    fn without_images(&self, blocks: &[UserBlock], placeholder: &str) -> Option<Vec<UserBlock>> {
        let has_image = blocks.iter().any(|block| matches!(block, UserBlock::Image(_)));
        if self.target.sees_images() || !has_image {
            return None;
        }
        let mut out: Vec<UserBlock> = Vec::with_capacity(blocks.len());
        for block in blocks {
            match block {
                UserBlock::Text(_) => out.push(block.clone()),
                UserBlock::Image(_) if out.last().and_then(UserBlock::as_text) == Some(placeholder) => {}
                UserBlock::Image(_) => out.push(UserBlock::text(placeholder)),
            }
        }
        Some(out)
    }
}

/// Returns true if an answer of the same model needs no change. This common case is decided without a copy, since every
/// request checks every answer of the conversation.
fn unchanged(answer: &AssistantMessage) -> bool {
    // One call cannot be another's twin.
    let mut ids = (answer.tool_calls().nth(1).is_some()).then(HashSet::new);
    answer.content.iter().all(|block| match (block, &mut ids) {
        (AssistantBlock::Thinking(thinking), _) => is_own(thinking),
        (AssistantBlock::ToolCall(call), Some(ids)) => ids.insert(call.id.as_str()),
        (AssistantBlock::Text(_) | AssistantBlock::ToolCall(_), _) => true,
    })
}

/// Reasoning that its own model takes back: not without text and signature.
fn is_own(thinking: &ThinkingContent) -> bool {
    let signed = thinking
        .thinking_signature
        .as_deref()
        .is_some_and(|signature| !signature.is_empty());
    signed || !thinking.thinking.trim().is_empty()
}

/// A block that the same model wrote: everything but reasoning without text and signature.
fn own_block(block: &AssistantBlock) -> Option<AssistantBlock> {
    match block {
        AssistantBlock::Thinking(thinking) => is_own(thinking).then(|| block.clone()),
        AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) => Some(block.clone()),
    }
}
