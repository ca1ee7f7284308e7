//! Headers that GitHub Copilot wants with each request (providers.md 10), in whichever family it is asked.

use wire::{Message, UserBlock, UserContent};

use crate::error::LlmError;
use crate::http::Headers;
use crate::request::ModelRequest;

/// Sets them, when the model is Copilot's.
pub(crate) fn headers(request: &ModelRequest, headers: &mut Headers) -> Result<(), LlmError> {
    if request.model.provider != "github-copilot" {
        return Ok(());
    }
    let by_user = request
        .messages
        .last()
        .is_none_or(|message| matches!(**message, Message::User(_)));
    headers.set("x-initiator", if by_user { "user" } else { "agent" })?;
    headers.set("openai-intent", "conversation-edits")?;
    if request.messages.iter().any(|message| has_image(message)) {
        headers.set("copilot-vision-request", "true")?;
    }
    Ok(())
}

fn has_image(message: &Message) -> bool {
    let blocks = match message {
        Message::User(user) => match &user.content {
            UserContent::Blocks(blocks) => blocks,
            UserContent::Text(_) => return false,
        },
        Message::ToolResult(result) => &result.content,
        _ => return false,
    };
    blocks.iter().any(|block| matches!(block, UserBlock::Image(_)))
}
