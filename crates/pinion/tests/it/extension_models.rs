//! Extensions and models: providers that extensions bring, with a stream or an address of their own, their logins; models
//! asked by extensions; what extensions change and see of requests.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use testkit::driver::AgentConfig;
use testkit::llm::{ErrorKind, FAMILIES, Reply};

use crate::extensions::{can_run, command, failures, notes};
use crate::kit::{PROGRAM, Pi, World, of_type, text, until};

/// Helpers for extensions of these tests.
const HEAD: &str = r#"
import * as ai from "@earendil-works/pi-ai";
const blank = (model: any) => ({ role: "assistant", content: [] as any[], api: model.api, provider: model.provider, model: model.id, stopReason: "stop", timestamp: 5,
  usage: { input: 10, output: 20, cacheRead: 0, cacheWrite: 0, totalTokens: 30, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } } });
const said = (model: any, text: string) => {
  const stream = ai.createAssistantMessageEventStream();
  const message: any = { ...blank(model), content: [{ type: "text", text }] };
  stream.push({ type: "start", partial: message });
  stream.push({ type: "text_start", contentIndex: 0, partial: message });
  for (const delta of text.match(/.{1,3}/gs) ?? []) stream.push({ type: "text_delta", contentIndex: 0, delta, partial: message });
  stream.push({ type: "text_end", contentIndex: 0, content: text, partial: message });
  stream.push({ type: "done", reason: "stop", message });
  return stream;
};
const models = [{ id: "m1", name: "M1", reasoning: false, input: ["text"], cost: { input: 1000, output: 2000, cacheRead: 0, cacheWrite: 0 }, contextWindow: 9000, maxTokens: 900 }];
const own = (streamSimple: any, more: any = {}) => ({ baseUrl: "own:", api: "own-api", apiKey: "own-key-0123456789", models, streamSimple, ...more });
"#;

/// A world with one extension, whose function this is.
fn extended(replies: impl IntoIterator<Item = Reply>, body: &str) -> World {
    let world = World::new(replies);
    put(&world, "models.ts", body);
    world
}

fn put(world: &World, name: &str, body: &str) {
    let path = world.dir.agent_dir().join("extensions").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = format!("{HEAD}\nexport default function (pi: any) {{\n{body}\n}}\n");
    fs::write(path, text).unwrap();
}

/// The agent with this model from the command line.
fn with_model(world: &World, model: &str) -> AgentConfig {
    world.dir.agent(PROGRAM).args(["--mode", "rpc", "--model", model])
}

fn last_text(pi: &Pi) -> String {
    text(pi.messages().last().unwrap())
}

fn ids(pi: &Pi) -> Vec<String> {
    let models = pi.get("get_available_models");
    let name = |model: &Value| {
        format!(
            "{}/{}",
            model["provider"].as_str().unwrap(),
            model["id"].as_str().unwrap()
        )
    };
    models["models"].as_array().unwrap().iter().map(name).collect()
}

#[test]
fn provider_example_answers_directly_and_through_gateway() {
    if !can_run() {
        return;
    }
    let world = World::new([Reply::text(["from the gateway"])]);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/extensions/custom-provider.ts");
    let config = with_model(&world, "parrot/parrot-1")
        .args(["-e", example.to_str().unwrap()])
        .env("GATEWAY_URL", world.server.url())
        .env("GATEWAY_KEY", "gateway-key-123456");
    let pi = Pi::spawn(config);
    // Which model there is is known only with the extension: the answer waits for it.
    assert_eq!(pi.state()["model"]["id"], "parrot-1");
    let lines = pi.say("Polly wants a cracker");
    assert_eq!(last_text(&pi), "Polly wants a cracker");
    let deltas: Vec<String> = of_type(&lines, "message_update")
        .iter()
        .filter(|line| line["assistantMessageEvent"]["type"] == "text_delta")
        .map(|line| {
            line["assistantMessageEvent"]["delta"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    // Pieces that are ready at the same time are sent as one; no word is ever cut.
    assert_eq!(deltas.concat(), "Polly wants a cracker");
    let words = ["Polly ", "wants ", "a ", "cracker"];
    assert!(
        deltas
            .iter()
            .all(|delta| words.iter().any(|word| delta.ends_with(word))),
        "{deltas:?}"
    );
    let message = pi.messages().last().unwrap().clone();
    assert_eq!(message["usage"]["output"], 4);
    assert_eq!(message["usage"]["cost"]["total"], json!(0.012));
    assert_eq!(pi.get("get_session_stats")["cost"], json!(0.012));
    let all = ids(&pi);
    assert!(all.contains(&"gateway/house-model".to_owned()), "{all:?}");
    pi.data(json!({"type": "set_model", "provider": "gateway", "modelId": "house-model"}));
    pi.say("And you?");
    assert_eq!(last_text(&pi), "from the gateway");
    let requests = world.server.requests();
    assert_eq!(requests[0].header("x-api-key"), Some("gateway-key-123456"));
    assert_eq!(requests[0].header("x-gateway-team"), Some("docs"));
    assert_eq!(requests[0].model, "house-model");
    pi.finish();
}

#[test]
fn extension_model_requests_stay_outside_conversation() {
    if !can_run() {
        return;
    }
    let world = extended(
        [
            Reply::text(["an ", "answer"]).when_contains("aside").repeat(),
            Reply::error(ErrorKind::Overloaded).when_contains("bad luck"),
            Reply::text(["slow"]).gate("never").when_contains("forever"),
            Reply::tool("c1", "ponder", json!({})).when_contains("Begin"),
            Reply::text(["done"]),
        ],
        r#"
        const context = (text: string) => ({ systemPrompt: "be brief", messages: [{ role: "user", content: text, timestamp: 1 }] });
        pi.registerCommand("aside", { handler: async (args: string, ctx: any) => {
          const stream = ai.streamSimple(ctx.model, context(args), { maxTokens: 77, temperature: 0.25 });
          let deltas = "";
          for await (const event of stream) if (event.type === "text_delta") deltas += event.delta;
          const { content, usage, stopReason, errorStatus } = await stream.result();
          ctx.ui.notify(JSON.stringify({ deltas, text: content[0]?.text, output: usage.output, stopReason, errorStatus }));
        } });
        pi.registerCommand("forever", { handler: async (_args: string, ctx: any) => {
          const stop = new AbortController();
          const stream = ai.streamSimple(ctx.model, context("forever"), { signal: stop.signal });
          for await (const event of stream) if (event.type === "text_delta") stop.abort();
          ctx.ui.notify((await stream.result()).stopReason);
        } });
        pi.registerTool({ name: "ponder", label: "p", description: "p", parameters: { type: "object", properties: {} },
          async execute(_id: string, _args: any, signal: any, _update: any, ctx: any) {
            const answer: any = await ai.complete(ctx.model, context("aside from a tool"), { signal });
            return { content: answer.content };
          } });
        "#,
    );
    let pi = world.start();
    let note = notes(&command(&pi, "/aside an aside")).remove(0);
    let told: Value = serde_json::from_str(&note).unwrap();
    assert_eq!(told["deltas"], "an answer");
    assert_eq!(told["text"], "an answer");
    assert_eq!(told["stopReason"], "stop");
    assert!(told["output"].as_u64().unwrap() > 0, "{told}");
    let request = world.server.requests()[0].body.clone();
    assert_eq!(request["max_tokens"], 77);
    assert_eq!(request["temperature"], 0.25);
    assert!(request["system"].to_string().contains("be brief"));
    let note = notes(&command(&pi, "/aside bad luck")).remove(0);
    let told: Value = serde_json::from_str(&note).unwrap();
    assert_eq!(
        (&told["stopReason"], &told["errorStatus"]),
        (&json!("error"), &json!(529))
    );
    assert_eq!(notes(&command(&pi, "/forever")), ["aborted"]);
    // The connection of the request that was aborted is closed.
    world.server.wait_ended(3, crate::kit::LONG).unwrap();
    assert!(pi.messages().is_empty());
    pi.say("Begin");
    let messages = pi.messages();
    assert_eq!(messages.len(), 4);
    assert_eq!(text(&messages[2]), "an answer");
    assert_eq!(text(&messages[3]), "done");
    assert_eq!(pi.get("get_session_stats")["assistantMessages"], 2);
    pi.finish();
}

#[test]
fn extension_provider_keys_stay_with_extensions() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["your key is own-secret-abcdef-123456"])],
        r#"
        pi.registerProvider("mine", { baseUrl: process.env.MOCK, apiKey: "!printf 'own-secret-%s' abcdef-123456", api: "anthropic-messages",
          headers: { "x-team": "t" }, models });
        pi.registerProvider("bare", { baseUrl: "http://bare.example", api: "anthropic-messages", models });
        pi.registerCommand("key", { handler: async (_args: string, ctx: any) => {
          const model = ctx.modelRegistry.find("mine", "m1");
          const found = await ctx.modelRegistry.getApiKeyAndHeaders(model);
          const none = await ctx.modelRegistry.getApiKeyForProvider("nobody");
          const bare = await ctx.modelRegistry.getApiKeyAndHeaders({ provider: "bare", id: "m1" });
          pi.appendEntry("key", { same: found.apiKey === ["own", "secret", "abcdef", "123456"].join("-"), ok: found.ok, headers: found.headers, none: none === undefined,
            bare: [bare.ok, bare.apiKey === undefined, bare.baseUrl], available: ctx.modelRegistry.hasConfiguredAuth(model) });
        } });
        "#,
    );
    let pi = Pi::spawn(with_model(&world, "mine/m1").env("MOCK", world.server.url()));
    command(&pi, "/key");
    let entries = pi.data(json!({"type": "get_entries"}));
    let entry = entries["entries"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["customType"] == "key")
        .cloned()
        .unwrap();
    assert_eq!(
        entry["data"],
        json!({
            "same": true,
            "ok": true,
            "headers": {"x-team": "t"},
            "none": true,
            // A model without a key has an address all the same.
            "bare": [true, true, "http://bare.example"],
            "available": true,
        })
    );
    pi.say("Go");
    assert_eq!(
        world.server.requests()[0].header("x-api-key"),
        Some("own-secret-abcdef-123456")
    );
    pi.finish();
}

#[test]
fn known_provider_is_redirected_and_restored() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["redirected"])],
        r#"
        pi.registerProvider("anthropic", { baseUrl: process.env.MOCK, headers: { "X-Way": "$WAY_NAME" } });
        pi.registerProvider("broken", { models });
        pi.registerCommand("undo", { handler: async () => pi.unregisterProvider("anthropic") });
        pi.registerCommand("add", { handler: async (_args: string, ctx: any) => {
          pi.registerProvider("late", { baseUrl: process.env.MOCK, apiKey: "k", api: "openai-completions", models });
          ctx.ui.notify(String(await pi.setModel(ctx.modelRegistry.find("late", "m1"))));
        } });
        "#,
    );
    let config = with_model(&world, "anthropic/claude-sonnet-4-5")
        .env("ANTHROPIC_API_KEY", "sk-ant-test-0123456789")
        .env("WAY_NAME", "around")
        .env("MOCK", world.server.url());
    let pi = Pi::spawn(config);
    pi.say("Go");
    assert_eq!(last_text(&pi), "redirected");
    assert_eq!(world.server.requests()[0].header("x-way"), Some("around"));
    let failures = failures(&pi);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].0, "register_provider");
    assert!(failures[0].1.contains("\"baseUrl\" is required"), "{failures:?}");
    command(&pi, "/undo");
    until("the address is back", || {
        let models = pi.get("get_available_models");
        models["models"]
            .as_array()
            .unwrap()
            .iter()
            .all(|model| model["provider"] != "anthropic" || model["baseUrl"] == "https://api.anthropic.com")
    });
    assert_eq!(notes(&command(&pi, "/add")), ["true"]);
    assert_eq!(pi.state()["model"]["provider"], "late");
    pi.finish();
}

#[test]
fn extensions_describe_one_provider_together() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"pi.registerProvider("both", { baseUrl: "own:", api: "own-api", apiKey: "own-key-0123456789", models });"#,
    );
    put(
        &world,
        "stream.ts",
        r#"pi.registerProvider("both", { api: "own-api", streamSimple: (model: any) => said(model, "I am " + model.name) });"#,
    );
    let pi = Pi::spawn(with_model(&world, "both/m1"));
    pi.say("Go");
    assert_eq!(last_text(&pi), "I am M1");
    assert!(failures(&pi).is_empty(), "{:?}", failures(&pi));
    pi.finish();
}

#[test]
fn extension_stream_supports_tools_abort_and_retry() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"
        let tries = 0;
        pi.registerProvider("own", own((model: any, context: any, options: any) => {
          const last = context.messages.at(-1);
          const asked = last.role === "user" ? JSON.stringify(last.content) : "";
          const stream = ai.createAssistantMessageEventStream();
          const message: any = blank(model);
          if (asked.includes("tool")) {
            const call = { type: "toolCall", id: "c1", name: "read", arguments: {} as any };
            message.content.push(call);
            stream.push({ type: "start", partial: message });
            stream.push({ type: "toolcall_start", contentIndex: 0, partial: message });
            stream.push({ type: "toolcall_delta", contentIndex: 0, delta: '{"path": "no', partial: message });
            stream.push({ type: "toolcall_delta", contentIndex: 0, delta: 'thing"}', partial: message });
            call.arguments = { path: "nothing" };
            stream.push({ type: "toolcall_end", contentIndex: 0, toolCall: call, partial: message });
            message.stopReason = "toolUse";
            stream.push({ type: "done", reason: "toolUse", message });
          } else if (asked.includes("wait")) {
            stream.push({ type: "start", partial: message });
            stream.push({ type: "text_delta", contentIndex: 0, delta: "so far", partial: message });
            options.signal.addEventListener("abort", () => pi.appendEntry("aborted", {}));
          } else if (asked.includes("fail") && tries++ === 0) {
            message.stopReason = "error";
            message.errorMessage = "the parrot is overloaded";
            stream.push({ type: "error", reason: "error", error: message });
          } else if (asked.includes("throw")) {
            throw new Error("no such parrot");
          } else {
            return said(model, ai.getCurrentSystemPrompt(context.messages).length > 10 ? "key " + options.apiKey.length : "no prompt");
          }
          return stream;
        }));
        "#,
    );
    let pi = Pi::spawn(with_model(&world, "own/m1"));
    pi.say("Use the tool");
    let messages = pi.messages();
    assert_eq!(messages[1]["content"][0]["arguments"], json!({"path": "nothing"}));
    assert_eq!(messages[1]["content"][0]["name"], "read");
    assert_eq!(messages[2]["role"], "toolResult");
    assert_eq!(text(&messages[3]), "key 18");
    // The extension states no cost: the model's prices count.
    assert_eq!(messages[3]["usage"]["cost"]["total"], json!(0.05));
    pi.prompt("Please wait");
    pi.wait_update("text_delta");
    pi.data(json!({"type": "abort"}));
    let last = pi.messages().last().unwrap().clone();
    assert_eq!(last["stopReason"], "aborted");
    assert_eq!(text(&last), "so far");
    until("the extension hears of the abort", || {
        let entries = pi.data(json!({"type": "get_entries"}));
        let entries = entries["entries"].as_array().unwrap().clone();
        entries.iter().any(|entry| entry["customType"] == "aborted")
    });
    let lines = pi.say("Now fail");
    assert_eq!(of_type(&lines, "auto_retry_start").len(), 1);
    assert_eq!(last_text(&pi), "key 18");
    pi.say("Now throw");
    let last = pi.messages().last().unwrap().clone();
    assert_eq!(last["errorMessage"], "no such parrot");
    pi.finish();
}

#[test]
fn extension_stream_crash_or_silence_is_retried() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"
        pi.registerProvider("own", own((model: any, context: any) => {
          const stream = ai.createAssistantMessageEventStream();
          const text = JSON.stringify(context.messages.at(-1).content);
          if (text.includes("silence")) return stream;
          const marker = process.env.MARKER!;
          const fs = require("node:fs");
          if (text.includes("die") && !fs.existsSync(marker)) {
            fs.writeFileSync(marker, "");
            stream.push({ type: "start", partial: blank(model) });
            process.kill(process.pid, "SIGKILL");
            return stream;
          }
          return said(model, "alive");
        }));
        "#,
    );
    let marker = world.dir.agent_dir().join("marker");
    let start = |retry: Value| {
        world.settings(json!({ "retry": retry }));
        Pi::spawn(with_model(&world, "own/m1").env("MARKER", marker.to_str().unwrap()))
    };
    // More than one retry: the process may take longer to come back on a busy machine.
    let pi = start(json!({"baseDelayMs": 1500, "maxRetries": 4, "provider": {"maxRetries": 0}}));
    let lines = pi.say("Now die");
    let retries = of_type(&lines, "auto_retry_start");
    let why = retries[0]["errorMessage"].as_str().unwrap();
    assert!(
        why.starts_with("Connection lost: the extension process ended"),
        "{why}"
    );
    assert_eq!(last_text(&pi), "alive");
    pi.finish();
    let limited = json!({"maxRetries": 0, "timeoutMs": 600});
    let pi = start(json!({"baseDelayMs": 10, "maxRetries": 1, "provider": limited}));
    let lines = pi.say("Now silence");
    assert_eq!(of_type(&lines, "auto_retry_start").len(), 1);
    let last = pi.messages().last().unwrap().clone();
    assert!(
        last["errorMessage"]
            .as_str()
            .unwrap()
            .starts_with("Stream timed out"),
        "{last}"
    );
    pi.finish();
}

#[test]
fn unknown_extension_model_is_named_in_error() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"pi.registerProvider("own", own((model: any) => said(model, "hi")));"#,
    );
    let pi = Pi::spawn(with_model(&world, "other/x"));
    let error = pi.error(json!({"type": "prompt", "message": "Go"}));
    assert!(error.contains("\"other/x\" not found"), "{error}");
    pi.data(json!({"type": "set_model", "provider": "own", "modelId": "m1"}));
    pi.say("Go");
    assert_eq!(last_text(&pi), "hi");
    // A new session starts with the chosen model, and new extension instances.
    pi.data(json!({"type": "new_session"}));
    pi.say("Go");
    assert_eq!(last_text(&pi), "hi");
    pi.finish();
}

#[test]
fn default_model_of_extension_is_restored_with_session() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"pi.registerProvider("own", own((model: any) => said(model, "I am " + model.id)));"#,
    );
    world.settings(json!({"defaultProvider": "own", "defaultModel": "m1"}));
    let pi = Pi::spawn(world.dir.agent(PROGRAM).args(["--mode", "rpc"]));
    pi.say("Go");
    assert_eq!(last_text(&pi), "I am m1");
    let file = pi.file();
    pi.finish();
    world.settings(json!({}));
    let pi = Pi::spawn(
        world
            .dir
            .agent(PROGRAM)
            .args(["--mode", "rpc", "--session", file.to_str().unwrap()]),
    );
    pi.say("Go");
    assert_eq!(last_text(&pi), "I am m1");
    pi.finish();
}

#[test]
fn provider_header_and_response_hooks_run() {
    if !can_run() {
        return;
    }
    let world = extended(
        [
            Reply::error(ErrorKind::RateLimit).header("x-trace", "t1"),
            Reply::text(["ok"]).header("x-trace", "t2"),
        ],
        r#"
        pi.on("before_provider_headers", (event: any) => {
          event.headers["x-added"] = "yes";
          event.headers["user-agent"] = null;
        });
        pi.on("after_provider_response", (event: any) => pi.appendEntry("response", { status: event.status, trace: event.headers["x-trace"] }));
        pi.on("before_provider_request", (event: any) => ({ ...event.payload, metadata: { user_id: "u" } }));
        "#,
    );
    let pi = world.start();
    pi.say("Go");
    let requests = world.server.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_eq!(request.header("x-added"), Some("yes"));
        assert_eq!(request.body["metadata"]["user_id"], "u");
    }
    until("both responses were seen", || {
        let entries = pi.data(json!({"type": "get_entries"}));
        let seen: Vec<Value> = entries["entries"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|entry| entry["customType"] == "response")
            .map(|entry| entry["data"].clone())
            .collect();
        seen == [
            json!({"status": 429, "trace": "t1"}),
            json!({"status": 200, "trace": "t2"}),
        ]
    });
    pi.finish();
}

#[test]
fn provider_request_hooks_apply_to_every_family() {
    if !can_run() {
        return;
    }
    for (api, path) in FAMILIES {
        let world = extended(
            [Reply::text(["ok"])],
            r#"
            pi.on("before_provider_headers", (event: any) => { const names = Object.keys(event.headers).join(); event.headers["x-added"] = String(!/key|authorization/.test(names)); });
            pi.on("before_provider_request", (event: any) => ({ ...event.payload, added: Object.keys(event.payload).length > 1 }));
            pi.on("after_provider_response", (event: any) => pi.setSessionName("status " + event.status));
            "#,
        );
        let pi = crate::families::start(&world, api, path);
        pi.say("Go");
        assert_eq!(last_text(&pi), "ok", "{api}");
        let request = &world.server.requests()[0];
        assert_eq!(request.body["added"], true, "{api}");
        assert_eq!(request.header("x-added"), Some("true"), "{api}");
        until("the response was seen", || {
            pi.state()["sessionName"] == "status 200"
        });
        pi.finish();
    }
}

#[test]
fn extension_login_is_refreshed_and_used() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["ok"]), Reply::text(["ok"])],
        r#"
        pi.registerProvider("mine", { baseUrl: process.env.MOCK, api: "anthropic-messages", models,
          oauth: { name: "Mine", login: async () => ({}), getApiKey: (c: any) => "key-of-" + c.access,
            refreshToken: async (c: any) => ({ access: "access-two-" + c.refresh, refresh: "refresh-two", expires: Date.now() + 3_600_000, plan: "big" }) } });
        "#,
    );
    let auth = world.dir.agent_dir().join("auth.json");
    let stored = json!({"mine": {"type": "oauth", "access": "access-one", "refresh": "refresh-one", "expires": 1, "kept": true}});
    fs::write(&auth, stored.to_string()).unwrap();
    let pi = Pi::spawn(with_model(&world, "mine/m1").env("MOCK", world.server.url()));
    pi.say("Go");
    pi.say("Again");
    for request in world.server.requests() {
        assert_eq!(request.header("x-api-key"), Some("key-of-access-two-refresh-one"));
    }
    let stored: Value = serde_json::from_str(&fs::read_to_string(&auth).unwrap()).unwrap();
    assert_eq!(stored["mine"]["refresh"], "refresh-two");
    assert_eq!(stored["mine"]["plan"], "big");
    assert_eq!(stored["mine"]["kept"], true);
    pi.finish();
}

#[test]
fn client_logs_in_to_extension_provider() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["ok"])],
        r#"
        pi.registerProvider("mine", { name: "Mine", baseUrl: process.env.MOCK, api: "anthropic-messages", models,
          oauth: { name: "Mine", getApiKey: (c: any) => c.access, refreshToken: async (c: any) => c,
            modifyModels: (list: any[], c: any) => list.map((model) => ({ ...model, name: "for " + c.plan })),
            async login(callbacks: any) {
              callbacks.onAuth({ url: "https://login.test/start" });
              const code = await callbacks.onPrompt({ message: "Code?" });
              if (code === "bad") throw new Error("the code is wrong");
              return { access: "token-for-" + code, refresh: "refresh-token-1", expires: Date.now() + 3_600_000, plan: "pro" };
            } } });
        "#,
    );
    let pi = Pi::spawn(with_model(&world, "claude-mock").env("MOCK", world.server.url()));
    let listed = pi.get("get_login_providers");
    let mine = json!({"id": "mine", "name": "Mine", "available": true, "authenticated": false});
    assert!(
        listed["providers"].as_array().unwrap().contains(&mine),
        "{listed}"
    );
    assert_eq!(
        pi.error(json!({"type": "login", "providerId": "nobody"})),
        "Unknown OAuth provider: nobody"
    );
    assert!(!ids(&pi).contains(&"mine/m1".to_owned()));
    let begin = || {
        let seen = pi.lines().len();
        let id = pi.send(json!({"type": "login", "providerId": "mine"}));
        let mut asked = None;
        until("it asks for the code", || {
            let lines = pi.lines();
            let frames = of_type(&lines[seen..], "extension_ui_request");
            asked = frames
                .iter()
                .find(|frame| frame["method"] == "input")
                .map(|frame| frame["id"].clone());
            asked.is_some()
        });
        (id, asked)
    };
    let log_in = |code: &str| {
        let (replaced, _) = begin();
        let (id, asked) = begin();
        assert_eq!(pi.response(&replaced)["error"], "Another login has begun");
        // A mistyped provider ends no login.
        pi.error(json!({"type": "login", "providerId": "nobody"}));
        let answer = json!({"type": "extension_ui_response", "id": asked, "value": code});
        pi.agent.send(&answer).unwrap();
        pi.response(&id)
    };
    assert_eq!(log_in("bad")["error"], "the code is wrong");
    assert_eq!(log_in("abc-123456789")["data"], json!({"providerId": "mine"}));
    let models = pi.get("get_available_models");
    let found = models["models"]
        .as_array()
        .unwrap()
        .iter()
        .find(|model| model["provider"] == "mine")
        .cloned();
    assert_eq!(found.unwrap()["name"], "for pro");
    pi.data(json!({"type": "set_model", "provider": "mine", "modelId": "m1"}));
    pi.say("Go");
    assert_eq!(
        world.server.requests()[0].header("x-api-key"),
        Some("token-for-abc-123456789")
    );
    let auth = fs::read_to_string(world.dir.agent_dir().join("auth.json")).unwrap();
    assert!(auth.contains("refresh-token-1"));
    pi.finish();
}

#[test]
fn extension_models_are_listed_without_session() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"
        pi.registerProvider("own", own((model: any) => said(model, "hi")));
        console.log("printed while loading");
        "#,
    );
    let listed = world.run(&["--list-models", "own/", "--json"], "");
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    let models: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(models[0]["provider"], "own", "{models}");
    assert!(listed.err.contains("printed while loading"), "{}", listed.err);
    // The key of the command line is for the model that only an extension brings.
    let said = world.run(&["--model", "own/m1", "--api-key", "k", "-p", "Go"], "");
    assert_eq!((said.code, said.out.trim()), (Some(0), "hi"), "{}", said.err);
}

#[test]
fn extension_provider_discovers_its_models() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"
        pi.registerProvider("found", own((model: any) => said(model, "I am " + model.name), { models: undefined,
          async refreshModels(context: any) {
            await new Promise((resolve) => setTimeout(resolve, 300));
            return context.allowNetwork ? [{ ...models[0], id: "late", name: "Late" }] : [];
          } }));
        pi.registerCommand("more", { handler: async () => pi.registerTool({ name: "t", description: "t", parameters: {}, execute: async () => ({ content: [] }) }) });
        "#,
    );
    let pi = Pi::spawn(with_model(&world, "found/late"));
    // It is waited for, although the extension itself is there.
    pi.say("Go");
    assert_eq!(last_text(&pi), "I am Late");
    command(&pi, "/more");
    assert!(ids(&pi).contains(&"found/late".to_owned()));
    pi.finish();
}

#[test]
fn one_shot_prompt_delivers_events_until_shutdown() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["ok"])],
        r#"
        pi.on("after_provider_response", (event: any) => console.log("response " + event.status));
        pi.on("session_shutdown", (event: any) => console.log("bye " + event.reason));
        "#,
    );
    let model = ["--provider", "mock-anthropic", "--model", "claude-mock"];
    let said = world.run(&[&model[..], &["-p", "Go"]].concat(), "");
    assert_eq!((said.code, said.out.trim()), (Some(0), "ok"), "{}", said.err);
    assert!(said.err.contains("response 200"), "{}", said.err);
    assert!(said.err.contains("bye quit"), "{}", said.err);
}

#[test]
fn cost_limit_refuses_unpriced_model_of_extension() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["never"]).repeat()],
        r#"
        pi.registerCommand("free", { handler: async (_args: string, ctx: any) => {
          const model = { ...ctx.model, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };
          const context = { messages: [{ role: "user", content: "Hi", timestamp: 1 }] };
          const { stopReason, errorMessage } = await ai.completeSimple(model, context, {});
          ctx.ui.notify(stopReason + ": " + errorMessage);
        } });
        "#,
    );
    let pi = world.start_with(&["--max-cost", "0.5"]);
    let note = notes(&command(&pi, "/free")).remove(0);
    assert!(
        note.contains("price of mock-anthropic/claude-mock is unknown"),
        "{note}"
    );
    assert_eq!(world.server.requests().len(), 0);
    pi.finish();
}

#[test]
fn requests_of_extension_count_before_the_next() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["ok"]).repeat()],
        r#"
        pi.registerCommand("ask", { handler: async (_args: string, ctx: any) => {
          const context = { messages: [{ role: "user", content: "Hi", timestamp: 1 }] };
          const seen: string[] = [];
          for (let n = 0; n < 3; n += 1) {
            const { stopReason, errorMessage } = await ai.completeSimple(ctx.model, context, {});
            seen.push(errorMessage ?? stopReason);
          }
          ctx.ui.notify(seen.join("; "));
        } });
        "#,
    );
    let pi = world.start_with(&["--max-turns", "2"]);
    let note = notes(&command(&pi, "/ask")).remove(0);
    let is_refused = note.contains("Limit reached: 2 turns");
    assert!(note.starts_with("stop; stop; ") && is_refused, "{note}");
    assert_eq!(world.server.requests().len(), 2);
    pi.finish();
}
