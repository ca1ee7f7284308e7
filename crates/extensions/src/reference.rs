//! What the page about extensions says beside the lines: the methods that can be called in either direction, and the events.
//! Only the generator reads it. What a method does is the agent's business.

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
        "The model calls a tool of the extension. `update` lines carry results as far as they have come.",
    ),
    method(
        "tool.prepare",
        "{extension, name, args}",
        "{args}",
        "Arguments of the model before they are checked; only for tools with `prepares`.",
    ),
    method(
        "command.run",
        "{extension, name, args, line}",
        "",
        "The user calls a slash command of the extension; `args` is the rest of the line.",
    ),
    method(
        "command.complete",
        "{extension, name, prefix}",
        "{items: [{value, label, description?}]}",
        "What could stand after a slash command.",
    ),
    method(
        "shortcut.run",
        "{extension, shortcut}",
        "",
        "The user pressed a key that the extension wants to be told of.",
    ),
    method(
        "provider.stream",
        "{provider, request: {model, context: {systemPrompt, messages, tools}, options}}",
        "the message",
        "A request to a provider with `streams`. `update` lines carry the events of the answer, none of which is left out.",
    ),
    method(
        "provider.refreshModels",
        "{provider, allowNetwork, credential?}",
        "[model, ...]",
        "Which models there are now; only for providers with `refreshes`.",
    ),
    method(
        "provider.oauth.login",
        "{provider}",
        "{access, refresh, expires}",
        "The user logs in; pages and questions go through `ui.` methods.",
    ),
    method(
        "provider.oauth.refresh",
        "{provider, credentials}",
        "{access, refresh, expires}",
        "A login has to be renewed.",
    ),
    method(
        "provider.oauth.key",
        "{provider, credentials}",
        "{apiKey}",
        "What requests are authorized with.",
    ),
    method(
        "provider.oauth.models",
        "{provider, models, credentials}",
        "[model, ...]",
        "The models as they are for who has logged in.",
    ),
];

/// Can be called by an extension.
pub const OF_PROGRAM: &[Method] = &[
    method(
        "ui.select",
        "{title, options, timeout?}",
        "string | null",
        "Asks the user to choose. Null: no answer, in time or at all; the same holds for all questions.",
    ),
    method(
        "ui.confirm",
        "{title, message, timeout?}",
        "true | false | null",
        "Asks yes or no. Everything but true means no.",
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
        "Shows a short text in a place of its own; without a text the place is given up.",
    ),
    method(
        "ui.setWidget",
        "{widgetKey, widgetLines?, widgetPlacement?}",
        "",
        "Shows lines beside the editor, `aboveEditor` or `belowEditor`.",
    ),
    method("ui.setTitle", "{title}", "", "Gives the window a title."),
    method("ui.setEditorText", "{text}", "", "Puts a text into the editor."),
    method(
        "ui.openUrl",
        "{url, launchUrl?, instructions?}",
        "",
        "Has an address opened in a browser.",
    ),
    method(
        "sendMessage",
        "{message: {customType, content, display?, details?}, options?: {deliverAs?, triggerTurn?}}",
        "",
        "A message of the extension's own for the model: during a run as `steer` or `followUp`, else right away, with the next prompt (`nextTurn`), or as the beginning of a run (`triggerTurn`).",
    ),
    method(
        "sendUserMessage",
        "{content, options?: {deliverAs?, expandPromptTemplates?}}",
        "",
        "Says something as if the user had.",
    ),
    method(
        "appendEntry",
        "{customType, data?}",
        "",
        "Writes an entry into the session that the model does not see: the place for an extension's state.",
    ),
    method("setSessionName", "{name}", "", "Names the session."),
    method(
        "setLabel",
        "{entryId, label?}",
        "",
        "Labels an entry; without a label it loses the one it has.",
    ),
    method(
        "setActiveTools",
        "{names}",
        "",
        "Says which tools the model has from now on.",
    ),
    method(
        "setModel",
        "{provider, modelId}",
        "true | false",
        "Changes the model; false when there is none of that name, or no key for it.",
    ),
    method(
        "setThinkingLevel",
        "{level}",
        "",
        "Changes how much the model thinks.",
    ),
    method("abort", "{}", "", "Aborts the run."),
    method(
        "compact",
        "{customInstructions?}",
        "the result",
        "Aborts the run and compacts the session.",
    ),
    method(
        "waitForIdle",
        "{}",
        "null",
        "Answered when no run is under way any more.",
    ),
    method(
        "newSession",
        "{parentSession?, entries?}",
        "{cancelled, session?}",
        "Begins another session, with these entries. Answered when that one has begun for its extensions; `session` is what it is called then. Meant for `command.run`, like the next four.",
    ),
    method(
        "switchSession",
        "{sessionPath}",
        "{cancelled, session?}",
        "Goes to another session.",
    ),
    method(
        "fork",
        "{entryId, position?}",
        "{cancelled, session?}",
        "Goes to a new session that has everything before an entry that the user said, or with `position` `at` everything up to an entry.",
    ),
    method(
        "navigateTree",
        "{targetId, summarize?, customInstructions?, replaceInstructions?, label?}",
        "{cancelled}",
        "Goes to another place of this session's tree.",
    ),
    method(
        "reload",
        "{}",
        "null",
        "Loads all extensions, skills and templates anew; refused while a run is under way.",
    ),
    method(
        "shutdown",
        "{}",
        "",
        "Ends the agent when what was asked before has been answered.",
    ),
    method(
        "tool.execute",
        "{name, args, callerId}",
        "{content, details?, isError?}",
        "Runs any tool, as if the model had called it: hooks and permissions decide, too. Only while the call `callerId` of a tool of the extension runs; `update` lines carry results as far as they have come.",
    ),
    method(
        "tool.builtin",
        "{name, args, cwd?, env?}",
        "{content, details?, isError?}",
        "Runs one of the agent's own tools; no hook sees it. `update` lines carry results as far as they have come.",
    ),
    method(
        "llm.key",
        "{provider, modelId?}",
        "{apiKey?, headers?, baseUrl?} | null",
        "The key for a provider; with a model also its headers and address.",
    ),
    method(
        "llm.stream",
        "{model, context: {systemPrompt?, messages, tools?}, options?, direct?}",
        "the message",
        "Asks a model, with the agent's keys. `update` lines carry the events of the answer. With `direct` also a model that the extension itself answers for is asked at its address.",
    ),
    method(
        "session.create",
        "{session, cwd?, persist?, sessionFile?, provider?, modelId?, thinkingLevel?, tools?, excludeTools?, noTools?, systemPrompt?, appendSystemPrompt?, ...}",
        "{state, cwd, messages, activeTools}",
        "Opens a session beside the one that the line names; `session` is a name for it, of the extension's choice. It may do no more than that one and ends with it. Its events come as events `session_event` with `{session, event}`, at last `{session, ended}`.",
    ),
    method(
        "session.command",
        "{session, command}",
        "what the command answers",
        "A command to such a session, as clients write them (PROTOCOL.md).",
    ),
    method(
        "session.frame",
        "{session, frame}",
        "",
        "An answer to a question of such a session, for example `extension_ui_response`.",
    ),
    method("session.dispose", "{session}", "", "Ends such a session."),
];

/// An event.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// Its name.
    pub name: &'static str,
    /// Members, beside `type`.
    pub members: &'static str,
    /// `value` of an answer that changes something; empty when answers mean nothing.
    pub result: &'static str,
    /// When it happens.
    pub doc: &'static str,
}

/// What extensions can listen to, besides whatever clients are told of a run, under its own name.
pub const EVENTS: &[Event] = &[
    event(
        "project_trust",
        "cwd",
        "{trusted: \"yes\" | \"no\", remember?}",
        "Is the project trusted? Only the user's extensions are asked, before anything of the project is loaded.",
    ),
    event(
        "session_start",
        "reason, previousSessionFile?",
        "",
        "A session has begun for the extension: `startup`, `reload`, `new`, `resume` or `fork`.",
    ),
    event(
        "resources_discover",
        "cwd, reason",
        "{skillPaths?, promptPaths?, themePaths?}",
        "Skills and templates are being looked for. Relative paths begin beside the extension.",
    ),
    event(
        "session_before_switch",
        "reason, targetSessionFile?",
        "{cancel: true, reason?}",
        "The session is to be left for a new or another one.",
    ),
    event(
        "session_before_fork",
        "entryId, position",
        "{cancel: true, reason?} | {skipConversationRestore: true}",
        "The session is to be forked.",
    ),
    event(
        "session_shutdown",
        "reason, targetSessionFile?",
        "",
        "It is over, or goes on in another file. There are 2 s for goodbyes.",
    ),
    event(
        "session_before_compact",
        "reason, willRetry, preparation, branchEntries, customInstructions?",
        "{cancel: true, reason?} | {compaction: {summary, firstKeptEntryId, tokensBefore, details?}}",
        "The session is to be compacted.",
    ),
    event("session_compact", "compactionEntry, fromExtension", "", "It was."),
    event(
        "session_compact_failed",
        "reason, aborted, willRetry, fromExtension, errorMessage?",
        "",
        "It was not.",
    ),
    event(
        "session_before_tree",
        "preparation",
        "{cancel: true, reason?} | {summary?, customInstructions?, replaceInstructions?, label?}",
        "Another place of the tree is to be gone to.",
    ),
    event(
        "session_tree",
        "newLeafId, oldLeafId, summaryEntry?, fromExtension?",
        "",
        "It was.",
    ),
    event(
        "session_info_changed",
        "name?",
        "",
        "The session has another name.",
    ),
    event(
        "input",
        "text, images?, source, streamingBehavior?",
        "{action: \"transform\", text, images?} | {action: \"handled\"}",
        "Somebody said something.",
    ),
    event(
        "before_agent_start",
        "prompt, images?, systemPrompt, systemPromptOptions",
        "{messages?, systemPrompt?}",
        "A run is to begin.",
    ),
    event("agent_start", "", "", "A run begins."),
    event(
        "turn_start",
        "turnIndex, timestamp",
        "",
        "The model is to be asked.",
    ),
    event(
        "context",
        "messages",
        "{messages}",
        "What the model is to see, without the system prompt.",
    ),
    event(
        "context_with_system",
        "messages",
        "{messages}",
        "The same with the system prompt, as a message of the role `system`.",
    ),
    event(
        "before_provider_request",
        "payload",
        "{payload}",
        "The body of a request to the model.",
    ),
    event(
        "before_provider_headers",
        "headers",
        "{headers}",
        "Its headers; null takes one away.",
    ),
    event(
        "after_provider_response",
        "status, headers",
        "",
        "The model's server has begun to answer. Never awaited.",
    ),
    event("message_start", "message", "", "A message begins."),
    event(
        "message_update",
        "message, assistantMessageEvent",
        "",
        "More of an answer has come. Never awaited.",
    ),
    event(
        "message_end",
        "message",
        "{message}",
        "A message is complete; it can be replaced by one of the same role, before it is written or sent anywhere.",
    ),
    event(
        "tool_execution_start",
        "toolCallId, toolName, args, parentToolCallId?",
        "",
        "A call begins.",
    ),
    event(
        "tool_call",
        "toolCallId, toolName, input, parentToolCallId?",
        "{block: true, reason?, terminate?} | {input}",
        "A tool is to be run. It is not run when an extension that listens gives no answer, answers with an error or is gone.",
    ),
    event(
        "tool_execution_update",
        "toolCallId, toolName, args, partialResult, parentToolCallId?",
        "",
        "It has come further. Never awaited.",
    ),
    event(
        "tool_result",
        "toolCallId, toolName, input, content, isError, details?, parentToolCallId?",
        "{content?, details?, isError?, terminate?}",
        "A tool has run; members of its result can be replaced one by one.",
    ),
    event(
        "tool_execution_end",
        "toolCallId, toolName, result, isError, parentToolCallId?",
        "",
        "It has ended.",
    ),
    event(
        "turn_end",
        "turnIndex, message, toolResults, messageEntryId, toolResultEntryIds, outcome, entries, continue",
        "{entries?, continue?}",
        "The model has answered, and its calls have ended. `entries` and `continue` are what others proposed: entries to be written, and whether the model is asked once more.",
    ),
    event("agent_end", "messages", "", "A run ends."),
    event(
        "agent_before_settle",
        "outcome, entries, continue",
        "{entries?, continue?}",
        "Nothing more is to be done, unless `continue` says so; as with `turn_end`.",
    ),
    event("agent_settled", "", "", "Nothing more is to be done."),
    event(
        "model_select",
        "model, previousModel?, source",
        "",
        "There is another model.",
    ),
    event(
        "thinking_level_select",
        "level, previousLevel",
        "",
        "It thinks more or less.",
    ),
    event(
        "ui_prompt_start",
        "reason, kind, title?",
        "",
        "The user is being asked something.",
    ),
    event(
        "ui_prompt_end",
        "reason, kind, title?",
        "",
        "The question is over.",
    ),
    event(
        "user_bash",
        "command, excludeFromContext, cwd",
        "{result: {output, exitCode, cancelled, truncated}}",
        "The user runs a command; the extension may have run it. It is not run when an extension that listens fails.",
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
    fn whose_answers_count_is_combined() {
        for event in EVENTS {
            let counts = rule(event.name) != Rule::Observe;
            assert_eq!(counts, !event.result.is_empty(), "{}", event.name);
        }
    }
}
