//! Listings, `--continue` and ids by prefix.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::fixtures::*;
use crate::{Listing, find_by_id_prefix, list, list_all, most_recent, summarize};

fn put(path: &Path, content: &str, age: u64) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    let time = SystemTime::now() - Duration::from_secs(age);
    fs::File::options()
        .append(true)
        .open(path)
        .unwrap()
        .set_modified(time)
        .unwrap();
}

fn session(id: &str, cwd: &str, lines: &[String]) -> String {
    let header = HEADER.replace(SESSION_ID, id).replace("/home/u/app", cwd);
    text(&[header]) + &text(lines)
}

#[test]
fn session_summary_matches_pi() {
    let mut lines = all_entries();
    lines.insert(2, "{broken".into());
    lines[0] = lines[0].replace("}", ",\"parentSession\":\"/p.jsonl\"}");
    let (_dir, path) = on_disk(text(&lines));
    let summary = summarize(&path, true).unwrap().unwrap();
    assert_eq!(
        (summary.id.as_str(), summary.cwd.as_str()),
        (SESSION_ID, "/home/u/app")
    );
    assert_eq!(summary.name.as_deref(), Some("named session"));
    assert_eq!(summary.parent_session_path.as_deref(), Some("/p.jsonl"));
    assert_eq!(
        (summary.created, summary.modified),
        (1_761_991_200_000, 1_761_991_210_000)
    );
    assert_eq!(
        (summary.message_count, summary.first_message.as_str()),
        (5, "Old question")
    );
    let all = summary.all_messages_text.unwrap();
    assert_eq!(all, "Old question Old answer String content Old answer");
    assert_eq!(summarize(&path, false).unwrap().unwrap().all_messages_text, None);
}

#[test]
fn session_name_can_be_cleared_and_emptiness_shown() {
    let cleared = r#"{"type":"session_info","id":"i2","parentId":null,"timestamp":"t","name":" "}"#;
    let named = cleared.replace("\" \"", "\"x\"");
    let (_dir, path) = on_disk(text(&[HEADER, &named, cleared]));
    let summary = summarize(&path, false).unwrap().unwrap();
    assert_eq!(
        (summary.name, summary.first_message.as_str()),
        (None, "(no messages)")
    );
    assert_eq!(summary.modified, summary.created);
}

#[test]
fn session_lists_are_newest_first_without_other_files() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join("--a--").join(name);
    let later = user_line("e1", None, "later").replace("1761991212000", "1761999999000");
    put(
        &at("1_one.jsonl"),
        &session("one", "/a", &[user_line("e1", None, "early")]),
        10,
    );
    put(&at("2_two.jsonl"), &session("two", "/a", &[later]), 20);
    put(&at("notes.txt"), &session("txt", "/a", &[]), 1);
    put(&at("foreign.jsonl"), "{\"type\":\"message\"}\n", 1);
    put(&at("empty.jsonl"), "", 1);
    put(
        &at("lost.jsonl"),
        &session("lost", "/a", &[]).replace("\"id\":\"", "\"iX\":\""),
        30,
    );
    put(
        &root.path().join("--b--/3_three.jsonl"),
        &session("three", "/b", &[]),
        5,
    );
    let ids = |list: Vec<crate::SessionSummary>| {
        list.into_iter()
            .map(|s| s.path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        ids(list(&root.path().join("--a--"), Listing::Plain).unwrap()),
        ["2_two", "1_one", "lost"]
    );
    assert_eq!(
        ids(list_all(root.path(), Listing::Plain).unwrap()),
        ["2_two", "1_one", "3_three", "lost"]
    );
    assert!(
        list(&root.path().join("none"), Listing::Plain)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn most_recent_session_is_last_modified_file() {
    let root = tempfile::tempdir().unwrap();
    let long = format!("/{}", "d/".repeat(2000));
    put(&root.path().join("a.jsonl"), &session("aa-1", "/a", &[]), 50);
    put(&root.path().join("b.jsonl"), &session("aa-2", &long, &[]), 10);
    put(&root.path().join("c.jsonl"), "garbage\n", 1);
    let name = |cwd| {
        most_recent(root.path(), cwd)
            .unwrap()
            .map(|p| p.file_name().unwrap().to_owned())
    };
    assert_eq!(name(None).unwrap(), "b.jsonl");
    assert_eq!(name(Some("/a")).unwrap(), "a.jsonl");
    assert_eq!(name(Some("/zzz")), None);
    // A session with messages comes before a newer one without.
    put(&root.path().join("d.jsonl"), &text(&all_entries()), 90);
    assert_eq!(name(None).unwrap(), "d.jsonl");
    let found = find_by_id_prefix(root.path(), "aa-").unwrap();
    assert_eq!(
        found.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(),
        ["aa-2", "aa-1"]
    );
    assert!(find_by_id_prefix(root.path(), "b").unwrap().is_empty());
}

#[test]
fn open_session_can_be_listed() {
    let (dir, path) = on_disk(text(&all_entries()));
    let (mut log, _) = crate::SessionLog::open(&path, "/").unwrap();
    log.append(user("sixth")).unwrap();
    assert_eq!(list(dir.path(), Listing::Plain).unwrap()[0].message_count, 6);
}

/// A user message with a text before and a picture of so many bytes.
fn picture(id: &str, bytes: usize, time: i64) -> String {
    format!(
        r#"{{"type":"message","id":"{id}","parentId":null,"timestamp":"2025-11-01T10:00:12.000Z","message":{{"role":"user","content":[{{"type":"text","text":"what is this"}},{{"type":"image","data":"{}","mimeType":"image/png"}}],"timestamp":{time}}}}}"#,
        "A".repeat(bytes)
    )
}

#[test]
fn long_lines_are_listed_without_buffering() {
    use crate::limits::LISTED_LINE;
    for bytes in [
        LISTED_LINE - 300,
        LISTED_LINE,
        LISTED_LINE + 1,
        3 * LISTED_LINE + 7,
    ] {
        let lines = [
            HEADER.to_owned(),
            picture("e1", bytes, 1_761_991_212_000),
            user_line("e2", Some("e1"), "second"),
            picture("e3", bytes, 1_861_991_212_000),
            r#"{"type":"session_info","id":"e4","parentId":"e3","timestamp":"2025-11-01T10:00:04.000Z","name":"named"}"#.to_owned(),
        ];
        let (_dir, path) = on_disk(text(&lines));
        let found = summarize(&path, false).unwrap().unwrap();
        assert_eq!(
            (found.message_count, found.modified),
            (3, 1_861_991_212_000),
            "{bytes}"
        );
        assert_eq!(found.first_message, "what is this");
        assert_eq!(found.name.as_deref(), Some("named"));
        let texts = summarize(&path, true)
            .unwrap()
            .unwrap()
            .all_messages_text
            .unwrap();
        assert_eq!(texts, "what is this second what is this");
        let mut buffer = Vec::new();
        let file = fs::File::open(&path).unwrap();
        crate::scan::scan(&file, &path, None, false, &mut buffer).unwrap();
        assert!(buffer.capacity() <= 2 * LISTED_LINE, "{}", buffer.capacity());
    }
}

#[test]
fn sparse_file_holes_are_skipped() {
    use std::io::{Seek as _, SeekFrom, Write as _};
    let (_dir, path) = on_disk(text(&[HEADER.to_owned(), user_line("e1", None, "before")]));
    let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    // Reading so many zeros would take minutes.
    let length = 1_u64 << 40;
    if file.set_len(length).is_err() {
        // Not `println!`: the harness hides what a passing test prints.
        let line = b"skipped: the file system has no files of a terabyte\n";
        std::io::Write::write_all(&mut std::io::stderr(), line).unwrap();
        return;
    }
    let found = summarize(&path, false).unwrap().unwrap();
    assert_eq!((found.message_count, found.first_message.as_str()), (1, "before"));
    file.seek(SeekFrom::Start(length)).unwrap();
    writeln!(file, "\n{}", user_line("e2", Some("e1"), "after")).unwrap();
    let found = summarize(&path, false).unwrap().unwrap();
    assert_eq!(found.message_count, 2);
}
