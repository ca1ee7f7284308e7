//! Parts of the reference page about extensions other than the lines: the methods of either direction, and the events.
//! Only the generator reads it. The agent implements the methods.

use schemars::JsonSchema as _;
use serde_json::{Value, json};

use crate::line::{FromChild, Opened, ToChild};

/// A method of `call` lines.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// Its name.
    pub name: &'static str,
    /// Members of `params`, as a type.
    pub params: &'static str,
    /// `value` of the result; empty when nothing is answered but that it was done.
    pub value: &'static str,
    /// What it does.
    pub doc: &'static str,
}

/// Can be called by the agent.
pub const OF_AGENT: &[Method] = &[
    method(
        "tool.execute",
        "{extension, name, toolCallId, args}",
        "{content: [...], details?, isError?, terminate?}",
        "Runs a tool of the extension for the model. `update` lines contain partial results.",
    ),
    method(
        "tool.prepare",
        "{extension, name, args}",
        "{args}",
        "Changes the arguments of the model before they are validated. Only for tools with `prepares`.",
    ),
    method(
        "command.run",
        "{extension, name, args, line}",
        "",
        "Runs a slash command of the extension; `args` is the rest of the line.",
    ),
    method(
        "command.complete",
        "{extension, name, prefix}",
        "{items: [{value, label, description?}]}",
        "Returns completions for the arguments of a slash command.",
    ),
    method(
        "shortcut.run",
        "{extension, shortcut}",
        "",
        "Runs a keyboard shortcut of the extension.",
    ),
    method(
        "provider.stream",
        "{provider, request: {model, context: {systemPrompt, messages, tools}, options}}",
        "the message",
        "Sends a request to a provider with `streams`. `update` lines contain all events of the answer. A message that failed may have `errorStatus`, the HTTP status of the response.",
    ),
    method(
        "provider.refreshModels",
        "{provider, allowNetwork, credential?}",
        "[model, ...]",
        "Returns the current models. Only for providers with `refreshes`.",
    ),
    method(
        "provider.oauth.login",
        "{provider}",
        "{access, refresh, expires}",
        "Logs the user in. The extension uses `ui.` methods for pages and questions.",
    ),
    method(
        "provider.oauth.refresh",
        "{provider, credentials}",
        "{access, refresh, expires}",
        "Refreshes the credentials of a login.",
    ),
    method(
        "provider.oauth.key",
        "{provider, credentials}",
        "{apiKey, headers?}",
        "Returns the key for requests. `headers` are those that the extension adds itself; Pinion removes their values from error messages.",
    ),
    method(
        "provider.oauth.models",
        "{provider, models, credentials}",
        "[model, ...]",
        "Returns the models that the login can use.",
    ),
];

/// Can be called by an extension.
pub const OF_PROGRAM: &[Method] = &[
    method(
        "ui.select",
        "{title, options, optionDetails?, timeout?}",
        "string | null",
        "Asks the user to choose. All dialogs return null if there is no answer.",
    ),
    method(
        "ui.confirm",
        "{title, message, timeout?}",
        "true | false | null",
        "Asks yes or no. Every value except true means no.",
    ),
    method(
        "ui.input",
        "{title, placeholder?, timeout?}",
        "string | null",
        "Asks for a line of text.",
    ),
    method(
        "ui.editor",
        "{title, prefill?}",
        "string | null",
        "Asks for a longer text.",
    ),
    method(
        "ui.notify",
        "{message, notifyType?}",
        "",
        "Shows a message; `notifyType` is `info`, `warning` or `error`.",
    ),
    method(
        "ui.setStatus",
        "{statusKey, statusText?}",
        "",
        "Shows a short status text; without a text, the status is removed.",
    ),
    method(
        "ui.setWidget",
        "{widgetKey, widgetLines?, widgetPlacement?}",
        "",
        "Shows lines above or below the editor: `aboveEditor` or `belowEditor`.",
    ),
    method("ui.setTitle", "{title}", "", "Sets the window title."),
    method("ui.setEditorText", "{text}", "", "Sets the text of the editor."),
    method(
        "ui.openUrl",
        "{url, launchUrl?, instructions?}",
        "",
        "Opens an address in a browser.",
    ),
    method(
        "sendMessage",
        "{message: {customType, content, display?, details?}, options?: {deliverAs?, triggerTurn?}}",
        "",
        "Adds a message of the extension for the model: during a run as `steer` or `followUp`, otherwise at once, with the next prompt (`nextTurn`), or as the start of a run (`triggerTurn`). With `triggerTurn: false`, a run continues without it: the message follows the turn that is active.",
    ),
    method(
        "sendUserMessage",
        "{content, options?: {deliverAs?, expandPromptTemplates?}}",
        "",
        "Sends a message as the user. With `expandPromptTemplates`, it may be a slash command of an extension, a skill or a template.",
    ),
    method(
        "appendEntry",
        "{customType, data?}",
        "",
        "Writes an entry to the session that the model does not see, for state of the extension.",
    ),
    method("setSessionName", "{name}", "", "Sets the name of the session."),
    method(
        "setLabel",
        "{entryId, label?}",
        "",
        "Sets or removes the label of an entry.",
    ),
    method(
        "setActiveTools",
        "{names}",
        "",
        "Sets the tools that the model can call.",
    ),
    method(
        "setModel",
        "{provider, modelId}",
        "true | false",
        "Selects the model. Returns false if it does not exist or has no credentials.",
    ),
    method("setThinkingLevel", "{level}", "", "Sets the thinking level."),
    method("abort", "{}", "", "Aborts the run."),
    method(
        "compact",
        "{customInstructions?}",
        "the result",
        "Aborts the run and compacts the session.",
    ),
    method("waitForIdle", "{}", "null", "Responds when no run is active."),
    method(
        "newSession",
        "{parentSession?, entries?}",
        "{cancelled, session?}",
        "Starts a new session with these entries. Responds when the new session has started; `session` is its handle. For use in `command.run`, like the next four methods.",
    ),
    method(
        "switchSession",
        "{sessionPath}",
        "{cancelled, session?}",
        "Switches to another session.",
    ),
    method(
        "fork",
        "{entryId, position?}",
        "{cancelled, session?}",
        "Switches to a new session with everything before a user message, or, if `position` is `at`, everything up to an entry.",
    ),
    method(
        "navigateTree",
        "{targetId, summarize?, customInstructions?, replaceInstructions?, label?}",
        "{cancelled}",
        "Moves to another entry of the session tree.",
    ),
    method(
        "reload",
        "{}",
        "null",
        "Loads all extensions, skills and templates again. Fails while a run is active.",
    ),
    method(
        "shutdown",
        "{}",
        "",
        "Ends the program after pending responses; in another session than the first, closes that session.",
    ),
    method(
        "bash.output",
        "{outputId, text}",
        "null",
        "Shows output of a command of the user that the extension runs itself, while its `user_bash` event is pending. `outputId` is that of the event. Send the next piece after the response, which waits for clients that read slowly. If the session is reloaded meanwhile, there may be no response.",
    ),
    method(
        "tool.execute",
        "{name, args, callerId}",
        "{content, details?, isError?}",
        "Runs any tool with hooks and permissions, as for the model. Only while the call `callerId` of a tool of the extension runs. `update` lines contain partial results.",
    ),
    method(
        "tool.builtin",
        "{name, args, cwd?, env?}",
        "{content, details?, isError?}",
        "Runs a built-in tool without hooks. `update` lines contain partial results.",
    ),
    method(
        "llm.key",
        "{provider, modelId?}",
        "{apiKey?, headers?, baseUrl?} | null",
        "Returns the key of a provider; with a model, also its headers and address.",
    ),
    method(
        "llm.stream",
        "{model, context: {systemPrompt?, messages, tools?}, options?, direct?}",
        "the message",
        "Sends a request to a model with the stored keys. `update` lines contain the events of the answer. A message that failed has `errorStatus` if the provider refused the request: the HTTP status. With `direct`, a model that the extension itself provides is requested at its address.",
    ),
    method(
        "session.create",
        "{session, cwd?, persist?, sessionFile?, provider?, modelId?, thinkingLevel?, tools?, excludeTools?, noTools?, systemPrompt?, appendSystemPrompt?, ...}",
        "{state, cwd, messages, activeTools}",
        "Opens a subordinate session; `session` is a name that the extension chooses. It has at most the permissions of its parent and ends with it. Its events arrive as `session_event` with `{session, event}`, the last with `{session, ended}`.",
    ),
    method(
        "session.command",
        "{session, command}",
        "what the command answers",
        "Sends a command of the RPC protocol to such a session.",
    ),
    method(
        "session.frame",
        "{session, frame}",
        "",
        "Sends a frame to such a session, for example `extension_ui_response`.",
    ),
    method("session.dispose", "{session}", "", "Closes such a session."),
];

/// An event.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// Its name.
    pub name: &'static str,
    /// Members in addition to `type`.
    pub members: &'static str,
    /// `value` of an answer that changes something; empty when answers mean nothing.
    pub result: &'static str,
    /// When it happens.
    pub doc: &'static str,
}

/// Events for extensions, in addition to the events of a run that clients get, which keep their names.
pub const EVENTS: &[Event] = &[
    event(
        "project_trust",
        "cwd",
        "{trusted: \"yes\" | \"no\", remember?}",
        "Before anything of the project is loaded. Only extensions of the user receive it.",
    ),
    event(
        "session_start",
        "reason, previousSessionFile?",
        "",
        "A session starts for the extension. `reason` is `startup`, `reload`, `new`, `resume` or `fork`.",
    ),
    event(
        "resources_discover",
        "cwd, reason",
        "{skillPaths?, promptPaths?, themePaths?}",
        "Skills and templates are loaded. Relative paths start at the directory of the extension.",
    ),
    event(
        "session_before_switch",
        "reason, targetSessionFile?",
        "{cancel: true, reason?}",
        "Before the session is replaced by a new or another one.",
    ),
    event(
        "session_before_fork",
        "entryId, position",
        "{cancel: true, reason?} | {skipConversationRestore: true}",
        "Before the session is forked.",
    ),
    event(
        "session_shutdown",
        "reason, targetSessionFile?",
        "",
        "The session ends or continues in another file. Handlers have 2 s.",
    ),
    event(
        "session_before_compact",
        "reason, willRetry, preparation, branchEntries, customInstructions?",
        "{cancel: true, reason?} | {compaction: {summary, firstKeptEntryId, tokensBefore, details?, usage?}}",
        "Before a compaction. If an extension refuses an automatic one, the run goes on as after a failed compaction.",
    ),
    event(
        "session_compact",
        "compactionEntry, fromExtension",
        "",
        "The session was compacted.",
    ),
    event(
        "session_compact_failed",
        "reason, aborted, willRetry, fromExtension, errorMessage?",
        "",
        "The compaction failed.",
    ),
    event(
        "session_before_tree",
        "preparation",
        "{cancel: true, reason?} | {summary?, customInstructions?, replaceInstructions?, label?}",
        "Before the session moves to another entry of its tree.",
    ),
    event(
        "session_tree",
        "newLeafId, oldLeafId, summaryEntry?, fromExtension?",
        "",
        "The session moved to another entry.",
    ),
    event(
        "session_info_changed",
        "name?",
        "",
        "The name of the session changed.",
    ),
    event(
        "input",
        "text, images?, source, streamingBehavior?",
        "{action: \"transform\", text, images?} | {action: \"handled\"}",
        "The user or a client sent a message.",
    ),
    event(
        "before_agent_start",
        "messageType, prompt?, images?, message?, systemPrompt, systemPromptOptions",
        "{messages?, systemPrompt?}",
        "Before a run starts. `messageType` is `user` with a `prompt`, or `custom` with the `message` of an extension (newest pi only).",
    ),
    event("agent_start", "", "", "A run starts."),
    event("turn_start", "turnIndex, timestamp", "", "A turn starts."),
    event(
        "context",
        "messages",
        "{messages}",
        "Before a request, with the messages without the system prompt.",
    ),
    event(
        "context_with_system",
        "messages",
        "{messages}",
        "Before a request, with the messages and the system prompt as a message of the role `system`.",
    ),
    event(
        "before_provider_request",
        "payload",
        "{payload}",
        "Before a request is sent, with its body.",
    ),
    event(
        "before_provider_headers",
        "headers",
        "{headers}",
        "Before a request is sent, with the headers that models and settings add. Those of the API itself, such as its key, are left out; null removes a header.",
    ),
    event(
        "cache_warming_decision",
        "warmCost, missCost, continuationProbability, action",
        "{action}",
        "A refresh of the prompt cache is due: costs in dollars, and `warm` or `stop`. The answer says whether it is sent.",
    ),
    event(
        "after_provider_response",
        "status, headers",
        "",
        "The response of the provider starts. The answer waits for the handlers, at most 10 seconds.",
    ),
    event("message_start", "message", "", "A message starts."),
    event(
        "message_update",
        "message, assistantMessageEvent",
        "",
        "More of an answer arrived.",
    ),
    event(
        "message_end",
        "message",
        "{message}",
        "A message is complete. It can be replaced by one of the same role. The original then never reaches the session file, the client or the provider.",
    ),
    event(
        "tool_execution_start",
        "toolCallId, toolName, args, parentToolCallId?",
        "",
        "A tool call starts.",
    ),
    event(
        "tool_call",
        "toolCallId, toolName, input, parentToolCallId?",
        "{block: true, reason?, terminate?} | {input}",
        "Before a tool runs. If a listener fails or does not answer, the call is denied.",
    ),
    event(
        "tool_execution_update",
        "toolCallId, toolName, args, partialResult, parentToolCallId?",
        "",
        "A tool reports progress.",
    ),
    event(
        "tool_result",
        "toolCallId, toolName, input, content, isError, details?, parentToolCallId?",
        "{content?, details?, isError?, terminate?}",
        "A tool has run. Each field of its result can be replaced.",
    ),
    event(
        "tool_execution_end",
        "toolCallId, toolName, result, isError, parentToolCallId?",
        "",
        "A tool call ended.",
    ),
    event(
        "turn_end",
        "turnIndex, message, toolResults, messageEntryId, toolResultEntryIds, outcome, entries, continue",
        "{entries?, continue?}",
        "A turn ended. `entries` (entries to write) and `continue` (whether to request another answer) contain the proposals of earlier listeners.",
    ),
    event("agent_end", "messages", "", "A run ended."),
    event(
        "agent_before_settle",
        "outcome, entries, continue",
        "{entries?, continue?}",
        "Before the session becomes idle. `entries` and `continue` as in `turn_end`.",
    ),
    event("agent_settled", "", "", "The session is idle."),
    event(
        "model_select",
        "model, previousModel?, source",
        "",
        "The model changed.",
    ),
    event(
        "thinking_level_select",
        "level, previousLevel",
        "",
        "The thinking level changed.",
    ),
    event("ui_prompt_start", "reason, kind, title?", "", "A dialog opens."),
    event("ui_prompt_end", "reason, kind, title?", "", "A dialog closed."),
    event(
        "user_bash",
        "command, excludeFromContext, cwd, outputId",
        "{result: {output, exitCode, cancelled, truncated}, error?}",
        "Before a `bash` command of the user runs. The extension can provide its result; with `error`, the command fails. An extension process can also run the command and send its output with `bash.output`; `output` of the result is then ignored. After `abort_bash`, Pinion sends `cancel` for the event, and the result still counts. If a listener fails, the command does not run.",
    ),
];

const fn method(name: &'static str, params: &'static str, value: &'static str, doc: &'static str) -> Method {
    Method {
        name,
        params,
        value,
        doc,
    }
}

const fn event(name: &'static str, members: &'static str, result: &'static str, doc: &'static str) -> Event {
    Event {
        name,
        members,
        result,
        doc,
    }
}

/// JSON Schema of the lines: `ToProgram`, `FromProgram`, and the types in them.
#[must_use]
pub fn document() -> Value {
    let mut generator = schemars::SchemaGenerator::default();
    let to = ToChild::json_schema(&mut generator);
    let from = FromChild::json_schema(&mut generator);
    generator.subschema_for::<Opened>();
    let definitions = generator.take_definitions(true);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": definitions,
        "toProgram": to,
        "fromProgram": from,
    })
}

#[cfg(test)]
mod tests {
    use super::EVENTS;
    use crate::combining::{Rule, rule};

    #[test]
    fn events_with_results_are_combined() {
        for event in EVENTS {
            let counts = rule(event.name) != Rule::Observe;
            assert_eq!(counts, !event.result.is_empty(), "{}", event.name);
        }
    }
}
