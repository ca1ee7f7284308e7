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
        "{name, args}",
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
        "{name, prefix}",
        "{items}",
        "What could stand after a slash command; only for commands with `completes`.",
    ),
    method("shortcut.run", "{shortcut}", "", "A client has a key for it."),
    method(
        "provider.stream",
        "{provider, request: {model, context, options}}",
        "the message",
        "A request to a provider with `streams`. `update` lines carry the events of the answer.",
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
        "{url, instructions?}",
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
        "Begins another session. Answered when that one has begun; `session` is what it is called. Only during `command.run`, like the next four.",
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
        "Goes to a new session that has everything before an entry.",
    ),
    method(
        "navigateTree",
        "{targetId, summarize?, customInstructions?, label?}",
        "{cancelled}",
        "Goes to another place of this session's tree.",
    ),
    method(
        "reload",
        "{}",
        "null",
        "Loads all extensions, skills and templates anew.",
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
        "Runs any tool, as if the model had called it while the tool `callerId` runs.",
    ),
    method(
        "tool.builtin",
        "{name, toolCallId?, args, cwd, env?}",
        "{content, details?, isError?}",
        "Runs one of the agent's own tools; no hook sees it.",
    ),
    method(
        "llm.key",
        "{provider, modelId?}",
        "{apiKey?, headers?, baseUrl?} | null",
        "The key for a provider.",
    ),
    method(
        "llm.stream",
        "{model, context, options, simple?, direct?}",
        "the message",
        "Asks a model. `update` lines carry the events of the answer.",
    ),
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

/// What extensions can listen to.
pub const EVENTS: &[Event] = &[
    event(
        "session_start",
        "reason, previousSessionFile?",
        "",
        "A session has begun for the extension: `startup`, `reload`, `new`, `resume` or `fork`.",
    ),
    event(
        "session_shutdown",
        "reason, targetSessionFile?",
        "",
        "It is over, or goes on in another file. There are 2 s for goodbyes.",
    ),
    event(
        "input",
        "text, images?, source, streamingBehavior?",
        "{action: \"transform\", text, images?} | {action: \"handled\"}",
        "Somebody said something.",
    ),
    event(
        "before_agent_start",
        "prompt, images?, systemPrompt",
        "{messages?, systemPrompt?}",
        "A run is to begin.",
    ),
    event("agent_start", "", "", "A run begins."),
    event("agent_end", "messages", "", "A run ends."),
    event("agent_settled", "", "", "Nothing more is to be done."),
    event(
        "turn_start",
        "turnIndex, timestamp",
        "",
        "The model is to be asked.",
    ),
    event(
        "turn_end",
        "turnIndex, message, toolResults",
        "",
        "It has answered, and its calls have ended.",
    ),
    event("context", "messages", "{messages}", "What the model is to see."),
    event(
        "before_provider_request",
        "payload",
        "{payload}",
        "The body of a request to the model.",
    ),
    event("before_provider_headers", "headers", "{headers}", "Its headers."),
    event(
        "after_provider_response",
        "status, headers",
        "",
        "The model's server has begun to answer.",
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
        "A message is complete; it can be replaced by one of the same role.",
    ),
    event(
        "tool_call",
        "toolCallId, toolName, input",
        "{block: true, reason?} | {input}",
        "A tool is to be run. It is not run when an extension that listens gives no answer, answers with an error or is gone.",
    ),
    event(
        "tool_result",
        "toolCallId, toolName, input, content, isError, details?",
        "{content?, details?, isError?}",
        "A tool has run.",
    ),
    event(
        "tool_execution_start",
        "toolCallId, toolName, args",
        "",
        "A call begins.",
    ),
    event(
        "tool_execution_update",
        "toolCallId, toolName, args, partialResult",
        "",
        "It has come further. Never awaited.",
    ),
    event(
        "tool_execution_end",
        "toolCallId, toolName, result, isError",
        "",
        "It has ended.",
    ),
    event(
        "user_bash",
        "command, excludeFromContext, cwd",
        "{result: {output, exitCode, cancelled, truncated}}",
        "The user runs a command; the extension may have run it.",
    ),
    event(
        "session_before_switch",
        "reason, targetSessionFile?",
        "{cancel: true}",
        "The session is to be left for a new or another one.",
    ),
    event(
        "session_before_fork",
        "entryId, position",
        "{cancel: true}",
        "The session is to be forked.",
    ),
    event(
        "session_before_compact",
        "reason, preparation, branchEntries, customInstructions?",
        "{cancel: true} | {compaction: {summary, firstKeptEntryId, tokensBefore, details?}}",
        "The session is to be compacted.",
    ),
    event("session_compact", "compactionEntry, fromExtension", "", "It was."),
    event(
        "session_before_tree",
        "preparation",
        "{cancel: true} | {summary}",
        "Another place of the tree is to be gone to.",
    ),
    event(
        "session_tree",
        "newLeafId, oldLeafId, summaryEntry?, fromExtension?",
        "",
        "It was.",
    ),
    event(
        "model_select",
        "model, previousModel?, source",
        "",
        "There is another model.",
    ),
    event("thinking_level_select", "level", "", "It thinks more or less."),
    event(
        "resources_discover",
        "cwd, reason",
        "{skillPaths?, promptPaths?, themePaths?}",
        "Skills and templates are being looked for.",
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
    use crate::doors::combine::RULES;

    #[test]
    fn what_is_combined_is_described() {
        for event in EVENTS.iter().filter(|event| !event.result.is_empty()) {
            assert!(
                RULES.iter().any(|rule| rule.event == event.name),
                "{}",
                event.name
            );
        }
    }
}
