//! Session files of every agent of the family and of every version (dialects.md 12, pi-1.5-delta.md 3): each opens, means what
//! it should, is continued, and its lines stay what they were.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::fixtures::*;
use crate::{ForkScope, SessionLog, new_header};

/// A file and what it means.
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) lines: Vec<String>,
    /// Roles of the context, and the text of each message.
    context: &'static [(&'static str, &'static str)],
    model: Option<(&'static str, &'static str)>,
    level: Option<&'static str>,
    session_name: Option<&'static str>,
    parent: Option<&'static str>,
}

const NONE: Variant = Variant {
    name: "",
    lines: Vec::new(),
    context: &[],
    model: None,
    level: None,
    session_name: None,
    parent: None,
};

fn answer_of(provider: &str, model: &str, text: &str, more: &str) -> String {
    format!(
        r#"{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}],"api":"anthropic-messages","provider":"{provider}","model":"{model}","usage":{{"input":10,"output":5,"cacheRead":0,"cacheWrite":0,"totalTokens":15,"cost":{{"input":0.1,"output":0.2,"cacheRead":0,"cacheWrite":0,"total":0.3}}}},"stopReason":"stop","timestamp":1746093602000{more}}}"#
    )
}

fn question(text: &str) -> String {
    format!(r#"{{"role":"user","content":[{{"type":"text","text":"{text}"}}],"timestamp":1746093601000}}"#)
}

/// Entries with ids `e1`, `e2`, ... each following the one before; `rest` begins with its type.
fn chain(header: &str, entries: &[&str]) -> Vec<String> {
    let mut lines = vec![header.to_owned()];
    for (n, rest) in entries.iter().enumerate() {
        let parent = if n == 0 {
            "null".to_owned()
        } else {
            format!("\"e{n}\"")
        };
        let (kind, rest) = rest.split_once(' ').unwrap();
        let comma = if rest.is_empty() { "" } else { "," };
        lines.push(format!(
            r#"{{"type":"{kind}","id":"e{}","parentId":{parent},"timestamp":"2025-11-01T10:00:{n:02}.000Z"{comma}{rest}}}"#,
            n + 1
        ));
    }
    lines
}

fn said(message: &str) -> String {
    format!("message \"message\":{message}")
}

/// Lines of version 1 have no ids.
fn linear(header: &str, entries: &[String]) -> Vec<String> {
    let line = |rest: &String| format!(r#"{{"type":{rest},"timestamp":"2025-05-01T10:00:01.000Z"}}"#);
    [header.to_owned()]
        .into_iter()
        .chain(entries.iter().map(line))
        .collect()
}

fn version_1() -> Vec<Variant> {
    let e = r#"{"type":"session","id":"v1e","timestamp":"2025-05-01T10:00:00.000Z","cwd":"/x","provider":"anthropic","modelId":"first","thinkingLevel":"high","branchedFrom":"/parent.jsonl"}"#;
    let h = r#"{"type":"session","id":"v1h","timestamp":"2025-05-01T10:00:00.000Z","cwd":"/x"}"#;
    let message = |json: String| format!("\"message\",\"message\":{json}");
    vec![
        Variant {
            name: "v1 E, nothing but the header says model and level",
            lines: linear(e, &[message(question("one"))]),
            context: &[("user", "one")],
            model: Some(("anthropic", "first")),
            level: Some("high"),
            parent: Some("/parent.jsonl"),
            ..NONE
        },
        Variant {
            name: "v1 E, changed and compacted",
            lines: linear(
                e,
                &[
                    message(question("one")),
                    message(answer_of("anthropic", "first", "two", "")),
                    "\"thinking_level_change\",\"thinkingLevel\":\"low\"".into(),
                    "\"model_change\",\"provider\":\"openai\",\"modelId\":\"second\"".into(),
                    message(question("three")),
                    "\"compaction\",\"summary\":\"sum\",\"firstKeptEntryIndex\":5,\"tokensBefore\":900"
                        .into(),
                    message(question("four")),
                ],
            ),
            context: &[("compactionSummary", "sum"), ("user", "three"), ("user", "four")],
            model: Some(("openai", "second")),
            level: Some("low"),
            parent: Some("/parent.jsonl"),
            ..NONE
        },
        Variant {
            name: "v1 H, the model comes from the last answer",
            lines: linear(
                h,
                &[
                    "\"model_change\",\"provider\":\"openai\",\"modelId\":\"old\"".into(),
                    message(question("one")),
                    message(answer_of("anthropic", "newer", "two", "")),
                ],
            ),
            context: &[("user", "one"), ("assistant", "two")],
            model: Some(("anthropic", "newer")),
            ..NONE
        },
    ]
}

fn version_2() -> Variant {
    let header = r#"{"type":"session","version":2,"id":"v2o","timestamp":"2025-06-01T10:00:00.000Z","cwd":"/x","parentSession":"/p.jsonl"}"#;
    Variant {
        name: "v2 O",
        lines: chain(
            header,
            &[
                "model_change \"provider\":\"anthropic\",\"modelId\":\"claude\"",
                "thinking_level_change \"thinkingLevel\":\"medium\"",
                &said(&question("dropped")),
                &said(&question("cut \\ud83d off")),
                "label \"targetId\":\"e4\",\"label\":\"mark\"",
                &said(
                    r#"{"role":"hookMessage","customType":"h","content":"hooked","display":true,"timestamp":1746093601000}"#,
                ),
                "compaction \"summary\":\"sum\",\"firstKeptEntryId\":\"e4\",\"tokensBefore\":7,\"details\":{\"readFiles\":[\"a\"]},\"fromHook\":true",
                "custom \"customType\":\"x\",\"data\":{\"n\":[1.50,1e-7]}",
                "custom_message \"customType\":\"note\",\"content\":\"custom\",\"details\":{\"d\":1},\"display\":false",
                "branch_summary \"fromId\":\"e4\",\"summary\":\"branch\",\"fromHook\":false",
            ],
        ),
        context: &[
            ("compactionSummary", "sum"),
            ("user", "cut \u{fffd} off"),
            ("custom", "hooked"),
            ("custom", "custom"),
            ("branchSummary", "branch"),
        ],
        model: Some(("anthropic", "claude")),
        level: Some("medium"),
        parent: Some("/p.jsonl"),
        ..NONE
    }
}

fn xcsh() -> Vec<Variant> {
    let header = r#"{"type":"session","version":3,"id":"v3x","timestamp":"2025-11-01T10:00:00.000Z","cwd":"/x","title":"from the title","titleSource":"auto"}"#;
    let entries = [
        "session_init \"systemPrompt\":\"be kind\",\"task\":\"t\",\"tools\":[\"read\"],\"outputSchema\":{\"type\":\"object\"}",
        "model_change \"model\":\"anthropic/claude/x\",\"role\":\"default\"",
        "thinking_level_change \"thinkingLevel\":\"high\"",
        "service_tier_change \"serviceTier\":null",
        "mcp_tool_selection \"selectedToolNames\":[\"mcp_a\"]",
        &said(&question("before")),
        &said(&answer_of(
            "anthropic",
            "claude/x",
            "kept",
            ",\"duration\":1200,\"ttft\":90",
        )),
        "ttsr_injection \"injectedRules\":[\"rule\"]",
        "mode_change \"mode\":\"plan\",\"data\":{\"planFile\":\"p.md\"}",
        "context_change \"context\":{\"k\":1}",
        "compaction \"summary\":\"sum\",\"shortSummary\":\"s\",\"firstKeptEntryId\":\"e7\",\"tokensBefore\":5,\"fromExtension\":true,\"preserveData\":{\"todo\":[1]}",
        "model_change \"model\":\"openai/small\",\"role\":\"smol\"",
        "thinking_level_change \"thinkingLevel\":null",
        &said(
            r#"{"role":"developer","content":"only for clients","timestamp":1746093601000,"attribution":"agent"}"#,
        ),
        &said(
            r#"{"role":"user","content":[{"type":"text","text":"after"}],"timestamp":1746093601000,"synthetic":true}"#,
        ),
    ];
    let named = [entries.as_slice(), &["session_info \"name\":\"from the entry\""]].concat();
    let variant = |name, lines: &[&str], session_name| Variant {
        name,
        lines: chain(header, lines),
        context: &[
            ("compactionSummary", "sum"),
            ("assistant", "kept"),
            ("developer", "only for clients"),
            ("user", "after"),
        ],
        model: Some(("anthropic", "claude/x")),
        session_name: Some(session_name),
        ..NONE
    };
    vec![
        variant("v3 X, named by its title", &entries, "from the title"),
        variant("v3 X, named by an entry", &named, "from the entry"),
    ]
}

/// What oh-my-pi 18 writes: its name for the session in a padded line before the header.
fn oh_my_pi() -> Vec<Variant> {
    let title = r#"{"type":"title","v":1,"title":"from the slot","source":"user","updatedAt":"2026-11-01T10:00:00.000Z","pad":"        "}"#;
    let header =
        r#"{"type":"session","version":3,"id":"v3n","timestamp":"2026-11-01T10:00:00.000Z","cwd":"/x"}"#;
    let entries = [
        "model_change \"model\":\"mock/claude\",\"resolvedModelIsFallback\":false",
        "thinking_level_change \"thinkingLevel\":\"high\",\"configured\":null",
        &said(&question("first")),
        "custom \"customType\":\"tool_execution_start\",\"data\":{\"toolCallId\":\"c\"}",
        &said(&answer_of("mock", "claude", "done", ",\"attribution\":\"agent\"")),
        "title_change \"title\":\" from the entry \",\"source\":\"user\"",
        "custom \"customType\":\"session_exit\",\"data\":{}",
    ];
    let variant = |name, count, session_name| {
        let mut lines = vec![title.to_owned()];
        lines.extend(chain(header, &entries[..count]));
        Variant {
            name,
            lines,
            context: &[("user", "first"), ("assistant", "done")],
            model: Some(("mock", "claude")),
            level: Some("high"),
            session_name: Some(session_name),
            ..NONE
        }
    };
    vec![
        variant("oh-my-pi, named by its slot", 5, "from the slot"),
        variant("oh-my-pi, named by an entry", 7, "from the entry"),
        cleared(),
    ]
}

/// A session of oh-my-pi whose conversation the user cleared, continued by a fallback model.
fn cleared() -> Variant {
    let header = r#"{"type":"session","version":3,"id":"v3c","timestamp":"2026-11-01T10:00:00.000Z","cwd":"/x","additionalDirectories":["/y"]}"#;
    let entries = [
        "model_change \"model\":\"mock/claude\"",
        &said(&question("summarised")),
        "compaction \"summary\":\"sum\",\"firstKeptEntryId\":\"e2\",\"tokensBefore\":5,\"method\":\"remote\"",
        &said(&question("cleared")),
        "reset_boundary ",
        &said(&question("new")),
        "model_change \"model\":\"mock/spare\",\"role\":\"fallback\",\"resolvedModelIsFallback\":true",
        &said(&answer_of("mock", "spare", "done", "")),
        "credential_pin \"provider\":\"mock\",\"hash\":\"00\"",
    ];
    Variant {
        name: "oh-my-pi, cleared",
        lines: chain(header, &entries),
        context: &[("user", "new"), ("assistant", "done")],
        model: Some(("mock", "claude")),
        ..NONE
    }
}

fn later_pi() -> Vec<Variant> {
    let header =
        r#"{"type":"session","version":3,"id":"v3p","timestamp":"2026-11-01T10:00:00.000Z","cwd":"/x"}"#;
    let system = said(
        r#"{"role":"system","content":"","sections":{"role":"You are pi"},"toolsAdded":[{"name":"read"}],"timestamp":1746093600000}"#,
    );
    let usage = r#""usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0},"reasoning":1}"#;
    let summary = format!("branch_summary \"fromId\":\"e3\",\"summary\":\"branch\",{usage}");
    let compaction = format!(
        "compaction \"summary\":\"sum\",\"firstKeptEntryId\":\"e10\",\"tokensBefore\":5,\"systemMessage\":{{\"role\":\"system\",\"content\":\"\"}},{usage}"
    );
    let entries = [
        &system,
        "model_change \"provider\":\"openai\",\"modelId\":\"gpt\"",
        &said(&question("as it was")),
        &said(&answer_of(
            "openai",
            "gpt",
            "failed",
            ",\"thinkingLevel\":\"low\",\"rawStopReason\":\"x\",\"diagnostics\":[{\"timestamp\":1}],\"endTurn\":true",
        )),
        "thinking_level_change \"thinkingLevel\":\"xhigh\"",
        &format!("usage \"kind\":\"title\",\"provider\":\"openai\",\"model\":\"nano\",{usage}"),
        "context_edit \"targetId\":\"e3\",\"replacement\":\"as it is\"",
        "context_edit \"targetId\":\"e4\",\"replacement\":null",
        &summary,
        &compaction,
        &said(&question("after")),
    ];
    let variant = |name, count, context| Variant {
        name,
        lines: chain(header, &entries[..count]),
        context,
        model: Some(("openai", "gpt")),
        level: Some("xhigh"),
        ..NONE
    };
    vec![
        variant(
            "pi 1.x, edited",
            9,
            &[("system", ""), ("user", "as it is"), ("branchSummary", "branch")],
        ),
        variant(
            "pi 1.x, compacted with nothing kept",
            11,
            &[("system", ""), ("compactionSummary", "sum"), ("user", "after")],
        ),
    ]
}

/// All of them.
pub(super) fn variants() -> Vec<Variant> {
    let mut all = version_1();
    all.push(version_2());
    all.extend(xcsh());
    all.extend(oh_my_pi());
    all.extend(later_pi());
    all
}

/// Role and text of each message that a model would get, or a client be shown.
fn context(log: &SessionLog) -> Vec<(String, String)> {
    let messages = log.context(log.leaf_id()).messages;
    let messages = messages
        .iter()
        .map(|message| serde_json::to_value(&**message).unwrap());
    let text = |message: &Value| {
        let content = &message["content"];
        let text = message["summary"]
            .as_str()
            .or(content.as_str())
            .or(content[0]["text"].as_str());
        text.unwrap().to_owned()
    };
    messages
        .map(|m| (m["role"].as_str().unwrap().to_owned(), text(&m)))
        .collect()
}

#[track_caller]
fn means(log: &SessionLog, variant: &Variant, more: &[(&str, &str)]) {
    let expected = [variant.context, more].concat();
    let expected: Vec<(String, String)> = expected
        .iter()
        .map(|(r, t)| (r.to_string(), t.to_string()))
        .collect();
    assert_eq!(context(log), expected, "{}", variant.name);
    let found = log.context(log.leaf_id());
    let model = found.model.as_ref().map(|(p, m)| (p.as_str(), m.as_str()));
    assert_eq!(model, variant.model, "{}", variant.name);
    assert_eq!(found.thinking_level.as_deref(), variant.level, "{}", variant.name);
    assert_eq!(log.session_name(), variant.session_name, "{}", variant.name);
}

/// Lines before the first entry.
pub(super) fn heads(lines: &[String]) -> usize {
    1 + usize::from(lines[0].contains("\"type\":\"title\""))
}

fn lines_of(path: &Path) -> Vec<String> {
    fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_variant_opens_and_continues_without_changes() {
    for variant in variants() {
        let (_dir, path) = on_disk(text(&variant.lines));
        let (mut log, damage) = SessionLog::open(&path, "/").unwrap();
        // A surrogate without its partner, in version 2, is the one thing to mend.
        assert_eq!(
            (damage.is_none(), damage.orphans),
            (damage.mended == 0, 0),
            "{}: {damage}",
            variant.name
        );
        assert_eq!(
            log.entries().len(),
            variant.lines.len() - heads(&variant.lines),
            "{}",
            variant.name
        );
        assert_eq!(
            log.header().parent_session.as_deref(),
            variant.parent,
            "{}",
            variant.name
        );
        means(&log, &variant, &[]);
        let old = lines_of(&path);
        log.append(user("went on")).unwrap();
        means(&log, &variant, &[("user", "went on")]);
        drop(log);
        let (log, _) = SessionLog::open(&path, "/").unwrap();
        means(&log, &variant, &[("user", "went on")]);
        let now = lines_of(&path);
        assert_eq!(
            (&now[..old.len()], now.len()),
            (&old[..], old.len() + 1),
            "{}",
            variant.name
        );
        if damage.migrated_from.is_none() {
            assert_eq!(old, variant.lines, "{}", variant.name);
        }
    }
}

#[test]
fn migration_changes_only_version_differences() {
    for variant in variants() {
        let (_dir, path) = on_disk(text(&variant.lines));
        let (_, damage) = SessionLog::open(&path, "/").unwrap();
        for (old, new) in variant.lines.iter().zip(lines_of(&path)) {
            if old.contains("hookMessage") {
                assert_eq!(new, old.replace("hookMessage", "custom"));
            } else if damage.migrated_from == Some(2) && !old.contains("\"version\":2") {
                assert_eq!(&new, old, "byte for byte");
            }
            let (old, new): (Value, Value) = match serde_json::from_str(old) {
                Ok(old) => (old, serde_json::from_str(&new).unwrap()),
                Err(_) => continue,
            };
            for (name, value) in old.as_object().unwrap() {
                let replaced = matches!(name.as_str(), "firstKeptEntryIndex" | "version");
                assert!(
                    replaced || new[name] == *value || name == "message",
                    "{}: {name}",
                    variant.name
                );
            }
        }
    }
}

#[test]
fn forks_of_every_variant_keep_its_lines() {
    for variant in variants() {
        let (dir, path) = on_disk(text(&variant.lines));
        let (log, _) = SessionLog::open(&path, "/").unwrap();
        let old = lines_of(&path);
        let source = path.to_string_lossy().into_owned();
        let header = || new_header("/x", Some(&source));
        let (one, all) = (dir.path().join("one.jsonl"), dir.path().join("all.jsonl"));
        let scope = ForkScope::Path(log.leaf_id().unwrap());
        let mut fork = log.fork(Some(one.clone()), header(), scope).unwrap();
        fork.ensure_on_disk().unwrap();
        let mut copy = log.fork(Some(all.clone()), header(), ForkScope::All).unwrap();
        copy.ensure_on_disk().unwrap();
        let heads = heads(&old);
        assert_eq!(lines_of(&all)[1..], old[heads..], "{}", variant.name);
        drop((fork, copy));
        let forked = lines_of(&one);
        let after_label = |line: &str| line.contains("\"parentId\":\"e5\"");
        let kept = old[heads..]
            .iter()
            .filter(|line| !line.contains("\"type\":\"label\""));
        for (old, new) in kept.zip(&forked[1..]) {
            if variant.name == "v2 O" && after_label(old) {
                assert_eq!(new, &old.replace("\"parentId\":\"e5\"", "\"parentId\":\"e4\""));
            } else {
                assert_eq!(new, old, "{}", variant.name);
            }
        }
        for path in [one, all] {
            let (mut again, damage) = SessionLog::open(&path, "/").unwrap();
            assert_eq!(
                (damage.orphans, damage.skipped_lines),
                (0, 0),
                "{}: {damage}",
                variant.name
            );
            assert_eq!(
                again.header().parent_session.as_deref(),
                Some(&*source),
                "{}",
                variant.name
            );
            means(&again, &variant, &[]);
            again.append(user("went on")).unwrap();
            means(&again, &variant, &[("user", "went on")]);
        }
    }
}
