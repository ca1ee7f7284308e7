//! Every flag of `compat` by what it does to a request (providers.md 4, pi-1.5-delta.md 6): a table of flag, value, and what
//! is then where in the body or among the headers.

use serde_json::{Value, json};
use wire::{ThinkingLevel, ToolSpec};

use super::request;
use super::requests::{build, header, with};
use crate::request::{CacheRetention, ModelRequest, ToolChoice};

/// A conversation with everything that a flag may change: a system prompt, a tool, a call, a result, reasoning.
fn asked(api: &str, fields: &Value) -> ModelRequest {
    let mut request = request(with(api, fields.clone()));
    request.system_prompt = "S".to_owned();
    request.session_id = Some("sid".to_owned());
    request.thinking = ThinkingLevel::High;
    let answer = |content: Value| {
        json!({"role": "assistant", "content": content, "api": api, "provider": fields["provider"].as_str().unwrap_or("p"),
        "model": fields["id"].as_str().unwrap_or("m"), "stopReason": "toolUse"})
    };
    let messages = json!([
        {"role": "user", "content": "u"},
        answer(json!([{"type": "thinking", "thinking": "why", "thinkingSignature": "reasoning_content"},
            {"type": "toolCall", "id": "c1", "name": "t", "arguments": {}}])),
        {"role": "toolResult", "toolCallId": "c1", "toolName": "t", "content": [{"type": "text", "text": "r"}]},
        answer(json!([{"type": "toolCall", "id": "c2", "name": "t", "arguments": {}}])),
        {"role": "toolResult", "toolCallId": "c2", "toolName": "t", "content": [{"type": "text", "text": "r"}]},
        {"role": "user", "content": "v"},
    ]);
    request.messages = serde_json::from_value(messages).unwrap();
    request.tools =
        serde_json::from_value(json!([{"name": "t", "description": "d", "parameters": {"type": "object"}}]))
            .unwrap();
    request
}

/// Flags, a place in the body, and the value there; null if absent.
type Row = (Value, &'static str, Value);

fn check(api: &str, rows: impl IntoIterator<Item = Row>, change: fn(&mut ModelRequest)) {
    for (compat, place, expected) in rows {
        let mut request = asked(api, &json!({"compat": compat}));
        change(&mut request);
        let body = build(&request).1;
        let there = body.pointer(place).cloned().unwrap_or_default();
        assert_eq!(there, expected, "{api}, {compat}: {place} of {body:#}");
    }
}

fn nothing(_: &mut ModelRequest) {}

#[test]
fn sampling_parameters_of_models_are_sent() {
    let members = json!({
        "samplingParams": {"top_p": 0.5, "top_k": 1},
        "samplingParamsByThinkingLevel": {"high": {"top_k": 2}, "low": {"top_k": 3}},
    });
    for api in ["openai-completions", "openai-responses"] {
        let body = build(&asked(api, &members)).1;
        assert_eq!(
            (&body["top_p"], &body["top_k"]),
            (&json!(0.5), &json!(2)),
            "{api}: {body:#}"
        );
    }
}

#[test]
fn chat_completions_compat_flags_change_request() {
    let rows = [
        (json!({}), "/store", json!(false)),
        (json!({"supportsStore": false}), "/store", json!(null)),
        (json!({}), "/messages/0/role", json!("developer")),
        (
            json!({"supportsDeveloperRole": false}),
            "/messages/0/role",
            json!("system"),
        ),
        (json!({}), "/reasoning_effort", json!("high")),
        (
            json!({"supportsReasoningEffort": false}),
            "/reasoning_effort",
            json!(null),
        ),
        (json!({}), "/stream_options/include_usage", json!(true)),
        (
            json!({"supportsUsageInStreaming": false}),
            "/stream_options",
            json!(null),
        ),
        (json!({}), "/max_completion_tokens", json!(32_000)),
        (
            json!({"maxTokensField": "max_tokens"}),
            "/max_tokens",
            json!(32_000),
        ),
        (
            json!({"maxTokensField": "max_tokens"}),
            "/max_completion_tokens",
            json!(null),
        ),
        (json!({}), "/messages/3/name", json!(null)),
        (
            json!({"requiresToolResultName": true}),
            "/messages/3/name",
            json!("t"),
        ),
        (json!({}), "/messages/6/role", json!("user")),
        (
            json!({"requiresAssistantAfterToolResult": true}),
            "/messages/6/role",
            json!("assistant"),
        ),
        (
            json!({"requiresAssistantAfterToolResult": true}),
            "/messages/7/role",
            json!("user"),
        ),
        (json!({}), "/messages/4/content", json!(null)),
        (
            json!({"requiresAssistantAfterToolResult": true}),
            "/messages/4/content",
            json!(""),
        ),
        (
            json!({"requiresNonNullAssistantContent": true}),
            "/messages/4/content",
            json!(""),
        ),
        (json!({}), "/messages/2/reasoning_content", json!("why")),
        (
            json!({"requiresThinkingAsText": true}),
            "/messages/2/reasoning_content",
            json!(null),
        ),
        (
            json!({"requiresThinkingAsText": true}),
            "/messages/2/content/0/text",
            json!("why"),
        ),
        (json!({}), "/messages/4/reasoning_content", json!(null)),
        (
            json!({"requiresReasoningContentOnAssistantMessages": true}),
            "/messages/4/reasoning_content",
            json!(""),
        ),
        (
            json!({"requiresReasoningContentOnAssistantMessages": true}),
            "/messages/2/reasoning_content",
            json!("why"),
        ),
        (json!({}), "/tools/0/function/strict", json!(false)),
        (
            json!({"supportsStrictMode": false}),
            "/tools/0/function/strict",
            json!(null),
        ),
        (json!({}), "/tool_stream", json!(null)),
        (json!({"zaiToolStream": true}), "/tool_stream", json!(true)),
        (json!({}), "/tools/0/cache_control", json!(null)),
        (
            json!({"cacheControlFormat": "anthropic"}),
            "/tools/0/cache_control/type",
            json!("ephemeral"),
        ),
        (
            json!({"cacheControlFormat": "anthropic"}),
            "/messages/0/content/0/cache_control/type",
            json!("ephemeral"),
        ),
        (
            json!({"cacheControlFormat": "anthropic"}),
            "/messages/6/content/0/cache_control/type",
            json!("ephemeral"),
        ),
        (json!({}), "/prompt_cache_key", json!(null)),
        (
            json!({"promptCacheKeyMode": "enabled"}),
            "/prompt_cache_key",
            json!("sid"),
        ),
        (json!({"vllmPriority": -3}), "/priority", json!(-3)),
        (
            json!({"openRouterRouting": {"order": ["a"], "zdr": true}}),
            "/provider",
            json!({"order": ["a"], "zdr": true}),
        ),
        (
            json!({"vercelGatewayRouting": {"only": ["a"], "x": 1}}),
            "/providerOptions",
            json!({"gateway": {"only": ["a"]}}),
        ),
        (
            json!({"vercelGatewayRouting": {"order": ["b"]}}),
            "/providerOptions/gateway/order",
            json!(["b"]),
        ),
        (
            json!({"vercelGatewayRouting": {}}),
            "/providerOptions",
            json!(null),
        ),
        (
            json!({"samplingParams": {"top_p": 0.5, "max_completion_tokens": 7}}),
            "/top_p",
            json!(0.5),
        ),
        (
            json!({"samplingParams": {"top_p": 0.5, "max_completion_tokens": 7}}),
            "/max_completion_tokens",
            json!(7),
        ),
        (
            json!({"samplingParams": {"top_k": 1}, "samplingParamsByThinkingLevel": {"high": {"top_k": 2}}}),
            "/top_k",
            json!(2),
        ),
        (
            json!({"samplingParamsByThinkingLevel": {"low": {"top_k": 2}}}),
            "/top_k",
            json!(null),
        ),
        (
            json!({"thinkingTokenBudgetField": "thinking_budget"}),
            "/thinking_budget",
            json!(16_384),
        ),
        (
            json!({"supportsThinkingTokenBudget": true}),
            "/thinking_token_budget",
            json!(16_384),
        ),
        (
            json!({"thinkingTokenBudgetField": "rm -rf"}),
            "/rm -rf",
            json!(null),
        ),
    ];
    check("openai-completions", rows, nothing);
}

#[test]
fn prompt_cache_flags_change_request() {
    let long = |request: &mut ModelRequest| request.cache_retention = CacheRetention::Long;
    let rows = [
        (json!({}), "/prompt_cache_retention", json!("24h")),
        (json!({}), "/prompt_cache_key", json!("sid")),
        (
            json!({"promptCacheKeyMode": "disabled"}),
            "/prompt_cache_key",
            json!(null),
        ),
        (
            json!({"supportsLongCacheRetention": false}),
            "/prompt_cache_retention",
            json!(null),
        ),
        (
            json!({"supportsLongCacheRetention": false}),
            "/prompt_cache_key",
            json!(null),
        ),
        (
            json!({"cacheControlFormat": "anthropic"}),
            "/tools/0/cache_control/ttl",
            json!("1h"),
        ),
        (
            json!({"cacheControlFormat": "anthropic", "supportsLongCacheRetention": false}),
            "/tools/0/cache_control/ttl",
            json!(null),
        ),
    ];
    check("openai-completions", rows, long);
    let none = |request: &mut ModelRequest| request.cache_retention = CacheRetention::None;
    let rows = [
        (
            json!({"promptCacheKeyMode": "enabled"}),
            "/prompt_cache_key",
            json!(null),
        ),
        (
            json!({"cacheControlFormat": "anthropic"}),
            "/tools/0/cache_control",
            json!(null),
        ),
    ];
    check("openai-completions", rows, none);
}

#[test]
fn tool_history_flag_sends_empty_tools() {
    let bare = |request: &mut ModelRequest| request.tools.clear();
    let rows = [
        (json!({}), "/tools", json!(null)),
        (json!({"requiresToolsWithToolHistory": true}), "/tools", json!([])),
    ];
    check("openai-completions", rows, bare);
    let fresh = |request: &mut ModelRequest| {
        request.tools.clear();
        request.messages.truncate(1);
    };
    check(
        "openai-completions",
        [(
            json!({"requiresToolsWithToolHistory": true}),
            "/tools",
            json!(null),
        )],
        fresh,
    );
}

/// A form of asking for reasoning: the request at level high, and with reasoning off.
#[test]
fn reasoning_formats_change_request() {
    let kwargs = json!({"enable": {"$var": "thinking.enabled"}, "effort": {"$var": "thinking.effort"}, "mode": "x",
        "budget": {"$var": "thinking.budget", "omitWhenOff": true}, "odd": {"$var": "thinking.colour"}});
    let rows = [
        ("openai", json!({"reasoning_effort": "high"}), json!({})),
        (
            "openrouter",
            json!({"reasoning": {"effort": "high"}}),
            json!({"reasoning": {"effort": "none"}}),
        ),
        (
            "deepseek",
            json!({"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
            json!({"thinking": {"type": "disabled"}}),
        ),
        (
            "together",
            json!({"reasoning": {"enabled": true}, "reasoning_effort": "high"}),
            json!({"reasoning": {"enabled": false}}),
        ),
        (
            "zai",
            json!({"thinking": {"type": "enabled", "clear_thinking": false}, "reasoning_effort": "high"}),
            json!({"thinking": {"type": "disabled"}}),
        ),
        (
            "qwen",
            json!({"enable_thinking": true, "reasoning_effort": "high"}),
            json!({"enable_thinking": false}),
        ),
        (
            "qwen-chat-template",
            json!({"chat_template_kwargs": {"enable_thinking": true, "preserve_thinking": true}}),
            json!({"chat_template_kwargs": {"enable_thinking": false, "preserve_thinking": true}}),
        ),
        (
            "chat-template",
            json!({"chat_template_kwargs": {"enable": true, "effort": "high", "mode": "x", "budget": 16_384}}),
            json!({"chat_template_kwargs": {"enable": false, "mode": "x"}}),
        ),
        (
            "baseten",
            json!({"chat_template_args": {"enable": true, "effort": "high", "mode": "x", "budget": 16_384}, "reasoning_effort": "high"}),
            json!({"chat_template_args": {"enable": false, "mode": "x"}}),
        ),
        (
            "string-thinking",
            json!({"thinking": "high"}),
            json!({"thinking": "none"}),
        ),
        ("ant-ling", json!({}), json!({})),
        ("a new one", json!({"reasoning_effort": "high"}), json!({})),
    ];
    let names = [
        "reasoning_effort",
        "reasoning",
        "thinking",
        "enable_thinking",
        "chat_template_kwargs",
        "chat_template_args",
    ];
    for (format, on, off) in rows {
        let compat =
            json!({"thinkingFormat": format, "chatTemplateKwargs": kwargs, "chatTemplateArgs": kwargs});
        for (level, expected) in [(ThinkingLevel::High, on), (ThinkingLevel::Off, off)] {
            let mut request = asked("openai-completions", &json!({"compat": compat}));
            request.thinking = level;
            let mut body = build(&request).1;
            body.as_object_mut()
                .unwrap()
                .retain(|name, _| names.contains(&name.as_str()));
            assert_eq!(body, expected, "{format} {level}");
            request.model.reasoning = false;
            let body = build(&request).1;
            assert!(
                names.iter().all(|name| body.get(name).is_none()),
                "{format}: {body}"
            );
        }
    }
    let map = json!({"off": null, "high": "max"});
    for (format, on, off) in [
        ("openai", json!("max"), json!(null)),
        ("openrouter", json!({"effort": "max"}), json!(null)),
        ("ant-ling", json!({"effort": "max"}), json!(null)),
        ("string-thinking", json!("max"), json!(null)),
        ("deepseek", json!({"type": "enabled"}), json!(null)),
    ] {
        let place = match format {
            "openai" => "reasoning_effort",
            "openrouter" | "ant-ling" => "reasoning",
            _ => "thinking",
        };
        for (level, expected) in [(ThinkingLevel::High, on), (ThinkingLevel::Off, off)] {
            let fields = json!({"compat": {"thinkingFormat": format}, "thinkingLevelMap": map});
            let mut request = asked("openai-completions", &fields);
            request.thinking = level;
            let there = build(&request).1.get(place).cloned().unwrap_or_default();
            // Without a way to switch it off the next level is asked for.
            if level == ThinkingLevel::High {
                assert_eq!(there, expected, "{format} {level}");
            }
        }
    }
}

#[test]
fn session_headers_follow_compat_flags() {
    let names = [
        "session_id",
        "x-client-request-id",
        "x-session-affinity",
        "x-session-id",
    ];
    let sent = |api: &str, fields: Value| -> Vec<&str> {
        let (http, _) = build(&asked(api, &fields));
        names
            .into_iter()
            .filter(|name| header(&http, name).as_deref() == Some("sid"))
            .collect()
    };
    let flags = |format: &str| json!({"compat": {"sendSessionAffinityHeaders": true, "sessionAffinityFormat": format}});
    let chat = "openai-completions";
    assert!(sent(chat, json!({})).is_empty());
    assert_eq!(sent(chat, flags("openai")), names[..3]);
    assert_eq!(sent(chat, flags("openai-nosession")), names[1..3]);
    assert_eq!(sent(chat, flags("openrouter")), names[3..]);
    assert_eq!(sent(chat, json!({"provider": "openrouter"})), names[3..]);
    assert!(
        sent(
            chat,
            json!({"provider": "openrouter", "compat": {"sendSessionAffinityHeaders": false}})
        )
        .is_empty()
    );
    for api in ["openai-responses", "azure-openai-responses"] {
        assert_eq!(sent(api, json!({"baseUrl": "http://x"})), names[..2]);
        assert_eq!(
            sent(api, json!({"compat": {"sendSessionIdHeader": false}})),
            [names[1]]
        );
        assert_eq!(sent(api, flags("openai-nosession")), [names[1]]);
        assert_eq!(sent(api, flags("openrouter")), [names[3]]);
    }
    let claude = "anthropic-messages";
    assert!(sent(claude, json!({})).is_empty());
    assert_eq!(
        sent(claude, json!({"compat": {"sendSessionAffinityHeaders": true}})),
        [names[2]]
    );
    assert_eq!(sent(claude, flags("openrouter")), [names[3]]);
    assert_eq!(sent(claude, json!({"provider": "openrouter"})), [names[3]]);
}

#[test]
fn responses_compat_flags_change_request() {
    let rows = [
        (json!({}), "/input/0/role", json!("developer")),
        (
            json!({"supportsDeveloperRole": false}),
            "/input/0/role",
            json!("system"),
        ),
        (json!({}), "/max_output_tokens", json!(32_000)),
        (
            json!({"supportsMaxOutputTokens": false}),
            "/max_output_tokens",
            json!(null),
        ),
        (json!({}), "/prompt_cache_key", json!("sid")),
        (
            json!({"promptCacheKeyMode": "disabled"}),
            "/prompt_cache_key",
            json!(null),
        ),
        (json!({"samplingParams": {"top_p": 0.5}}), "/top_p", json!(0.5)),
    ];
    check("openai-responses", rows, nothing);
    let long = |request: &mut ModelRequest| request.cache_retention = CacheRetention::Long;
    let rows = [
        (json!({}), "/prompt_cache_retention", json!("24h")),
        (
            json!({"supportsLongCacheRetention": false}),
            "/prompt_cache_retention",
            json!(null),
        ),
    ];
    check("openai-responses", rows, long);
}

#[test]
fn messages_compat_flags_change_request() {
    let rows = [
        (json!({}), "/tools/0/eager_input_streaming", json!(true)),
        (
            json!({"supportsEagerToolInputStreaming": false}),
            "/tools/0/eager_input_streaming",
            json!(null),
        ),
        (json!({}), "/tools/0/cache_control/type", json!("ephemeral")),
        (
            json!({"supportsCacheControlOnTools": false}),
            "/tools/0/cache_control",
            json!(null),
        ),
        (json!({}), "/thinking/type", json!("enabled")),
        (
            json!({"forceAdaptiveThinking": true}),
            "/thinking/type",
            json!("adaptive"),
        ),
        // Parameters of other APIs' servers do not go to this one.
        (json!({"samplingParams": {"top_p": 0.5}}), "/top_p", json!(null)),
    ];
    check("anthropic-messages", rows, nothing);
    let long = |request: &mut ModelRequest| request.cache_retention = CacheRetention::Long;
    let rows = [
        (json!({}), "/system/0/cache_control/ttl", json!("1h")),
        (
            json!({"supportsLongCacheRetention": false}),
            "/system/0/cache_control/ttl",
            json!(null),
        ),
    ];
    check("anthropic-messages", rows, long);
    let betas = |compat: Value| {
        let (http, _) = build(&asked("anthropic-messages", &json!({"compat": compat})));
        header(&http, "anthropic-beta").unwrap_or_default()
    };
    assert!(!betas(json!({})).contains("fine-grained"));
    assert!(
        betas(json!({"supportsEagerToolInputStreaming": false}))
            .contains("fine-grained-tool-streaming-2025-05-14")
    );
    assert!(!betas(json!({"forceAdaptiveThinking": true})).contains("interleaved"));
}

#[test]
fn allowed_fallback_models_are_named_in_request() {
    let entry = |provider: &str, id: &str| json!({"provider": provider, "model": id, "cost": {"input": 1, "output": 2}});
    let allowed = json!([entry("p", "smaller"), entry("other", "foreign")]);
    let (http, body) = build(&asked(
        "anthropic-messages",
        &json!({"compat": {"allowedFallbackModels": allowed}}),
    ));
    assert_eq!(body["fallbacks"], json!([{"model": "smaller"}]));
    let betas = header(&http, "anthropic-beta").unwrap();
    assert!(betas.contains("server-side-fallback-2026-07-01"), "{betas}");
    let (http, body) = build(&asked("anthropic-messages", &json!({})));
    assert!(body.get("fallbacks").is_none());
    assert!(!header(&http, "anthropic-beta").unwrap().contains("fallback"));
}

#[test]
fn strict_is_stated_by_flag_in_newer_convention() {
    let strict = |compat: Value| {
        let mut request = asked("openai-completions", &json!({"compat": compat}));
        request.conventions.strict_by_flag = true;
        build(&request).1["tools"][0]["function"]["strict"].clone()
    };
    assert_eq!(strict(json!({})), Value::Null);
    assert_eq!(strict(json!({"supportsStrictMode": true})), false);
}

#[test]
fn preferring_tools_are_strict_in_newer_convention() {
    let tools = |api: &str, fields: Value, by_flag| {
        let mut request = asked(api, &fields);
        request.api_key = Some(auth::Secret::new("k"));
        request.conventions.strict_by_flag = by_flag;
        let tool = |name: &str, prefers_strict| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({"type": "object", "properties": {"p": {"type": "string"}}}),
            prefers_strict,
        };
        request.tools = vec![tool("own", true), tool("foreign", false)];
        let body = build(&request).1;
        let tools = body.get("tools").unwrap_or(&body["toolConfig"]["tools"]);
        let of = |at: usize| {
            let tool = &tools[at];
            let tool = tool.get("function").or(tool.get("toolSpec")).unwrap_or(tool);
            let schema = tool.get("parameters").unwrap_or(&tool["inputSchema"]["json"]);
            (tool["strict"].clone(), schema["required"].clone())
        };
        (of(0), of(1))
    };
    let strict = (json!(true), json!(["p"]));
    let flagged = json!({"compat": {"supportsStrictMode": true}});
    for (api, fields, other) in [
        ("openai-completions", flagged.clone(), json!(false)),
        ("openai-responses", flagged.clone(), json!(false)),
        (
            "azure-openai-responses",
            json!({"baseUrl": "https://x.openai.azure.com"}),
            json!(false),
        ),
        ("mistral-conversations", json!({}), json!(false)),
        ("bedrock-converse-stream", flagged.clone(), Value::Null),
    ] {
        let other = (other, Value::Null);
        assert_eq!(
            tools(api, fields.clone(), true),
            (strict.clone(), other.clone()),
            "{api}"
        );
        assert_eq!(tools(api, fields, false), (other.clone(), other), "{api}");
    }
    let (own, _) = tools("openai-responses", json!({}), true);
    assert_eq!(own, (json!(false), Value::Null));
}

#[test]
fn preferring_tools_are_validated_by_newer_gemini() {
    let body = |id: &str, by_flag, choice| {
        let mut request = asked("google-generative-ai", &json!({"id": id}));
        request.conventions.strict_by_flag = by_flag;
        request.tool_choice = choice;
        request.tools = vec![ToolSpec {
            name: "own".to_owned(),
            description: String::new(),
            parameters: json!({"type": "object", "properties": {"p": {"type": "string"}}}),
            prefers_strict: true,
        }];
        let body = build(&request).1;
        let schema = &body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"];
        (
            body["toolConfig"]["functionCallingConfig"]["mode"].clone(),
            schema["required"].clone(),
        )
    };
    let plain = (Value::Null, Value::Null);
    let strict = |mode| (json!(mode), json!(["p"]));
    let (auto, any) = (Some(ToolChoice::Auto), Some(ToolChoice::Any));
    assert_eq!(body("gemini-3-flash", true, None), strict("VALIDATED"));
    assert_eq!(body("gemini-3-flash", true, auto.clone()), strict("VALIDATED"));
    assert_eq!(body("gemini-3-flash", true, any), strict("ANY"));
    assert_eq!(body("gemini-3-flash", false, None), plain);
    assert_eq!(body("gemini-3-flash", false, auto).0, "AUTO");
    assert_eq!(body("gemini-2.5-pro", true, None), plain);
}

#[test]
fn adaptive_thinking_follows_flag_or_id_by_convention() {
    use crate::request::AdaptiveThinking::{ByFlag, ByFlagOrId};
    let thinking = |fields: Value, adaptive_thinking| {
        let mut request = asked("anthropic-messages", &fields);
        request.conventions.adaptive_thinking = adaptive_thinking;
        build(&request).1["thinking"]["type"].clone()
    };
    let named = json!({"id": "claude-opus-4-6"});
    assert_eq!(thinking(named.clone(), ByFlagOrId), "adaptive");
    assert_eq!(thinking(named, ByFlag), "enabled");
    for convention in [ByFlagOrId, ByFlag] {
        let flagged = json!({"id": "m", "compat": {"forceAdaptiveThinking": true}});
        assert_eq!(thinking(flagged, convention), "adaptive");
        let opted_out = json!({"id": "claude-opus-4-6", "compat": {"forceAdaptiveThinking": false}});
        assert_eq!(thinking(opted_out, convention), "enabled");
    }
}

#[test]
fn output_limit_and_budget_fit_into_the_room() {
    let limits = |api: &str, room, place: &str| {
        let mut request = asked(api, &json!({"maxTokens": 32_000}));
        request.output.room = room;
        let body = build(&request).1;
        (body.pointer(place).cloned(), body["thinking"].clone())
    };
    for (api, place) in [
        ("anthropic-messages", "/max_tokens"),
        ("openai-completions", "/max_completion_tokens"),
        ("openai-responses", "/max_output_tokens"),
        ("google-generative-ai", "/generationConfig/maxOutputTokens"),
    ] {
        assert_eq!(limits(api, None, place).0, Some(json!(32_000)), "{api}");
        assert_eq!(limits(api, Some(20_000), place).0, Some(json!(20_000)), "{api}");
        assert_eq!(limits(api, Some(90_000), place).0, Some(json!(32_000)), "{api}");
    }
    let thinking = |room| limits("anthropic-messages", Some(room), "/max_tokens").1;
    assert_eq!(thinking(20_000)["budget_tokens"], 16_384);
    assert_eq!(
        thinking(10_000)["budget_tokens"],
        8_976,
        "1,024 tokens are left for the answer"
    );
    assert_eq!(thinking(1)["type"], "disabled");
}

#[test]
fn missing_finish_reason_is_accepted_with_flag() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n";
    let model = |compat: Value| with("openai-completions", json!({"compat": compat}));
    let (message, failed) = super::last(&super::run(&model(json!({})), [text.as_bytes()]));
    assert!(failed && message["errorMessage"] == "Stream ended without finish_reason");
    let (message, failed) = super::last(&super::run(
        &model(json!({"supportsFinishReason": false})),
        [text.as_bytes()],
    ));
    assert!(!failed && message["stopReason"] == "stop");
}

/// Flags that are guessed from provider or address (providers.md 4), if the model has none.
#[test]
fn compat_flags_are_guessed_from_provider() {
    let guess = |fields: Value, place: &str| {
        build(&asked("openai-completions", &fields))
            .1
            .pointer(place)
            .cloned()
            .unwrap_or_default()
    };
    for provider in [
        "cerebras",
        "xai",
        "together",
        "deepseek",
        "zai",
        "moonshotai",
        "moonshotai-cn",
        "opencode",
        "opencode-go",
        "cloudflare-ai-gateway",
        "cloudflare-workers-ai",
        "zai-coding-cn",
        "nvidia",
        "ant-ling",
    ] {
        assert_eq!(
            guess(json!({"provider": provider}), "/store"),
            json!(null),
            "{provider}"
        );
        assert_eq!(
            guess(json!({"provider": provider}), "/messages/0/role"),
            "system",
            "{provider}"
        );
    }
    for (url, old) in [
        ("https://llm.chutes.ai/v1", true),
        ("https://api.together.xyz", true),
        ("https://api.deepseek.com", true),
        ("https://api.z.ai/api/coding/paas/v4", true),
        ("https://open.bigmodel.cn/api/paas/v4", true),
        ("https://integrate.api.nvidia.com/v1", true),
        ("http://127.0.0.1:8080/v1", false),
    ] {
        let field = if old {
            "/max_tokens"
        } else {
            "/max_completion_tokens"
        };
        assert_eq!(guess(json!({"baseUrl": url}), field), 32_000, "{url}");
    }
    for (id, role) in [
        ("deepseek/deepseek-v4", "system"),
        ("openai/gpt-5.5", "developer"),
        ("anthropic/claude-x", "developer"),
    ] {
        let message = guess(json!({"provider": "openrouter", "id": id}), "/messages/0");
        assert_eq!(message["role"], role, "{id}");
    }
    for provider in ["moonshotai", "together", "cloudflare-ai-gateway", "nvidia"] {
        assert_eq!(
            guess(json!({"provider": provider}), "/tools/0/function/strict"),
            json!(null),
            "{provider}"
        );
    }
    for provider in ["xai", "zai", "moonshotai", "cloudflare-ai-gateway"] {
        assert_eq!(
            guess(json!({"provider": provider}), "/reasoning_effort"),
            json!(null),
            "{provider}"
        );
    }
    assert_eq!(
        guess(json!({"provider": "deepseek"}), "/messages/4/reasoning_content"),
        ""
    );
    let claude = json!({"provider": "openrouter", "id": "anthropic/claude-x"});
    assert_eq!(guess(claude, "/tools/0/cache_control/type"), "ephemeral");
}
