//! Looking at all of a session: `get_tree` and `get_entries`, of files that other programs wrote. Forking is in `forks`.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::check;
use crate::kit::{Pi, World, text};

/// A session file with these lines after its header.
fn file_of(world: &World, entries: &[Value]) -> PathBuf {
    let path = world.dir.root().join("foreign.jsonl");
    let header = json!({"type": "session", "version": 3, "id": "11111111-2222-4333-8444-555555555555",
                        "timestamp": "2026-01-01T10:00:00.000Z", "cwd": world.dir.cwd(), "vendorField": {"kept": true}});
    let mut content = format!("{header}\n");
    for entry in entries {
        content.push_str(&format!("{entry}\n"));
    }
    fs::write(&path, content).unwrap();
    path
}

fn entry(kind: &str, id: &str, parent: Option<&str>, second: u32, more: Value) -> Value {
    let mut entry = json!({"type": kind, "id": id, "parentId": parent,
                           "timestamp": format!("2026-01-01T10:01:{second:02}.000Z")});
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    entry
}

fn user(id: &str, parent: Option<&str>, second: u32, text: &str) -> Value {
    let message = json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1_767_261_660_000_u64});
    entry("message", id, parent, second, json!({ "message": message }))
}

fn open(world: &World, entries: &[Value]) -> (Pi, PathBuf) {
    let path = file_of(world, entries);
    (world.start_with(&["--session", path.to_str().unwrap()]), path)
}

/// Ids of a tree, nested as it is.
fn shape(nodes: &Value) -> Value {
    let nodes = nodes.as_array().unwrap().iter();
    nodes
        .map(|node| json!([node["entry"]["id"], shape(&node["children"])]))
        .collect()
}

/// The node of an entry.
fn node<'a>(nodes: &'a Value, id: &str) -> Option<&'a Value> {
    nodes.as_array().unwrap().iter().find_map(|found| {
        if found["entry"]["id"] == id {
            Some(found)
        } else {
            node(&found["children"], id)
        }
    })
}

#[test]
fn tree_lists_branches_roots_and_orphans() {
    let world = World::new([]);
    let (pi, _) = open(
        &world,
        &[
            user("r0000001", None, 0, "Root"),
            user(
                "b0000002",
                Some("r0000001"),
                5,
                "later sibling, earlier in the file",
            ),
            user("a0000001", Some("r0000001"), 1, "earlier sibling"),
            user("a0000002", Some("a0000001"), 2, "child"),
            user("o0000001", Some("nowhere0"), 3, "orphan"),
            user("s0000001", Some("s0000001"), 4, "its own parent"),
            entry(
                "thinking_level_change",
                "r0000002",
                None,
                6,
                json!({"thinkingLevel": "off"}),
            ),
            user("r0000003", Some("r0000002"), 7, "under the second root"),
        ],
    );
    let data = pi.get("get_tree");
    assert_eq!(data["leafId"], "r0000003");
    let mut roots = shape(&data["tree"]).as_array().unwrap().clone();
    roots.sort_by_key(Value::to_string);
    assert_eq!(
        roots,
        [
            json!(["o0000001", []]),
            json!(["r0000001", [["a0000001", [["a0000002", []]]], ["b0000002", []]]]),
            json!(["r0000002", [["r0000003", []]]]),
            json!(["s0000001", []]),
        ],
        "children by time"
    );
    assert_eq!(pi.messages().len(), 1, "the conversation is the last branch");
    assert_eq!(
        pi.get("get_fork_messages")["messages"].as_array().unwrap().len(),
        7
    );
    pi.agent.close_stdin();
}

#[test]
fn tree_shows_labels() {
    let label = |id: &str, parent: &str, second: u32, target: &str, label: Value| {
        entry(
            "label",
            id,
            Some(parent),
            second,
            json!({"targetId": target, "label": label}),
        )
    };
    let world = World::new([]);
    let (pi, _) = open(
        &world,
        &[
            user("aaaa0001", None, 0, "First"),
            user("aaaa0002", Some("aaaa0001"), 1, "Second"),
            user("aaaa0003", Some("aaaa0002"), 2, "Third"),
            label("bbbb0001", "aaaa0003", 3, "aaaa0001", json!("old")),
            label("bbbb0002", "bbbb0001", 4, "aaaa0001", json!("new")),
            label("bbbb0003", "bbbb0002", 5, "aaaa0002", json!("removed")),
            label("bbbb0004", "bbbb0003", 6, "aaaa0002", Value::Null),
            entry(
                "label",
                "bbbb0005",
                Some("bbbb0004"),
                7,
                json!({"targetId": "aaaa0003"}),
            ),
        ],
    );
    let tree = pi.get("get_tree")["tree"].clone();
    let labelled = node(&tree, "aaaa0001").unwrap();
    assert_eq!(labelled["label"], "new");
    assert_eq!(labelled["labelTimestamp"], "2026-01-01T10:01:04.000Z");
    for id in ["aaaa0002", "aaaa0003"] {
        let node = node(&tree, id).unwrap();
        assert!(
            node.get("label").is_none() && node.get("labelTimestamp").is_none(),
            "{node}"
        );
    }
    pi.finish();
}

#[test]
fn tree_holds_whole_entries() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start();
    pi.say("Hi");
    let (tree, entries) = (pi.get("get_tree"), pi.get("get_entries"));
    let mut at = &tree["tree"];
    for entry in entries["entries"].as_array().unwrap() {
        assert_eq!(at.as_array().unwrap().len(), 1);
        assert_eq!(&at[0]["entry"], entry);
        at = &at[0]["children"];
    }
    assert_eq!(at, &json!([]));
    assert_eq!(tree["leafId"], entries["leafId"]);
    pi.finish();
}

#[test]
fn get_entries_returns_entries_of_file() {
    let world = World::new([Reply::text(["one"]), Reply::text(["two"])]);
    let pi = world.start();
    pi.say("One");
    let leaf = pi.get("get_entries")["leafId"].clone();
    pi.data(json!({"type": "set_session_name", "name": "N"}));
    pi.say("Two");
    let all = pi.get("get_entries");
    assert_eq!(all["entries"], json!(check::entries(&pi.file())));
    let news = pi.data(json!({"type": "get_entries", "since": leaf}));
    let kinds: Vec<&Value> = news["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["type"])
        .collect();
    assert_eq!(kinds, ["session_info", "message", "message"]);
    let none = pi.data(json!({"type": "get_entries", "since": all["leafId"]}));
    assert_eq!((&none["entries"], &none["leafId"]), (&json!([]), &all["leafId"]));
    pi.finish();
}

#[test]
fn entries_include_other_branches_messages_do_not() {
    let world = World::new([Reply::text(["ok"])]);
    let (pi, path) = open(
        &world,
        &[
            user("aaaa0001", None, 0, "Root"),
            user("bbbb0001", Some("aaaa0001"), 1, "Left"),
            user("cccc0001", Some("aaaa0001"), 2, "Right"),
        ],
    );
    assert_eq!(
        pi.messages().iter().map(text).collect::<Vec<_>>(),
        ["Root", "Right"]
    );
    let ids: Vec<Value> = pi.get("get_entries")["entries"].as_array().unwrap()[..3]
        .iter()
        .map(|entry| entry["id"].clone())
        .collect();
    assert_eq!(ids, ["aaaa0001", "bbbb0001", "cccc0001"]);
    pi.say("Go on");
    assert!(!world.server.requests()[0].body.to_string().contains("Left"));
    let entries = check::entries(&path);
    let first_new = entries
        .iter()
        .position(|entry| {
            entry["message"]["role"] == "user"
                && entry["id"] != "aaaa0001"
                && entry["id"] != "bbbb0001"
                && entry["id"] != "cccc0001"
        })
        .unwrap();
    let mut parent = entries[first_new]["parentId"].clone();
    while let Some(found) = entries
        .iter()
        .find(|entry| entry["id"] == parent && entry["type"] != "message")
    {
        parent = found["parentId"].clone();
    }
    assert_eq!(parent, "cccc0001", "it goes on where the session stood");
    pi.finish();
}

/// Entries with fields and types of other programs.
fn vendor_entries() -> [Value; 4] {
    let note = entry(
        "vendor_note",
        "vvvv0001",
        Some("aaaa0001"),
        1,
        json!({"deep": {"list": [1, 2.5, "x", null]}, "big": 9_007_199_254_740_993_u64}),
    );
    let usage = json!({"kind": "other", "provider": "p", "model": "m", "usage": {"input": 1}});
    let custom = json!({"customType": "x", "data": {"n": 1}});
    let mut odd = user("aaaa0001", None, 0, "Hello");
    odd["vendorField"] = json!("on the entry");
    odd["message"]["vendorField"] = json!("on the message");
    odd["message"]["content"][0]["vendorField"] = json!("on the block");
    [
        odd,
        note,
        entry("custom", "cccc0001", Some("vvvv0001"), 2, custom),
        entry("usage", "uuuu0001", Some("cccc0001"), 3, usage),
    ]
}

#[test]
fn vendor_session_is_only_appended_to() {
    let world = World::new([Reply::text(["ok"])]);
    let (pi, path) = open(&world, &vendor_entries());
    let before = fs::read_to_string(&path).unwrap();
    pi.say("On");
    pi.finish();
    assert!(fs::read_to_string(&path).unwrap().starts_with(&before));
}

#[test]
fn get_entries_keeps_unknown_members() {
    let world = World::new([]);
    let (pi, _) = open(&world, &vendor_entries());
    let told = pi.get("get_entries")["entries"].clone();
    assert_eq!(told.as_array().unwrap()[..4], vendor_entries());
    let tree = pi.get("get_tree")["tree"].clone();
    for entry in vendor_entries() {
        assert_eq!(
            node(&tree, entry["id"].as_str().unwrap()).unwrap()["entry"],
            entry
        );
    }
    pi.finish();
}

#[test]
fn forked_entries_keep_unknown_members() {
    let world = World::new([Reply::text(["ok"])]);
    let (pi, path) = open(&world, &vendor_entries());
    pi.say("On");
    pi.data(json!({"type": "clone"}));
    assert_eq!(check::entries(&pi.file())[..4], vendor_entries());
    pi.finish();
    let pi = world.start_with(&["--fork", path.to_str().unwrap()]);
    assert_eq!(check::entries(&pi.file())[..4], vendor_entries());
    pi.finish();
}

#[test]
fn compacted_branch_begins_with_its_summary() {
    let world = World::new([Reply::text(["ok"])]);
    let (pi, _) = open(
        &world,
        &[
            user("aaaa0001", None, 0, "Forgotten"),
            user("aaaa0002", Some("aaaa0001"), 1, "Kept"),
            entry(
                "compaction",
                "kkkk0001",
                Some("aaaa0002"),
                2,
                json!({"summary": "What was", "firstKeptEntryId": "aaaa0002", "tokensBefore": 1234}),
            ),
            user("aaaa0003", Some("kkkk0001"), 3, "After"),
        ],
    );
    let messages = pi.messages();
    let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["compactionSummary", "user", "user"]);
    assert_eq!(
        (&messages[0]["summary"], &messages[0]["tokensBefore"]),
        (&json!("What was"), &json!(1234))
    );
    pi.say("On");
    let request = world.server.requests()[0].body["messages"].to_string();
    assert!(
        request.contains("<summary>\\nWhat was\\n</summary>") && !request.contains("Forgotten"),
        "{request}"
    );
    pi.finish();
}
