//! The memory budget of all clients: reservations are returned, and no client takes all of it.

use serve::connection::EventNumbers as _;

use crate::clients::{Clients, Over, Resume};
use crate::frame_text::FrameText;
use crate::limits::{
    WEB_CLIENT_BYTES, WEB_FREE_BYTES, WEB_LOG_BYTES, WEB_MEMORY_BYTES, WEB_MESSAGE_BYTES, WEB_UNREAD_BYTES,
};
use crate::log::{Entry, Subject, Text};
use crate::memory::{Full, Memory};

#[test]
fn reservation_returns_its_bytes_when_dropped() {
    let memory = Memory::new(100_000 + WEB_FREE_BYTES);
    let account = memory.account();
    let mut held = account.reserve(WEB_FREE_BYTES).unwrap();
    assert_eq!(memory.held(), 0, "the first bytes are the client's own");
    held.grow(60_000).unwrap();
    assert_eq!(memory.held(), 60_000);
    let other = memory.account().reserve(WEB_FREE_BYTES + 50_000).unwrap();
    assert_eq!(memory.held(), 110_000);
    assert_eq!(held.grow(50_000).err(), Some(Full));
    assert_eq!(memory.held(), 110_000, "a refused part changes nothing");
    held.shrink(60_000);
    assert_eq!(memory.held(), 50_000);
    drop(held.take());
    drop((held, other));
    assert_eq!(memory.held(), 0);
}

#[test]
fn full_server_still_accepts_small_messages() {
    let memory = Memory::new(1_000);
    let large = memory.account().reserve(WEB_FREE_BYTES + 1_000).unwrap();
    let small = memory.account().reserve(WEB_FREE_BYTES).unwrap();
    assert_eq!(memory.account().reserve(WEB_FREE_BYTES + 1).err(), Some(Full));
    drop(large);
    assert!(memory.account().fits(WEB_FREE_BYTES + 1));
    drop(small);
    assert_eq!(memory.held(), 0);
}

#[test]
fn single_client_memory_is_limited() {
    const { assert!(WEB_MESSAGE_BYTES + WEB_FREE_BYTES < WEB_CLIENT_BYTES) };
    const { assert!(2 * WEB_CLIENT_BYTES <= WEB_MEMORY_BYTES) };
    let memory = Memory::default();
    let account = memory.account();
    let first = account.reserve(WEB_MESSAGE_BYTES).unwrap();
    assert_eq!(account.clone().reserve(WEB_MESSAGE_BYTES).err(), Some(Full));
    let other = memory.account().reserve(WEB_MESSAGE_BYTES).unwrap();
    let whole = account.reserve_whole(WEB_CLIENT_BYTES / 2).unwrap();
    assert_eq!(account.reserve_whole(usize::MAX).err(), Some(Full));
    drop((first, other, whole));
    assert_eq!(memory.held(), 0);
}

/// A response of so many bytes.
fn response(bytes: usize) -> FrameText {
    "x".repeat(bytes).into()
}

#[test]
fn stalled_client_is_expelled_at_memory_limit() {
    let clients = Clients::new(Memory::default());
    let subscription = clients.join(&Resume::default()).unwrap();
    let piece = response(4 << 20);
    let mut frames = Vec::new();
    // What it reads, however much, is no trouble.
    for _ in 0..40 {
        clients.tell(subscription.id(), piece.clone());
        subscription.take(&mut frames).unwrap();
        assert_eq!(frames.len(), 1);
        frames.clear();
    }
    subscription.take(&mut frames).unwrap();
    assert_eq!(clients.held(), 0);
    let mut most = 0;
    for _ in 0..40 {
        clients.tell(subscription.id(), piece.clone());
        most = most.max(clients.held());
    }
    assert!(
        (WEB_UNREAD_BYTES / 2..=WEB_UNREAD_BYTES).contains(&most),
        "{most}"
    );
    assert_eq!(subscription.take(&mut frames), Err(Over::TooSlow));
    assert_eq!(clients.held(), 0, "nothing is kept for it");
    assert!(frames.is_empty());
}

#[test]
fn single_long_response_is_sent_alone() {
    let clients = Clients::new(Memory::default());
    let subscription = clients.join(&Resume::default()).unwrap();
    let mut frames = Vec::new();
    clients.tell(subscription.id(), response(100 << 20));
    subscription.take(&mut frames).unwrap();
    assert_eq!(frames.len(), 1);
    // It is charged until the client has it.
    assert!(clients.held() > 90 << 20);
    let other = clients.join(&Resume::default()).unwrap();
    clients.tell(other.id(), response(100 << 20));
    assert_eq!(other.take(&mut frames), Err(Over::TooSlow), "no memory for both");
    frames.clear();
    subscription.take(&mut frames).unwrap();
    assert_eq!(clients.held(), 0);
}

#[test]
fn long_response_survives_events_behind_it() {
    let clients = Clients::new(Memory::default());
    let subscription = clients.join(&Resume::default()).unwrap();
    let event = |text: String| Entry {
        subject: Subject {
            name: "notice",
            session: None,
        },
        text: Text::Line(format!("{{\"type\":\"notice\",\"message\":\"{text}\"").into()),
    };
    clients.tell(subscription.id(), response(WEB_UNREAD_BYTES + 1));
    clients.push(event("short".to_owned()));
    clients.publish();
    let mut frames = Vec::new();
    subscription.take(&mut frames).unwrap();
    assert_eq!(frames.len(), 1);
    frames.clear();
    subscription.take(&mut frames).unwrap();
    assert_eq!(frames.len(), 1, "the event follows");
    frames.clear();
    subscription.take(&mut frames).unwrap();
    // The log keeps no events for a client that such a response waits for.
    let before = clients.last();
    clients.tell(subscription.id(), response(WEB_UNREAD_BYTES + 1));
    for _ in 0..3 {
        clients.push(event("x".repeat(WEB_LOG_BYTES / 2)));
        clients.publish();
    }
    assert_eq!(clients.count_after(before), None);
    subscription.take(&mut frames).unwrap();
    assert_eq!(frames.len(), 1);
}

#[test]
fn readers_of_responses_share_memory_budget() {
    let clients = Clients::new(Memory::default());
    let piece = response(16 << 20);
    let mut subscriptions = Vec::new();
    for _ in 0..40 {
        let subscription = clients.join_for_answer(clients.account()).unwrap();
        clients.tell(subscription.id(), piece.clone());
        subscriptions.push(subscription);
    }
    assert!(clients.held() <= WEB_MEMORY_BYTES);
    let served = |subscription: &&crate::clients::Subscription| subscription.take(&mut Vec::new()).is_ok();
    let served = subscriptions.iter().filter(served).count();
    assert!((WEB_MEMORY_BYTES / (16 << 20)..40).contains(&served), "{served}");
    drop(subscriptions);
    assert_eq!(clients.held(), 0);
}
