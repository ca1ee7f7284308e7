//! The table of all keys of settings.json that Pinion or its relatives know. `doctor`, the check of a file's keys and the
//! settings reference are made from it; those of todos and processes are in `todo_keys` and `process_keys`. Reading values lives in `typed`; a test compares the defaults here with the code.

use super::process_keys::PROCESSES;
use super::todo_keys::TODOS;

/// A key with an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Path of the key, such as `retry.provider.maxRetries`.
    pub path: &'static str,
    /// Type of the value, as text for people.
    pub kind: &'static str,
    /// Default value as JSON; empty if there is none.
    pub default: &'static str,
    /// What the value does, with its unit.
    pub doc: &'static str,
}

pub(super) const fn key(
    path: &'static str,
    kind: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Key {
    Key {
        path,
        kind,
        default,
        doc,
    }
}

/// Headings of the reference with the keys below them.
pub const SECTIONS: [(&str, &[Key]); 12] = [
    ("Models", MODELS),
    ("Prompts and queues", PROMPTS),
    ("Compaction and retries", RUNS),
    ("Tools and shell", TOOLS),
    ("Permissions, sandbox, trust", SAFETY),
    ("Extensions, hooks, resources", RESOURCES),
    ("Network", NETWORK),
    ("Sessions", SESSIONS),
    ("Web pages", FETCH),
    ("Sub-agents", SUBAGENTS),
    ("Background processes", PROCESSES),
    ("Todos and rules", TODOS),
];

/// All keys with an effect.
pub fn keys() -> impl Iterator<Item = &'static Key> {
    SECTIONS.iter().flat_map(|(_, keys)| keys.iter())
}

const LEVEL: &str = "`off`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`";
pub(super) const OBJECT: &str = "object";
pub(super) const FLAG: &str = "boolean";
pub(super) const COUNT: &str = "integer";
const NUMBER: &str = "number";
const TEXT: &str = "string";
const TEXTS: &str = "array of strings";
const QUEUE: &str = "`all` or `one-at-a-time`";

const MODELS: &[Key] = &[
    key(
        "defaultProvider",
        TEXT,
        "",
        "Provider used when the command line names no model.",
    ),
    key(
        "defaultModel",
        TEXT,
        "",
        "Model used when the command line names no model: an id or `provider/id`.",
    ),
    key(
        "defaultThinkingLevel",
        LEVEL,
        "",
        "Thinking level of new sessions. Without it, the level is `medium`.",
    ),
    key(
        "modelThinkingLevels",
        "object of thinking levels",
        "{}",
        "Thinking level for each model, by `provider/id`.",
    ),
    key(
        "thinkingBudgets",
        OBJECT,
        "{}",
        "Thinking tokens for each level, for providers that take a number of tokens.",
    ),
    key(
        "thinkingBudgets.minimal",
        COUNT,
        "",
        "Tokens for the level `minimal`. Without it, the default of the provider applies.",
    ),
    key("thinkingBudgets.low", COUNT, "", "Tokens for the level `low`."),
    key(
        "thinkingBudgets.medium",
        COUNT,
        "",
        "Tokens for the level `medium`.",
    ),
    key(
        "thinkingBudgets.high",
        COUNT,
        "",
        "Tokens for the level `high`, and for `xhigh` and `max`.",
    ),
    key(
        "enabledModels",
        TEXTS,
        "",
        "Models that `cycle_model` cycles through: names and patterns, as for `--models`.",
    ),
    key(
        "fallbackModels",
        TEXTS,
        "[]",
        "Models that a run continues with, in this order, when its model is overloaded after all retries, out of quota, or rejects the key. Each is \
         `provider/id`; models without credentials are skipped, and a notice names unknown ones.",
    ),
    key("images", OBJECT, "{}", "Images in requests to a model."),
    key(
        "images.autoResize",
        FLAG,
        "true",
        "Shrink images that are larger than the provider accepts.",
    ),
    key(
        "images.blockImages",
        FLAG,
        "false",
        "Send no images to a model. A project that is not trusted cannot turn this off.",
    ),
    key(
        "localServers",
        OBJECT,
        "{}",
        "Model servers on this machine or network: Ollama, llama.cpp, LM Studio, vLLM.",
    ),
    key(
        "localServers.enabled",
        FLAG,
        "true",
        "Search the usual ports for local servers when models are listed or none is configured. If false, a server is contacted only when one of its models is named.",
    ),
    key(
        "localServers.servers",
        "object of URLs",
        "{}",
        "Addresses of further servers by provider id. The id of a known server (`ollama`) replaces its usual address.",
    ),
    key(
        "localServers.idleTimeoutMs",
        "integer or `\"disabled\"`",
        "1800000",
        "Milliseconds without data from a local server until the request fails. Such a server is silent while it reads the prompt. Without it, `httpIdleTimeoutMs` applies if it differs from its default. 0 and `\"disabled\"` turn the timeout off.",
    ),
];

const PROMPTS: &[Key] = &[
    key(
        "steeringMode",
        QUEUE,
        "\"one-at-a-time\"",
        "How many queued steering messages the model receives at once.",
    ),
    key(
        "followUpMode",
        QUEUE,
        "\"one-at-a-time\"",
        "How many queued follow-up messages the model receives at once.",
    ),
    key(
        "interruptMode",
        "`immediate` or `wait`",
        "\"wait\"",
        "When a steering message takes effect: `immediate` skips the tool calls that have not started, `wait` lets all tool calls of the turn finish.",
    ),
    key(
        "dialogTimeoutMs",
        COUNT,
        "300000",
        "Milliseconds until a dialog without a timeout of its own returns its default. An editor dialog gets six times as long. 0 means no timeout.",
    ),
];

const RUNS: &[Key] = &[
    key(
        "compaction",
        OBJECT,
        "{}",
        "When the older part of a conversation is replaced by a summary.",
    ),
    key(
        "compaction.enabled",
        FLAG,
        "true",
        "Compact automatically when the context window is nearly full.",
    ),
    key(
        "compaction.reserveTokens",
        COUNT,
        "",
        "Tokens of the context window that stay free for the answer. Without it: 16384, or half of a window below 32768.",
    ),
    key(
        "compaction.keepRecentTokens",
        COUNT,
        "20000",
        "Tokens at the end of the conversation that are kept verbatim.",
    ),
    key(
        "compaction.modelOverrides",
        "object of objects",
        "{}",
        "`reserveTokens` and `keepRecentTokens` for single models, by `provider/id`.",
    ),
    key(
        "branchSummary",
        OBJECT,
        "{}",
        "Summaries of branches that are abandoned.",
    ),
    key(
        "branchSummary.reserveTokens",
        COUNT,
        "16384",
        "Tokens of the context window that stay free for the summary.",
    ),
    key(
        "limits",
        OBJECT,
        "{}",
        "What each session may use in this process. A run that reaches a limit ends in order. A project can only lower the limits. See the guide on limits of runs.",
    ),
    key("limits.maxTurns", COUNT, "", "Requests to a model."),
    key("limits.maxToolCalls", COUNT, "", "Tool calls."),
    key("limits.maxTokens", COUNT, "", "Tokens of all kinds."),
    key("limits.maxCost", NUMBER, "", "US dollars."),
    key("limits.maxSeconds", COUNT, "", "Seconds of active runs."),
    key(
        "limits.maxRepeats",
        COUNT,
        "",
        "Times that the model may make the same tool calls in a row with the same results.",
    ),
    key(
        "limits.warn",
        FLAG,
        "",
        "Whether the model gets a message once when 80 % of a limit is used.",
    ),
    key("retry", OBJECT, "{}", "Retries of failed runs and requests."),
    key(
        "retry.enabled",
        FLAG,
        "true",
        "Retry a run that failed for a transient reason, such as an overloaded provider.",
    ),
    key(
        "retry.maxRetries",
        COUNT,
        "3",
        "Retries of a run after the first attempt.",
    ),
    key(
        "retry.baseDelayMs",
        COUNT,
        "2000",
        "Milliseconds before the first retry. The delay doubles with each retry.",
    ),
    key(
        "retry.maxAgentDelayMs",
        COUNT,
        "",
        "Longest delay before a retry, in milliseconds. Without it, the limit is 60000, or 300000 in a process that starts with `omp-now`.",
    ),
    key(
        "retry.provider",
        OBJECT,
        "{}",
        "Limits for single requests to a provider.",
    ),
    key(
        "retry.provider.timeoutMs",
        COUNT,
        "",
        "Milliseconds until the provider begins its response, for each attempt. Without it, or with 0, `httpIdleTimeoutMs` or `localServers.idleTimeoutMs` applies, which limit the silence during a response in any case. No request has a limit in all.",
    ),
    key(
        "retry.provider.maxRetries",
        COUNT,
        "",
        "Retries of a single request after the first attempt. Without it, requests are not retried below the run.",
    ),
    key(
        "retry.provider.maxRetryDelayMs",
        COUNT,
        "60000",
        "Longest delay that a provider can ask for, in milliseconds. A longer one is an error.",
    ),
];

const TOOLS: &[Key] = &[
    key(
        "defaultTools",
        TEXTS,
        "",
        "Tools that the model can call: a list of names, or only changes (`+grep`, `-bash`) to the list of the user or to the default. An empty list has no built-in tools. `--tools` replaces it.",
    ),
    key(
        "shellPath",
        TEXT,
        "",
        "Shell that runs `bash` commands. Without it, `/bin/bash`, else `bash` or `sh` from `PATH`.",
    ),
    key(
        "shellCommandPrefix",
        TEXT,
        "",
        "Line that is put before every shell command, such as `shopt -s expand_aliases`.",
    ),
    key(
        "bashTimeoutMs",
        COUNT,
        "",
        "Milliseconds after which a command of the `bash` tool is stopped if the call has no `timeout`. Without it, or with 0, such commands run until they end.",
    ),
    key(
        "keepKeysInToolEnv",
        FLAG,
        "false",
        "Keep the variables with API keys of providers in the environment of tools.",
    ),
];

const SAFETY: &[Key] = &[
    key(
        "permissions",
        OBJECT,
        "{}",
        "Which tool calls run, are asked about, or are denied. A project can only tighten.",
    ),
    key(
        "permissions.mode",
        "`off`, `auto`, `ask` or `read-only`",
        "",
        "Permission mode. Without it, the mode is `auto` if there are `ask` or `deny` rules, else `off`. An unknown mode counts as `ask`.",
    ),
    key(
        "permissions.allow",
        TEXTS,
        "[]",
        "Rules for calls that run without a question.",
    ),
    key(
        "permissions.ask",
        TEXTS,
        "[]",
        "Rules for calls that need a confirmation.",
    ),
    key(
        "permissions.deny",
        TEXTS,
        "[]",
        "Rules for calls that are denied. `deny` wins over `ask`, `ask` over `allow`.",
    ),
    key(
        "sandbox",
        OBJECT,
        "{}",
        "What the tools can reach (Linux). A project can only tighten.",
    ),
    key(
        "sandbox.mode",
        "`off`, `workspace-write` or `read-only`",
        "\"off\"",
        "Sandbox mode. An unknown mode counts as `read-only`.",
    ),
    key(
        "sandbox.network",
        FLAG,
        "false",
        "Allow network access inside the sandbox.",
    ),
    key(
        "sandbox.unixSockets",
        FLAG,
        "false",
        "Allow connections to Unix sockets inside the sandbox, such as a container engine or a key agent.",
    ),
    key(
        "sandbox.gitWritable",
        FLAG,
        "false",
        "Allow writes to `.git` except hooks and configuration, so that commands can commit.",
    ),
    key(
        "sandbox.userBash",
        FLAG,
        "false",
        "Run the command `bash` of the user in the sandbox, too.",
    ),
    key(
        "sandbox.writable",
        TEXTS,
        "[]",
        "Further directories that tools can write to in `workspace-write`.",
    ),
    key(
        "sandbox.readable",
        "`\"all\"` or array of strings",
        "\"all\"",
        "Directories that tools can read in addition to those of the system and the working directory.",
    ),
    key(
        "sandbox.denyRead",
        TEXTS,
        "[]",
        "Paths that tools cannot read. The lists of user and project are joined.",
    ),
    key(
        "defaultProjectTrust",
        "`ask`, `always` or `never`",
        "",
        "Trust of a project without a stored decision. Without it, `ask`: if no client can answer, harmless settings and texts are used, code is not.",
    ),
];

const RESOURCES: &[Key] = &[
    key(
        "packages",
        "array of strings or objects",
        "[]",
        "Packages with extensions, skills and prompt templates: paths, or sources in npm and git. `pinion install` adds entries. An object with `source` selects files by kind; with `autoload: false`, only named files load, and an entry of the project changes that of the user.",
    ),
    key(
        "npmCommand",
        TEXTS,
        "[\"npm\"]",
        "Program for `pinion install`, `remove` and `update`, with its first arguments: npm, pnpm or bun.",
    ),
    key(
        "extensions",
        TEXTS,
        "[]",
        "Paths of extensions. `!path`, `-path` and `+path` remove or add extensions from other places; `-builtin:mcp` turns MCP servers off.",
    ),
    key(
        "extensionRuntime",
        TEXT,
        "",
        "Program that runs TypeScript extensions. Without it, Node or Bun from `PATH`.",
    ),
    key(
        "hooks",
        "array of strings or objects",
        "[]",
        "Hook executables: paths, or objects with `event`, `command`, `tools` and `timeout` (milliseconds).",
    ),
    key(
        "mcpServers",
        OBJECT,
        "{}",
        "MCP servers by name, as in `mcp.json`.",
    ),
    key(
        "hookTimeout",
        COUNT,
        "",
        "Milliseconds that a hook can run. Without it, 30000.",
    ),
    key(
        "customTools",
        TEXTS,
        "[]",
        "Tool files in the format of older versions of pi.",
    ),
    key("skills", TEXTS, "[]", "Paths of further skills."),
    key("prompts", TEXTS, "[]", "Paths of further prompt templates."),
];

const NETWORK: &[Key] = &[
    key(
        "httpProxy",
        TEXT,
        "",
        "Proxy for requests to providers. Proxy variables of the environment take precedence.",
    ),
    key(
        "httpIdleTimeoutMs",
        "integer or `\"disabled\"`",
        "300000",
        "Milliseconds without data on a provider's stream until the request fails. 0 and `\"disabled\"` turn the timeout off.",
    ),
    key(
        "cacheWarming",
        "`off`, `streaming` or `idle`",
        "\"off\"",
        "Send the last request again for one token of output before its entry in the provider's prompt cache expires: with `streaming`, while a run continues; with `idle`, also for up to 30 minutes between runs. Only models with a known cache lifetime and only when that is expected to save $0.05. Only in the user's settings.",
    ),
];

const SESSIONS: &[Key] = &[
    key(
        "sessionDir",
        TEXT,
        "",
        "Directory of the session files. Without it, `sessions` in the agent directory.",
    ),
    key(
        "checkpoints",
        "`off`, `files` or `worktree`",
        "\"off\"",
        "Contents kept before each turn that changes files, so that `rewind` can restore it: with `files`, the files that `edit` and `write` change; with `worktree`, also those of the working directory that other tools change while they run, except those that Git ignores. Not in project settings.",
    ),
    key(
        "durability",
        "`process` or `disk`",
        "\"process\"",
        "What a stored entry survives: the end of the process, `kill -9` included, or with `disk` a power failure, too. With `disk`, Pinion waits for the disk once or twice a turn. Not in project settings.",
    ),
    key(
        "maxOpenSessions",
        COUNT,
        "",
        "Most sessions that stay open, not counting the first. The least recently used idle session is evicted. Without it, 32 with `--mode web`, else 4096.",
    ),
    key(
        "webMemoryMib",
        COUNT,
        "",
        "Memory in MiB that all web clients hold together for incomplete requests, waiting messages and waiting responses. More is refused with 503 or 1013. Without it, 192.",
    ),
    key(
        "sessionIdleMs",
        COUNT,
        "",
        "Milliseconds without a command after which a session other than the first is evicted. 0 means never. Without it, 30 minutes with `--mode web`, else never.",
    ),
];

const FETCH: &[Key] = &[
    key("fetch", OBJECT, "{}", "The tool `fetch`, which gets web pages."),
    key("fetch.enabled", FLAG, "false", "Give the model the tool `fetch`."),
    key(
        "fetch.privateHosts",
        TEXTS,
        "[]",
        "Hosts that `fetch` may ask although their addresses are private: names, addresses, or `*.domain`. Only in the user's settings.",
    ),
];

const SUBAGENTS: &[Key] = &[
    key(
        "subagents",
        OBJECT,
        "{}",
        "The tool `task`, which gives tasks to sub-agents.",
    ),
    key(
        "subagents.enabled",
        FLAG,
        "false",
        "Give the model the tool `task`.",
    ),
    key(
        "subagents.maxParallel",
        COUNT,
        "4",
        "Sub-agents of a session that work at the same time, at most 32. With a limit of tokens or cost they work one after the other.",
    ),
];
