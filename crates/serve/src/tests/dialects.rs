//! What a connection takes for its client's dialect, and that the writer follows between lines only. What each dialect looks
//! like from outside is tested with the program (`dialect_outputs`, `dialect_inputs` and `seeds` there).

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use session::{ClientId, SessionRequest};
use wire::event::CompactionReason;
use wire::reply::Negotiated;
use wire::ui::{SelectOption, UiMethod, UiRequest};
use wire::{AssistantMessage, Dialect, Event, Message, Reply, Response, StreamEvent, Usage};

use crate::encode::Encoder;
use crate::intake;
use crate::manner::{Spoken, WantedUi};
use crate::parse::parse_line;

/// The detected format after these lines.
fn after(dialect: Dialect, lines: &[&str]) -> crate::Manner {
    let spoken = Spoken::new(dialect);
    for line in lines {
        spoken.hear(&parse_line(line.as_bytes()));
    }
    spoken.manner()
}

#[test]
fn first_distinctive_line_decides_dialect() {
    for (line, dialect) in [
        (r#"{"type":"queue_message","message":"x"}"#, Dialect::Hooks),
        (r#"{"type":"set_queue_mode","mode":"all"}"#, Dialect::Hooks),
        (r#"{"type":"reset"}"#, Dialect::Hooks),
        (r#"{"type":"hook_ui_response","id":"1"}"#, Dialect::Hooks),
        (
            r#"{"type":"prompt","message":"x","attachments":[{"type":"image"}]}"#,
            Dialect::Hooks,
        ),
        (r#"{"type":"branch","entryIndex":1}"#, Dialect::Hooks),
        (r#"{"type":"branch","entryId":"a"}"#, Dialect::Omp),
        (r#"{"type":"get_branch_messages"}"#, Dialect::Omp),
        (r#"{"type":"set_todos","phases":[]}"#, Dialect::Xcsh),
        (r#"{"type":"set_host_tools","tools":[]}"#, Dialect::Xcsh),
        (r#"{"type":"set_interrupt_mode","mode":"wait"}"#, Dialect::Xcsh),
        (r#"{"type":"abort_and_prompt","message":"x"}"#, Dialect::Xcsh),
        (
            r#"{"type":"negotiate_protocol","protocolVersion":2}"#,
            Dialect::OmpNow,
        ),
        (r#"{"type":"get_commands"}"#, Dialect::Pi),
        (r#"{"type":"fork","entryId":"a"}"#, Dialect::Pi),
        (r#"{"type":"get_fork_messages"}"#, Dialect::Pi),
        (r#"{"type":"clone"}"#, Dialect::Pi),
        (r#"{"type":"clear_queue"}"#, Dialect::Pi),
        (r#"{"type":"get_entries"}"#, Dialect::Pi),
        (r#"{"type":"get_tree"}"#, Dialect::Pi),
        (r#"{"type":"get_available_thinking_levels"}"#, Dialect::Pi),
        (r#"{"type":"new_session"}"#, Dialect::Auto),
        (r#"{"type":"steer","message":"x"}"#, Dialect::Auto),
        (
            r#"{"type":"prompt","message":"x","attachments":[]}"#,
            Dialect::Auto,
        ),
        ("no json", Dialect::Auto),
    ] {
        let before = r#"{"type":"get_state"}"#;
        assert_eq!(after(Dialect::Auto, &[before, line]).dialect, dialect, "{line}");
        for other in [r#"{"type":"get_tree"}"#, r#"{"type":"reset"}"#] {
            let stays = dialect != Dialect::Auto;
            assert_eq!(
                after(Dialect::Auto, &[line, other]).dialect == dialect,
                stays,
                "{line} {other}"
            );
        }
        // A named dialect is never replaced by a detected one.
        assert_eq!(after(Dialect::Web, &[line]).dialect, Dialect::Web, "{line}");
    }
}

#[test]
fn omp_client_with_newer_commands_is_current() {
    let newer = r#"{"type":"set_host_tools","tools":[]}"#;
    assert_eq!(after(Dialect::Omp, &[newer]).dialect, Dialect::OmpNow);
    let guessed = r#"{"type":"get_branch_messages"}"#;
    assert_eq!(after(Dialect::Auto, &[guessed, newer]).dialect, Dialect::Xcsh);
    let handshake = r#"{"type":"negotiate_protocol","protocolVersion":1}"#;
    assert!(after(Dialect::Auto, &[handshake]).chosen);
    assert!(!after(Dialect::Auto, &[newer]).chosen);
}

#[test]
fn first_id_ends_early_client_detection() {
    let (bare, other) = (r#"{"type":"prompt","message":"x"}"#, r#"{"type":"get_state"}"#);
    let signs = |lines: &[&str]| {
        let manner = after(Dialect::Auto, lines);
        (manner.seems_early(), manner.seems_old())
    };
    assert_eq!(signs(&[]), (false, false));
    assert_eq!(signs(&["no json"]), (false, false));
    assert_eq!(signs(&[bare, "no json"]), (true, true));
    assert_eq!(signs(&[bare, other]), (false, true));
    assert_eq!(signs(&[bare, r#"{"id":1,"type":"abort"}"#]), (false, false));
    assert_eq!(signs(&[bare, r#"{"type":"get_tree"}"#]), (false, false));
}

#[test]
fn chosen_dialect_is_final_until_reset() {
    let spoken = Spoken::new(Dialect::Pi);
    spoken.choose_delta(Some(true));
    spoken.choose(Dialect::Xcsh);
    let manner = spoken.manner();
    assert_eq!(
        (manner.dialect, manner.chosen, manner.delta),
        (Dialect::Xcsh, true, Some(true))
    );
    assert!(manner.has_delta_updates());
    spoken.choose_delta(None);
    assert!(!spoken.manner().has_delta_updates());
    spoken.choose(Dialect::Auto);
    spoken.hear(&parse_line(br#"{"type":"reset"}"#));
    assert_eq!(spoken.manner().dialect, Dialect::Hooks);
}

/// Writes events, and gives the lines of each.
fn write(encoder: &mut Encoder, event: &Event) -> Vec<Value> {
    let (now, mut out) = (Instant::now(), Vec::new());
    encoder.event(event, now, &mut out);
    encoder.flush(now, &mut out);
    let text = String::from_utf8(out).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn compaction_end_keeps_dialect_of_its_start() {
    let spoken = Spoken::default();
    let mut encoder = Encoder::speaking(spoken.clone());
    let reason = CompactionReason::Threshold;
    let end = Event::CompactionEnd {
        reason,
        result: None,
        aborted: true,
        will_retry: false,
        error_message: None,
    };
    let kind = |lines: Vec<Value>| {
        lines
            .iter()
            .map(|line| line["type"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        kind(write(&mut encoder, &Event::CompactionStart { reason })),
        ["compaction_start"]
    );
    spoken.choose(Dialect::Hooks);
    assert_eq!(kind(write(&mut encoder, &end)), ["compaction_end"]);
    assert_eq!(
        kind(write(&mut encoder, &Event::CompactionStart { reason })),
        ["auto_compaction_start"]
    );
    assert_eq!(kind(write(&mut encoder, &end)), ["auto_compaction_end"]);
}

#[test]
fn update_form_stays_within_answer() {
    let spoken = Spoken::new(Dialect::PiDelta);
    let mut encoder = Encoder::speaking(spoken.clone());
    let start = Event::MessageStart {
        message: Arc::new(Message::Assistant(AssistantMessage::begin("a", "p", "m", 0))),
    };
    let update = Event::MessageUpdate {
        usage: Usage::default(),
        assistant_message_event: StreamEvent::TextDelta {
            content_index: 0,
            delta: "x".to_owned(),
        },
    };
    write(&mut encoder, &start);
    assert!(write(&mut encoder, &update)[0].get("message").is_none());
    spoken.choose(Dialect::Hooks);
    // What came before the change is not at hand any more.
    assert!(write(&mut encoder, &update)[0].get("message").is_none());
    write(&mut encoder, &start);
    assert_eq!(
        write(&mut encoder, &update)[0]["message"]["content"][0]["text"],
        "x"
    );
}

#[test]
fn refused_version_keeps_framing() {
    let spoken = Spoken::new(Dialect::OmpNow);
    let mut encoder = Encoder::speaking(spoken.clone());
    let rows = [
        (2, true, true),
        (3, false, true),
        (1, false, true),
        (1, true, false),
        (2, false, false),
    ];
    for (version, is_granted, chunks) in rows {
        let line = format!(r#"{{"type":"negotiate_protocol","protocolVersion":{version}}}"#);
        spoken.hear(&parse_line(line.as_bytes()));
        let granted = Reply::Negotiated(Negotiated {
            protocol_version: version,
        });
        let response = Response {
            id: None,
            command: Some("negotiate_protocol".into()),
            outcome: if is_granted {
                Ok(granted)
            } else {
                Err("Unsupported".to_owned())
            },
        };
        encoder.response(&response, Instant::now(), &mut Vec::new());
        assert_eq!(spoken.manner().chunks, chunks, "{version}, granted: {is_granted}");
    }
}

/// A frame of the user interface as clients of a dialect get it; nothing when they do not.
fn ui_frame(spoken: &Spoken, method: UiMethod) -> Option<Value> {
    let mut request = UiRequest::new("q1".to_owned(), method);
    request.title = Some("t".to_owned());
    let event = Event::ExtensionUiRequest {
        request: Box::new(request),
    };
    let mut out = Vec::new();
    Encoder::speaking(spoken.clone()).event(&event, Instant::now(), &mut out);
    (!out.is_empty()).then(|| serde_json::from_slice(&out).unwrap())
}

#[test]
fn newest_omp_gets_descriptions_of_options() {
    let described = SelectOption {
        label: "green".to_owned(),
        description: Some("as grass".to_owned()),
    };
    for dialect in Dialect::ALL {
        let mut request = UiRequest::new("q1".to_owned(), UiMethod::Select);
        request.options = Some(vec![SelectOption::from("red".to_owned()), described.clone()]);
        let event = Event::ExtensionUiRequest {
            request: Box::new(request),
        };
        let mut out = Vec::new();
        Encoder::speaking(Spoken::new(dialect)).event(&event, Instant::now(), &mut out);
        let frame: Value = serde_json::from_slice(&out).unwrap_or_default();
        let details = json!([{}, {"description": "as grass"}]);
        let expected = if dialect == Dialect::OmpNow {
            details
        } else {
            Value::Null
        };
        assert_eq!(frame["optionDetails"], expected, "{dialect:?}");
        if !out.is_empty() {
            assert_eq!(frame["options"], json!(["red", "green"]), "{dialect:?}");
        }
    }
}

#[test]
fn row_03_dialog_frame_type_follows_dialect() {
    for dialect in Dialect::ALL {
        for method in UiMethod::ALL {
            let Some(frame) = ui_frame(&Spoken::new(dialect), method) else {
                continue;
            };
            let expected =
                json!({"type": dialect.ui_request(), "id": "q1", "method": method.as_str(), "title": "t"});
            assert_eq!(frame, expected, "{dialect:?}");
        }
    }
}

#[test]
fn row_02_extension_error_type_follows_dialect() {
    for dialect in Dialect::ALL {
        let event = Event::ExtensionError {
            extension_path: "/x.ts".to_owned(),
            event: "tool_call".to_owned(),
            error: "broken".to_owned(),
        };
        let line = write(&mut Encoder::speaking(Spoken::new(dialect)), &event).remove(0);
        let (kind, member) = dialect.extension_error();
        let mut expected = json!({"type": kind, member: "/x.ts", "event": "tool_call", "error": "broken"});
        if dialect == Dialect::Auto {
            expected["hookPath"] = "/x.ts".into();
        }
        assert_eq!(line, expected, "{dialect:?}");
    }
}

#[test]
fn row_28_titles_and_cancels_follow_dialect() {
    let sent = |spoken: &Spoken| {
        [UiMethod::SetTitle, UiMethod::Cancel].map(|method| ui_frame(spoken, method).is_some())
    };
    for dialect in Dialect::ALL {
        let spoken = Spoken::new(dialect);
        let is_vendor = matches!(dialect, Dialect::Xcsh | Dialect::OmpNow);
        assert_eq!(sent(&spoken), [!is_vendor, is_vendor], "{dialect:?}");
        for wish in [true, false] {
            spoken.choose_ui(WantedUi {
                titles: Some(wish),
                cancels: Some(wish),
            });
            spoken.choose(dialect);
            assert_eq!(sent(&spoken), [wish, wish], "{dialect:?}");
        }
    }
}

/// What nothing in the agent asks yet, as the description of xcsh shows it.
#[test]
fn xcsh_dialog_frames_match_description() {
    let confirm = UiRequest {
        title: Some("Confirm".to_owned()),
        message: Some("Continue?".to_owned()),
        timeout: Some(30_000),
        ..UiRequest::new("123".to_owned(), UiMethod::Confirm)
    };
    let input = UiRequest {
        title: Some("Branch name".to_owned()),
        placeholder: Some("feature/...".to_owned()),
        ..UiRequest::new("ui_7".to_owned(), UiMethod::Input)
    };
    for (request, shown) in [
        (
            confirm,
            r#"{"type":"extension_ui_request","id":"123","method":"confirm","title":"Confirm","message":"Continue?","timeout":30000}"#,
        ),
        (
            input,
            r#"{"type":"extension_ui_request","id":"ui_7","method":"input","title":"Branch name","placeholder":"feature/..."}"#,
        ),
    ] {
        let mut out = Vec::new();
        let request = Box::new(request);
        let event = Event::ExtensionUiRequest { request };
        Encoder::speaking(Spoken::new(Dialect::Xcsh)).event(&event, Instant::now(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap().trim_end(), shown);
    }
}

#[test]
fn row_40_continued_run_has_no_end() {
    let end = |will_retry| Event::AgentEnd {
        messages: Vec::new(),
        will_retry,
        limit: None,
        result: None,
        result_error: None,
    };
    let kinds = |dialect: Dialect, events: &[Event]| {
        let mut encoder = Encoder::speaking(Spoken::new(dialect));
        let mut out = Vec::new();
        for event in events {
            encoder.event(event, Instant::now(), &mut out);
        }
        let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lines = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
        let kinds = lines.map(|line| line["type"].as_str().unwrap().to_owned());
        kinds
            .filter(|kind| kind.starts_with("agent_"))
            .collect::<Vec<_>>()
    };
    let settled = Event::AgentSettled { aborted: false };
    let retried = [
        Event::AgentStart,
        end(true),
        Event::AgentStart,
        end(false),
        settled.clone(),
    ];
    let queued = [
        Event::AgentStart,
        end(false),
        Event::AgentStart,
        end(false),
        settled.clone(),
    ];
    let given_up = [Event::AgentStart, end(true), settled];
    for dialect in Dialect::ALL {
        let ends = |events: &[Event]| {
            let kinds = kinds(dialect, events);
            kinds.iter().filter(|kind| *kind == "agent_end").count()
        };
        let first = if dialect == Dialect::OmpNow { 1 } else { 2 };
        assert_eq!(ends(&retried), first, "{dialect:?}");
        assert_eq!(
            ends(&queued),
            first,
            "{dialect:?}: a message was queued meanwhile"
        );
        assert_eq!(ends(&given_up), 1, "{dialect:?}: a retry that was cancelled");
    }
}

#[test]
fn row_40_end_of_prompt_has_its_result() {
    let end = |result| Event::AgentEnd {
        messages: Vec::new(),
        will_retry: false,
        limit: None,
        result,
        result_error: None,
    };
    let mut encoder = Encoder::speaking(Spoken::new(Dialect::OmpNow));
    let mut out = Vec::new();
    // The run after it is that of a message which was queued while the conversation was compacted.
    let settled = Event::AgentSettled { aborted: false };
    let events = [end(Some(json!(7))), Event::AgentStart, end(None), settled];
    for event in &events {
        encoder.event(event, Instant::now(), &mut out);
    }
    let text = String::from_utf8(out).unwrap();
    let shown = text.lines().find(|line| line.contains("\"agent_end\"")).unwrap();
    assert!(shown.contains("\"result\":7"), "{shown}");
}

#[test]
fn refusals_have_words_of_oh_my_pi() {
    let refused = |dialect: Dialect, line: &str| {
        let spoken = Spoken::new(dialect);
        let inbound = parse_line(line.as_bytes());
        let manner = spoken.hear(&inbound);
        match intake::mail(inbound, manner, ClientId::default()) {
            Some((SessionRequest::Reject(_, response), _)) => response.outcome.unwrap_err(),
            other => panic!("{other:?}"),
        }
    };
    for (line, words) in [
        (
            r#"{"type":"set_subagent_subscription","level":"all"}"#,
            "Invalid subagent subscription level: all",
        ),
        (
            r#"{"type":"set_subagent_subscription"}"#,
            "Invalid subagent subscription level: undefined",
        ),
        (
            r#"{"type":"get_subagent_messages","subagentId":"a","fromByte":"x"}"#,
            "fromByte must be a finite number",
        ),
    ] {
        assert_eq!(refused(Dialect::OmpNow, line), words);
        assert_ne!(
            refused(Dialect::Pi, line),
            words,
            "other dialects say what Pinion found"
        );
    }
}
