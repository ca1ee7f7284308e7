//! Changed instructions inside the conversation: system prompt, tools and effort, for models whose flags say that they accept
//! them, and for models that do not.

use std::sync::Arc;

use auth::Environment;
use serde_json::{Value, json};
use wire::{Message, ThinkingLevel, ToolSpec};

use super::requests::{build, header, with};
use crate::PromptHistory;
use crate::family::Family;
use crate::request::ModelRequest;

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "d".to_owned(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "number"}},
            "required": ["path"]}),
        prefers_strict: name == "read",
    }
}

/// A session that sends a request, gets an answer, and goes on.
struct Talk {
    api: &'static str,
    fields: Value,
    messages: Vec<Arc<Message>>,
    history: PromptHistory,
}

impl Talk {
    fn new(api: &'static str, fields: Value) -> Self {
        Self {
            api,
            fields,
            messages: Vec::new(),
            history: PromptHistory::default(),
        }
    }

    /// The next request with these instructions; its answer joins the conversation.
    fn ask(&mut self, prompt: &str, tools: &[&str], thinking: ThinkingLevel) -> ModelRequest {
        let turn = self.messages.len() as i64;
        self.messages
            .push(Arc::new(Message::user(format!("u{turn}"), turn)));
        let mut request = super::request(with(self.api, self.fields.clone()));
        request.messages.clone_from(&self.messages);
        request.system_prompt = prompt.to_owned();
        request.tools = tools.iter().map(|name| tool(name)).collect();
        request.thinking = thinking;
        self.history.observe(&mut request);
        let answer = json!({"role": "assistant", "content": [{"type": "text", "text": format!("a{turn}")}], "api": self.api,
            "provider": "p", "model": "m", "stopReason": "stop", "timestamp": turn + 1});
        self.messages
            .push(Arc::new(serde_json::from_value(answer).unwrap()));
        request
    }
}

fn body(request: &ModelRequest) -> Value {
    build(request).1
}

/// Role (or type) and text, effort or tools of each message or item.
fn outline(list: &Value) -> Vec<String> {
    let show = |item: &Value| {
        let who = item["role"].as_str().or(item["type"].as_str()).unwrap_or("?");
        let effort = item["output_config"]["effort"]
            .as_str()
            .or(item["reasoning"]["effort"].as_str());
        let parts = item["content"].as_array().cloned().unwrap_or_default();
        let part = |part: &Value| match part["type"].as_str() {
            Some("tool_addition") => format!("+{}", part["tool"]["definition"]["name"].as_str().unwrap()),
            Some("tool_removal") => format!("-{}", part["tool"]["name"].as_str().unwrap()),
            _ => part["text"].as_str().unwrap_or_default().to_owned(),
        };
        let mut said: Vec<String> = parts.iter().map(part).collect();
        said.extend(item["content"].as_str().map(str::to_owned));
        said.extend(effort.map(|effort| format!("effort {effort}")));
        format!("{who}: {}", said.join(" "))
    };
    list.as_array().unwrap().iter().map(show).collect()
}

const ALL: &str = r#"{"thinkingLevelMap": {"off": null, "xhigh": "xhigh"}, "compat": {"forceAdaptiveThinking": true,
    "supportsMidConvoEffort": true, "supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true}}"#;

#[test]
fn anthropic_writes_changes_before_the_answers() {
    use ThinkingLevel::{High, Low, Xhigh};
    let mut talk = Talk::new("anthropic-messages", serde_json::from_str(ALL).unwrap());
    let first = body(&talk.ask("S", &["read", "bash"], Low));
    assert_eq!(outline(&first["messages"]), ["user: u0", "system: effort low"]);
    let second = body(&talk.ask("S\n\nMore.", &["read", "grep"], High));
    assert_eq!(
        outline(&second["messages"]),
        [
            "user: u0",
            "system: effort low",
            "assistant: a0",
            "user: u2",
            "system: Addition to the system prompt:\n\nMore. -bash +grep",
            "system: effort high"
        ]
    );
    let third = body(&talk.ask("T", &["read", "grep"], Xhigh));
    let written = outline(&third["messages"]);
    // Messages that were sent before stay unchanged, so that the provider's cache matches.
    assert_eq!(written[..6], outline(&second["messages"])[..]);
    assert_eq!(
        written[6..],
        [
            "assistant: a2",
            "user: u4",
            "system: This replaces the system prompt:\n\nT",
            "system: effort xhigh"
        ]
    );
    for other in [&second, &third] {
        for part in ["system", "tools", "thinking", "output_config"] {
            assert_eq!(other[part], first[part], "{part}");
        }
    }
    assert_eq!(first["output_config"], json!({"effort": "low"}));
    assert_eq!(
        first["thinking"]["block_binding"]["prefix_mismatch_behavior"],
        "drop_block"
    );
    let names: Vec<&Value> = first["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, ["read", "bash", "__pinion_deferred_placeholder__"]);
    assert_eq!(first["tools"][2]["defer_loading"], true);
    assert_eq!(first["tools"][1]["cache_control"]["type"], "ephemeral");
    // The end of the prompt is marked for the cache, before the effort.
    assert_eq!(
        third["messages"][8]["content"][0]["cache_control"]["type"],
        "ephemeral"
    );
}

#[test]
fn anthropic_requests_betas_for_mid_conversation_changes() {
    let betas = |compat: Value| {
        let mut talk = Talk::new("anthropic-messages", json!({"compat": compat}));
        let (http, _) = build(&talk.ask("S", &["read"], ThinkingLevel::High));
        header(&http, "anthropic-beta").unwrap_or_default()
    };
    let effort = betas(json!({"supportsMidConvoEffort": true}));
    assert!(
        effort.contains("mid-conversation-output-config-2026-07-01"),
        "{effort}"
    );
    assert!(
        effort.contains("thinking-binding-controls-2026-08-01"),
        "{effort}"
    );
    assert!(!effort.contains("inline-tools"), "{effort}");
    let tools = json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true});
    assert!(betas(tools).contains("inline-tools-2026-09-15"));
    assert!(!betas(json!({"supportsMidConvoToolChanges": true})).contains("inline-tools"));
    assert!(!betas(json!({})).contains("mid-conversation"));
}

#[test]
fn thinking_off_writes_no_effort() {
    let fields = json!({"compat": {"forceAdaptiveThinking": true, "supportsMidConvoEffort": true}});
    let mut talk = Talk::new("anthropic-messages", fields);
    talk.ask("S", &[], ThinkingLevel::High);
    let off = body(&talk.ask("S", &[], ThinkingLevel::Off));
    assert_eq!(
        outline(&off["messages"]),
        ["user: u0", "assistant: a0", "user: u2"]
    );
    assert_eq!(off["thinking"], json!({"type": "disabled"}));
    assert_eq!(off["output_config"], json!(null));
    // A model that cannot stop thinking is not told to.
    let fields = json!({"thinkingLevelMap": {"off": null}, "compat": {"forceAdaptiveThinking": true}});
    let always = body(&Talk::new("anthropic-messages", fields).ask("S", &[], ThinkingLevel::Off));
    assert_eq!(always["thinking"], json!(null));
}

#[test]
fn models_without_flags_get_current_instructions_first() {
    for (api, place) in [
        ("anthropic-messages", "/system/0/text"),
        ("openai-completions", "/messages/0/content"),
        ("openai-responses", "/input/0/content"),
        ("openai-codex-responses", "/instructions"),
    ] {
        let mut talk = Talk::new(api, json!({}));
        talk.ask("S", &["read"], ThinkingLevel::Low);
        let mut request = talk.ask("T", &["grep"], ThinkingLevel::High);
        request.api_key = None;
        request.headers = vec![("chatgpt-account-id".to_owned(), "a".to_owned())];
        let body = body(&request);
        assert_eq!(body.pointer(place), Some(&json!("T")), "{api}: {body:#}");
        assert!(!body.to_string().contains("replaces the system prompt"), "{api}");
        assert!(!body.to_string().contains("\"read\""), "{api}");
    }
}

#[test]
fn openai_families_send_system_changes_in_order() {
    let flags = json!({"compat": {"supportsMidConvoSystemMessages": true}});
    for (api, list) in [
        ("openai-completions", "messages"),
        ("openai-responses", "input"),
        ("openai-codex-responses", "input"),
    ] {
        let mut talk = Talk::new(api, flags.clone());
        let mut ask = |prompt: &str| {
            let mut request = talk.ask(prompt, &["read"], ThinkingLevel::Low);
            request.headers = vec![("chatgpt-account-id".to_owned(), "a".to_owned())];
            body(&request)
        };
        ask("S");
        ask("T");
        let third = ask("T");
        let mut written = outline(&third[list]);
        if api == "openai-codex-responses" {
            assert_eq!(third["instructions"], "S");
            written.insert(0, "developer: S".to_owned());
        }
        let expected = [
            "developer: S",
            "user: u0",
            "assistant: a0",
            "user: u2",
            "developer: This replaces the system prompt:\n\nT",
            "assistant: a2",
            "user: u4",
        ];
        assert_eq!(written, expected, "{api}");
    }
}

#[test]
fn openai_responses_write_effort_changes_as_items() {
    let fields = json!({"compat": {"supportsMidConvoEffort": true}});
    let mut talk = Talk::new("openai-responses", fields);
    let first = body(&talk.ask("S", &[], ThinkingLevel::Low));
    let second = body(&talk.ask("S", &[], ThinkingLevel::High));
    assert_eq!(
        outline(&second["input"]),
        [
            "developer: S",
            "user: u0",
            "configuration_update: effort low",
            "assistant: a0",
            "user: u2",
            "configuration_update: effort high"
        ]
    );
    assert_eq!(first["reasoning"]["effort"], "medium");
    assert_eq!(second["reasoning"], first["reasoning"]);
    let off = body(&talk.ask("S", &[], ThinkingLevel::Off));
    assert!(!off["input"].to_string().contains("configuration_update"));
    assert_eq!(off["reasoning"]["effort"], "none");
}

#[test]
fn instruction_history_restarts_with_conversation() {
    let flags = json!({"compat": {"supportsMidConvoSystemMessages": true}});
    let first_prompt = |talk: &mut Talk| {
        let body = body(&talk.ask("T", &[], ThinkingLevel::Low));
        body["messages"][0]["content"].as_str().unwrap().to_owned()
    };
    let talked = || {
        let mut talk = Talk::new("openai-completions", flags.clone());
        talk.ask("S", &[], ThinkingLevel::Low);
        talk.ask("S2", &[], ThinkingLevel::Low);
        talk
    };
    assert_eq!(first_prompt(&mut talked()), "S");
    // Compacted: another first message.
    let mut talk = talked();
    talk.messages.drain(..2);
    assert_eq!(first_prompt(&mut talk), "T");
    // Another branch: another answer at the same place.
    let mut talk = talked();
    talk.messages.truncate(1);
    let answer = json!({"role": "assistant", "content": [], "api": "x", "provider": "p", "model": "m", "timestamp": 77});
    talk.messages
        .push(Arc::new(serde_json::from_value(answer).unwrap()));
    assert_eq!(first_prompt(&mut talk), "T");
    // Another model.
    let mut talk = talked();
    talk.fields["id"] = json!("other");
    assert_eq!(first_prompt(&mut talk), "T");
}

#[test]
fn azure_chat_completions_use_azure_address() {
    let fields = json!({"provider": "azure-openai-responses", "baseUrl": "", "id": "deepseek-v4-pro"});
    let mut request = Talk::new("openai-completions", fields).ask("S", &[], ThinkingLevel::Low);
    assert!(
        Family::of("openai-completions")
            .unwrap()
            .request(&request)
            .is_err()
    );
    let variables = |name: &str| match name {
        "AZURE_OPENAI_RESOURCE_NAME" => Some("own".to_owned()),
        "AZURE_OPENAI_DEPLOYMENT_NAME_MAP" => Some("deepseek-v4-pro=mine".to_owned()),
        _ => None,
    };
    request.environment = Environment::new(variables, |_| None, |_| None);
    let (http, body) = build(&request);
    assert_eq!(
        http.url,
        "https://own.openai.azure.com/openai/v1/chat/completions"
    );
    assert_eq!(body["model"], "mine");
}

#[test]
fn strict_tools_require_model_support() {
    let tools = |compat: Value| {
        let mut talk = Talk::new("anthropic-messages", json!({"compat": compat}));
        body(&talk.ask("S", &["read", "grep"], ThinkingLevel::Low))["tools"].clone()
    };
    let strict = tools(json!({"supportsStrictTools": true}));
    assert_eq!(
        (&strict[0]["strict"], &strict[1]["strict"]),
        (&json!(true), &json!(null))
    );
    assert_eq!(strict[0]["input_schema"]["additionalProperties"], false);
    assert_eq!(strict[0]["input_schema"]["required"], json!(["path", "limit"]));
    assert_eq!(strict[1]["input_schema"]["required"], json!(["path"]));
    assert_eq!(tools(json!({}))[0]["strict"], json!(null));
}

#[test]
fn explicit_prompt_caching_uses_newer_openai_field() {
    use crate::request::CacheRetention::{Long, None, Short};
    for (retention, options) in [
        (None, json!({"mode": "explicit"})),
        (Short, json!(null)),
        (Long, json!({"ttl": "30m"})),
    ] {
        let fields = json!({"compat": {"supportsExplicitPromptCacheMode": true}});
        let mut request = Talk::new("openai-responses", fields).ask("S", &[], ThinkingLevel::Low);
        request.cache_retention = retention;
        let body = body(&request);
        assert_eq!(body["prompt_cache_options"], options, "{retention:?}");
        assert_eq!(body["prompt_cache_retention"], json!(null));
    }
}
