//! What the read-only commands reply.

use std::path::Path;
use std::sync::Arc;

use agent::{Change, LoopSettings, Machine};
use wire::command::{EntriesParams, StatsParams};
use wire::{AssistantBlock, AssistantMessage, Message, StopReason, TextContent};

use super::super::view::View;
use super::{Conversation, conversation, user};
use crate::limits;
use crate::outbox::outbox;

fn answer(text: &str, reason: StopReason) -> Arc<Message> {
    let mut answer = AssistantMessage::begin("api", "test", "a", 1);
    answer.stop_reason = reason;
    if !text.is_empty() {
        answer.content.push(AssistantBlock::Text(TextContent {
            text: text.to_owned(),
            ..TextContent::default()
        }));
    }
    Arc::new(Message::Assistant(answer))
}

/// A machine and a log with these messages.
async fn with(messages: Vec<Arc<Message>>, path: Option<&Path>) -> (Machine, Conversation) {
    let (outbox, _sent) = outbox(limits::OUTBOX);
    let mut conversation = conversation(path);
    for message in &messages {
        conversation.log.persist(Arc::clone(message), &outbox).await;
    }
    let mut machine = Machine::default();
    let settings = LoopSettings::default();
    machine.step(Change::Open { settings, messages }.into(), 0, &mut Vec::new());
    (machine, conversation)
}

fn view<'a>((machine, conversation): &'a (Machine, Conversation)) -> View<'a> {
    View {
        machine,
        conversation,
        cwd: Path::new("/work"),
    }
}

#[tokio::test]
async fn last_text_skips_empty_aborted_answer() {
    let messages = vec![
        user("hello"),
        answer(" first \n", StopReason::Stop),
        answer("", StopReason::Aborted),
    ];
    let session = with(messages, None).await;
    assert_eq!(view(&session).last_text().text.as_deref(), Some("first"));
    let aborted = with(vec![answer("begun", StopReason::Aborted)], None).await;
    assert_eq!(view(&aborted).last_text().text.as_deref(), Some("begun"));
    let none = with(vec![user("hello")], None).await;
    assert_eq!(view(&none).last_text().text, None);
}

#[tokio::test]
async fn entries_since_unknown_id_are_refused() {
    let session = with(vec![user("one"), user("two"), user("three")], None).await;
    let all = view(&session).entries(&EntriesParams::default()).unwrap();
    assert_eq!(all.entries.len(), 3);
    assert_eq!(all.leaf_id.as_deref(), Some(all.entries[2].id.as_str()));
    let since = EntriesParams {
        since: Some(all.entries[0].id.clone()),
    };
    assert_eq!(view(&session).entries(&since).unwrap().entries, all.entries[1..]);
    let unknown = EntriesParams {
        since: Some("nothing".to_owned()),
    };
    assert!(view(&session).entries(&unknown).unwrap_err().contains("nothing"));
}

#[tokio::test]
async fn fork_messages_number_lines_after_header() {
    let session = with(
        vec![user("one"), answer("no", StopReason::Stop), user("two")],
        None,
    )
    .await;
    let forks = view(&session).fork_messages(true).messages;
    let seen: Vec<_> = forks
        .iter()
        .map(|fork| (fork.text.as_str(), fork.entry_index))
        .collect();
    assert_eq!(seen, [("one", Some(1)), ("two", Some(3))]);
    let plain = view(&session).fork_messages(false).messages;
    assert!(plain.iter().all(|fork| fork.entry_index.is_none()));
}

#[tokio::test]
async fn stats_count_models_only_when_asked() {
    let session = with(vec![user("one"), answer("two", StopReason::Stop)], None).await;
    let stats = view(&session).stats(StatsParams::default(), wire::Dialect::Auto);
    assert_eq!(
        (
            stats.user_messages,
            stats.assistant_messages,
            stats.total_messages
        ),
        (1, 1, 2)
    );
    assert!(stats.by_model.is_none());
    let params = StatsParams { by_model: true };
    assert!(
        view(&session)
            .stats(params, wire::Dialect::Auto)
            .by_model
            .is_some()
    );
}

#[tokio::test]
async fn session_without_file_is_not_listed() {
    let messages = || vec![user("one"), user("two")];
    let in_memory = with(messages(), None).await;
    assert!(view(&in_memory).listed().is_none());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    let empty = with(Vec::new(), Some(&path)).await;
    assert!(view(&empty).listed().is_none(), "nothing was said in it");
    let stored = with(messages(), Some(&path)).await;
    let listed = view(&stored).listed().unwrap();
    assert_eq!((listed.first_message.as_str(), listed.message_count), ("one", 2));
    assert_eq!(listed.cwd, "/work");
    assert_eq!(Some(listed.path), view(&stored).open_session().session_file);
}
