//! The conversation in pages, for clients that read a line of at most 1 MiB (dialects.md 14). A cursor names the conversation it
//! belongs to, so a client never puts pages of two conversations together.

use std::sync::Arc;

use wire::Message;
use wire::omp::{MessagesPage, MessagesPageParams, PAGE_STALE};

use crate::limits::{PAGE_BYTES, PAGE_MESSAGES, PAGE_MESSAGES_USUAL};
use crate::strings;

/// The conversation as it is now.
pub(super) struct Conversation<'a> {
    pub(super) session_id: &'a str,
    pub(super) leaf_id: Option<&'a str>,
    pub(super) messages: &'a [Arc<Message>],
}

impl Conversation<'_> {
    /// The page that a client asks for.
    ///
    /// # Errors
    /// When the limit or the cursor is invalid, or the conversation is another one than that of the cursor.
    pub(super) fn page(&self, params: &MessagesPageParams) -> Result<MessagesPage, String> {
        let limit = params
            .limit
            .map_or(Some(PAGE_MESSAGES_USUAL), |limit| usize::try_from(limit).ok());
        let limit = limit.filter(|limit| (1..=PAGE_MESSAGES).contains(limit));
        let limit = limit.ok_or_else(|| strings::page_limit(PAGE_MESSAGES))?;
        let offset = params
            .cursor
            .as_deref()
            .map_or(Ok(0), |cursor| self.offset(cursor))?;
        let mut page = Vec::new();
        // The brackets of the list. Each message adds a comma.
        let mut bytes = 2;
        for message in self.messages.iter().skip(offset).take(limit) {
            let length = serde_json::to_vec(message).map_or(0, |json| json.len() + 1);
            // A message that is longer than a page gets one of its own.
            if !page.is_empty() && bytes + length > PAGE_BYTES {
                break;
            }
            bytes += length;
            page.push(Arc::clone(message));
        }
        let next = offset + page.len();
        Ok(MessagesPage {
            messages: page,
            next_cursor: (next < self.messages.len()).then(|| format!("{next}.{}", self.mark())),
            total_messages: self.messages.len(),
        })
    }

    /// What a cursor says of the conversation.
    fn mark(&self) -> String {
        // The number of messages is part of it, so that a cursor is stale once a message was added.
        let leaf = self.leaf_id.unwrap_or_default();
        format!("{}.{leaf}.{}", self.messages.len(), self.session_id)
    }

    /// Where the page of a cursor begins.
    fn offset(&self, cursor: &str) -> Result<usize, String> {
        let parts = cursor.split_once('.');
        let parts = parts.and_then(|(offset, mark)| Some((offset.parse::<usize>().ok()?, mark)));
        // A cursor of another form is invalid. A cursor of another conversation is stale, so a client begins anew (dialects.md 14).
        let (offset, mark) = parts
            // Count, leaf and id of the session, which may have dots itself.
            .filter(|(_, mark)| mark.splitn(3, '.').count() == 3)
            .ok_or(strings::BAD_PAGE_CURSOR)?;
        // The mark says nothing of the offset, so a client could send any number.
        if mark != self.mark() || offset > self.messages.len() {
            return Err(PAGE_STALE.to_owned());
        }
        Ok(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(lengths: &[usize]) -> Vec<Arc<Message>> {
        let message = |length: &usize| Arc::new(Message::user("x".repeat(*length), 0));
        lengths.iter().map(message).collect()
    }

    fn now(messages: &[Arc<Message>]) -> Conversation<'_> {
        Conversation {
            session_id: "id",
            leaf_id: Some("leaf"),
            messages,
        }
    }

    #[test]
    fn pages_together_are_the_conversation() {
        let messages = messages(&[1, 500_000, 500_000, 900_000, 1, 1]);
        let conversation = now(&messages);
        let mut params = MessagesPageParams {
            limit: Some(3),
            ..MessagesPageParams::default()
        };
        let mut sizes = Vec::new();
        loop {
            let page = conversation.page(&params).unwrap();
            assert_eq!(page.total_messages, 6);
            sizes.push(page.messages.len());
            params.cursor = page.next_cursor;
            if params.cursor.is_none() {
                break;
            }
        }
        assert_eq!(sizes, [2, 1, 1, 2], "at most 768 KiB, but at least one message");
    }

    #[test]
    fn session_id_may_have_dots() {
        let messages = messages(&[1, 1]);
        let conversation = Conversation {
            session_id: "a.b",
            ..now(&messages)
        };
        let mut params = MessagesPageParams {
            limit: Some(1),
            ..MessagesPageParams::default()
        };
        params.cursor = conversation.page(&params).unwrap().next_cursor;
        assert_eq!(conversation.page(&params).unwrap().messages.len(), 1);
    }

    #[test]
    fn cursor_of_another_conversation_is_refused() {
        let before = messages(&[1, 1]);
        let params = MessagesPageParams {
            limit: Some(1),
            ..MessagesPageParams::default()
        };
        let cursor = now(&before).page(&params).unwrap().next_cursor;
        let page = |conversation: &Conversation<'_>, cursor: &str| {
            let cursor = Some(cursor.to_owned());
            conversation
                .page(&MessagesPageParams { cursor, limit: None })
                .map(|page| page.messages.len())
        };
        let cursor = cursor.unwrap();
        assert_eq!(page(&now(&before), &cursor), Ok(1));
        let after = messages(&[1, 1, 1]);
        assert_eq!(page(&now(&after), &cursor), Err(PAGE_STALE.to_owned()));
        for wrong in ["", "!!", "1", "x.2.leaf.id", "-1.2.leaf.id"] {
            assert_eq!(
                page(&now(&before), wrong),
                Err(strings::BAD_PAGE_CURSOR.to_owned()),
                "{wrong}"
            );
        }
        assert_eq!(page(&now(&before), "3.2.leaf.id"), Err(PAGE_STALE.to_owned()));
    }
}
