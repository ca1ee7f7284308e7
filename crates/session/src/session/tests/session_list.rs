//! The order of listed sessions.

use serde_json::json;
use wire::reply::ListedSession;

use super::super::session_list::put_first;

fn session(id: &str, path: &str) -> ListedSession {
    let session = json!({
        "path": path,
        "id": id,
        "cwd": "/",
        "created": "2026-01-01T00:00:00.000Z",
        "modified": "2026-01-01T00:00:00.000Z",
        "messageCount": 1,
        "firstMessage": "",
        "allMessagesText": "",
    });
    serde_json::from_value(session).unwrap()
}

#[test]
fn current_session_is_listed_first_once() {
    let stored = || vec![session("a", "/a"), session("b", "/b")];
    let ids = |sessions: &[ListedSession]| -> Vec<String> {
        sessions
            .iter()
            .map(|session| format!("{}:{}", session.id, session.path))
            .collect()
    };
    let mut known = stored();
    put_first(&mut known, session("b", "unsaved"));
    assert_eq!(ids(&known), ["b:/b", "a:/a"], "the stored form counts");
    let mut new = stored();
    put_first(&mut new, session("c", "unsaved"));
    assert_eq!(ids(&new), ["c:unsaved", "a:/a", "b:/b"]);
}
