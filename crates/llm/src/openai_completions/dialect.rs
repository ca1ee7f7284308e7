//! What a server understands of chat completions (providers.md 4): guessed from provider and address, overruled by the
//! model's `compat` flags.

use wire::Model;

use crate::compat::{flag, word};

/// How reasoning is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingFormat {
    /// `reasoning_effort`
    OpenAi,
    /// `reasoning: {effort}`
    OpenRouter,
    /// `thinking: {type}` and an effort
    DeepSeek,
    /// `reasoning: {enabled}`
    Together,
    /// `enable_thinking`: qwen
    Enable,
    /// `thinking` with a type, earlier reasoning kept: zai
    Zai,
    /// `chat_template_kwargs`, as Qwen's template wants them
    QwenTemplate,
    /// `chat_template_kwargs` of the model's flag `chatTemplateKwargs`
    ChatTemplate,
    /// `chat_template_args` of the model's flag `chatTemplateArgs`, and an effort
    Baseten,
    /// `thinking` is the effort
    Word,
    /// `reasoning: {effort}`, only where the level is mapped
    AntLing,
}

/// Headers that bring the requests of a session to the same machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Affinity {
    /// None.
    Off,
    /// `session_id`, `x-client-request-id`, `x-session-affinity`
    OpenAi,
    /// As above, without `session_id`.
    NoSession,
    /// `x-session-id`
    OpenRouter,
}

/// When `prompt_cache_key` is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheKey {
    /// To OpenAI itself, and where prompts can be kept for a day and shall be.
    Auto,
    /// Whenever there is caching.
    Always,
    /// Never.
    Never,
}

/// The differences of one server from OpenAI's chat completions.
#[derive(Debug, Clone)]
pub(super) struct Dialect {
    /// Takes `store`.
    pub(super) store: bool,
    /// Knows the role `developer`.
    pub(super) developer_role: bool,
    /// Takes `reasoning_effort`.
    pub(super) reasoning_effort: bool,
    /// Calls the output limit `max_completion_tokens`, not `max_tokens`.
    pub(super) max_completion_tokens: bool,
    /// How it wants to be asked for reasoning.
    pub(super) thinking: ThinkingFormat,
    /// Wants `reasoning_content` on every answer in the history.
    pub(super) reasoning_content_required: bool,
    /// Takes `strict` on tools.
    pub(super) strict: bool,
    /// Takes Anthropic's cache markers.
    pub(super) cache_markers: bool,
    /// Can keep a prompt for a day.
    pub(super) long_retention: bool,
    /// Takes `stream_options`.
    pub(super) stream_usage: bool,
    /// Wants the tool's name on its result.
    pub(super) tool_result_name: bool,
    /// Wants an answer between a tool result and a user message.
    pub(super) assistant_after_result: bool,
    /// Wants earlier reasoning as text.
    pub(super) thinking_as_text: bool,
    /// Wants `tools: []` when only the history has tools.
    pub(super) tools_with_history: bool,
    /// Wants a text, if an empty one, in every answer.
    pub(super) content_required: bool,
    /// Takes session headers.
    pub(super) affinity: Affinity,
    /// Takes a cache key.
    pub(super) cache_key: CacheKey,
    /// The field that bounds reasoning in tokens.
    pub(super) budget_field: Option<&'static str>,
    /// Wants to be asked for streamed tool arguments.
    pub(super) tool_stream: bool,
}

impl Dialect {
    /// What the server of a model understands.
    pub(super) fn of(model: &Model) -> Self {
        let is = |provider: &str, host: &str| model.provider == provider || model.base_url.contains(host);
        let zai = is("zai", "api.z.ai") || is("zai-coding-cn", "open.bigmodel.cn");
        let moonshot = is("moonshotai", "moonshot.") || model.provider == "moonshotai-cn";
        let together = is("together", "together.");
        let nvidia = is("nvidia", "integrate.api.nvidia.com");
        let ant_ling = is("ant-ling", "api.ant-ling.com");
        let deepseek = is("deepseek", "deepseek.com");
        let xai = is("xai", "api.x.ai");
        let chutes = model.base_url.contains("chutes.ai");
        let opencode = model.provider.starts_with("opencode") || model.base_url.contains("opencode.ai");
        let gateway = is("cloudflare-ai-gateway", "gateway.ai.cloudflare.com");
        let cloudflare = gateway || is("cloudflare-workers-ai", "api.cloudflare.com");
        let openrouter = is("openrouter", "openrouter.ai");
        let cerebras = is("cerebras", "cerebras.ai");
        let few = moonshot || together || gateway || nvidia || ant_ling;
        let own_way = few || cerebras || xai || chutes || deepseek || zai || opencode || cloudflare;
        // The router passes the role on, and only these two know it.
        let routed = openrouter && !(model.id.starts_with("anthropic/") || model.id.starts_with("openai/"));
        let short_field = few || chutes || deepseek || zai;
        let guess = match () {
            () if deepseek => ThinkingFormat::DeepSeek,
            () if zai => ThinkingFormat::Zai,
            () if together => ThinkingFormat::Together,
            () if ant_ling => ThinkingFormat::AntLing,
            () if openrouter => ThinkingFormat::OpenRouter,
            () => ThinkingFormat::OpenAi,
        };
        let marks = match word(model, "cacheControlFormat") {
            Some(format) => format == "anthropic",
            None => openrouter && model.id.starts_with("anthropic/"),
        };
        Self {
            store: flag(model, "supportsStore", !own_way),
            developer_role: flag(model, "supportsDeveloperRole", !(own_way || routed)),
            reasoning_effort: flag(model, "supportsReasoningEffort", !(xai || zai || few)),
            max_completion_tokens: word(model, "maxTokensField")
                .map_or(!short_field, |field| field == "max_completion_tokens"),
            thinking: thinking_format(model).unwrap_or(guess),
            reasoning_content_required: model.reasoning
                && flag(model, "requiresReasoningContentOnAssistantMessages", deepseek),
            strict: flag(model, "supportsStrictMode", !few),
            cache_markers: marks,
            long_retention: flag(
                model,
                "supportsLongCacheRetention",
                !(together || cloudflare || nvidia || ant_ling),
            ),
            stream_usage: flag(model, "supportsUsageInStreaming", true),
            tool_result_name: flag(model, "requiresToolResultName", false),
            assistant_after_result: flag(model, "requiresAssistantAfterToolResult", false),
            thinking_as_text: flag(model, "requiresThinkingAsText", false),
            tools_with_history: flag(model, "requiresToolsWithToolHistory", false),
            content_required: flag(model, "requiresNonNullAssistantContent", false),
            affinity: affinity(model, openrouter),
            cache_key: match word(model, "promptCacheKeyMode") {
                Some("enabled") => CacheKey::Always,
                Some("disabled") => CacheKey::Never,
                _ => CacheKey::Auto,
            },
            budget_field: budget_field(model),
            tool_stream: flag(model, "zaiToolStream", false),
        }
    }
}

/// What the model's flag says; unknown words count as none.
fn thinking_format(model: &Model) -> Option<ThinkingFormat> {
    match word(model, "thinkingFormat")? {
        "openai" => Some(ThinkingFormat::OpenAi),
        "openrouter" => Some(ThinkingFormat::OpenRouter),
        "deepseek" => Some(ThinkingFormat::DeepSeek),
        "together" => Some(ThinkingFormat::Together),
        "zai" => Some(ThinkingFormat::Zai),
        "qwen" => Some(ThinkingFormat::Enable),
        "qwen-chat-template" => Some(ThinkingFormat::QwenTemplate),
        "chat-template" => Some(ThinkingFormat::ChatTemplate),
        "baseten" => Some(ThinkingFormat::Baseten),
        "string-thinking" => Some(ThinkingFormat::Word),
        "ant-ling" => Some(ThinkingFormat::AntLing),
        _ => None,
    }
}

/// Session headers: only where asked for, and at the one router that makes use of them.
fn affinity(model: &Model, openrouter: bool) -> Affinity {
    if !flag(model, "sendSessionAffinityHeaders", openrouter) {
        return Affinity::Off;
    }
    match word(model, "sessionAffinityFormat") {
        Some("openrouter") => Affinity::OpenRouter,
        Some("openai-nosession") => Affinity::NoSession,
        Some("openai") => Affinity::OpenAi,
        _ if openrouter => Affinity::OpenRouter,
        _ => Affinity::OpenAi,
    }
}

/// vLLM, Qwen and SGLang, llama.cpp.
fn budget_field(model: &Model) -> Option<&'static str> {
    const FIELDS: [&str; 3] = [
        "thinking_token_budget",
        "thinking_budget",
        "thinking_budget_tokens",
    ];
    match word(model, "thinkingTokenBudgetField") {
        Some(field) => FIELDS.into_iter().find(|known| *known == field),
        None => flag(model, "supportsThinkingTokenBudget", false).then_some("thinking_token_budget"),
    }
}
