//! Conversions between messages of one role and messages of any role.

use std::sync::Arc;

use crate::message::{
    AssistantMessage, BashExecutionMessage, CustomMessage, Message, ToolResultMessage, UserMessage,
};

impl From<UserMessage> for Message {
    fn from(message: UserMessage) -> Self {
        Self::User(message)
    }
}

impl From<AssistantMessage> for Message {
    fn from(message: AssistantMessage) -> Self {
        Self::Assistant(message)
    }
}

impl From<ToolResultMessage> for Message {
    fn from(message: ToolResultMessage) -> Self {
        Self::ToolResult(message)
    }
}

impl From<BashExecutionMessage> for Message {
    fn from(message: BashExecutionMessage) -> Self {
        Self::BashExecution(message)
    }
}

impl From<CustomMessage> for Message {
    fn from(message: CustomMessage) -> Self {
        Self::Custom(message)
    }
}

impl From<AssistantMessage> for Arc<Message> {
    fn from(message: AssistantMessage) -> Self {
        Arc::new(Message::Assistant(message))
    }
}
