//! `extension-api.md`: what TypeScript extensions find on `pi`, `ctx` and `ctx.ui`. The names come from the sources of the
//! TypeScript host; a name without a description here, or a description without a name, is an error.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use regex::Regex;

use super::{cell, head, read};

const FOLDER: &str = "crates/extensions/typescript/src";

const INTRO: &str = "\
An extension is a module whose default export is a function. Pinion calls it with an object `pi` for each session. Extensions run in one
Node (20 or later) or Bun process of their own, without a build step. `import` finds pi's packages without an installation.

```ts
export default function (pi) {
  pi.registerCommand(\"hello\", {
    description: \"Say hello\",
    handler: async (args, ctx) => ctx.ui.notify(`Hello ${args}`),
  });
  pi.on(\"tool_call\", (event) => {
    if (event.toolName === \"bash\" && event.input.command.includes(\"rm -rf\")) return { block: true, reason: \"too dangerous\" };
  });
}
```

Pinion searches extensions in `~/.pi/agent/extensions`, in `.pi/extensions` of a trusted project, in the [settings](settings.md)
`extensions` and `packages`, and in `--extension PATH`. The events of `pi.on` are on the page [Hook and extension events](hook-events.md). Interfaces of
earlier versions of pi (hooks and custom tools) work, too.
";

type Doc = (&'static str, &'static str);

const API: &[Doc] = &[
    (
        "on(event, handler)",
        "Listen to an event. Returns a function that removes the handler.",
    ),
    (
        "registerTool(tool)",
        "Register a tool with `name`, `description`, `parameters` and `execute`. The model can call it, unless `defaultActive` is \
         false or `exposure` is `hidden`. Calls of tools with the `executionMode` `sequential` run one after the other.",
    ),
    ("unregisterTool(name)", "Remove a tool."),
    (
        "registerCommand(name, options)",
        "Register a slash command with `description`, `handler` and an optional `getArgumentCompletions`.",
    ),
    (
        "registerFlag(name, options)",
        "Register a command line option with `description`, `type` (`boolean` or `string`) and `default`.",
    ),
    ("getFlag(name)", "Return the value of such an option."),
    (
        "registerShortcut(key, options)",
        "Register a keyboard shortcut. Clients can offer it.",
    ),
    (
        "registerMessageRenderer(type)",
        "Accepted. Clients render messages.",
    ),
    ("registerEntryRenderer(type)", "Accepted without effect."),
    (
        "registerMarkdownTransformer(transformer)",
        "Accepted without effect.",
    ),
    ("registerToolRenderer(renderer)", "Accepted without effect."),
    (
        "registerProvider(name, config)",
        "Register a provider with models, or change one.",
    ),
    ("unregisterProvider(name)", "Remove a provider."),
    (
        "registerVirtualModel(model)",
        "Not supported: reported once and ignored.",
    ),
    ("unregisterVirtualModel(model)", "Accepted without effect."),
    (
        "registerMcpServer(name, config)",
        "Add an MCP server to the session, with a `config` as in `mcp.json`. A configured server of the same name comes first.",
    ),
    ("unregisterMcpServer(name)", "Remove such a server."),
    ("getMcpServers()", "List the MCP servers of all extensions."),
    (
        "sendMessage(message, options)",
        "Add a message of the extension to the conversation; `deliverAs` and `triggerTurn` say when.",
    ),
    ("sendUserMessage(content, options)", "Send a message as the user."),
    (
        "appendEntry(type, data)",
        "Write an entry to the session file that the model does not see.",
    ),
    ("send(text, attachments)", "Old form of `sendUserMessage`."),
    (
        "events",
        "Event bus that all extensions of the session share: `emit` and `on`.",
    ),
    (
        "exec(command, args, options)",
        "Run a program and return its output and exit code. `maxBuffer` limits the output in bytes.",
    ),
    ("getSessionName()", "Return the name of the session."),
    ("setSessionName(name)", "Set the name of the session."),
    ("setLabel(entryId, label)", "Set or remove the label of an entry."),
    (
        "getActiveTools()",
        "Return the names of the tools that the model can call.",
    ),
    ("getAllTools()", "Return all tools."),
    ("setActiveTools(names)", "Set the tools that the model can call."),
    ("getCommands()", "Return the slash commands."),
    ("getSettings()", "Return a copy of the settings."),
    (
        "setModel(model)",
        "Select the model. Returns false if it has no credentials.",
    ),
    ("getThinkingLevel()", "Return the thinking level."),
    ("setThinkingLevel(level)", "Set the thinking level."),
];

const CONTEXT: &[Doc] = &[
    ("ui", "Dialogs and notifications; see below."),
    ("mode", "Mode of the program, such as `rpc`."),
    ("hasUI", "Whether a client can show dialogs."),
    ("cwd", "Working directory of the session."),
    ("sessionManager", "Read access to the entries of the session."),
    ("modelRegistry", "Models and their keys."),
    ("model", "The current model."),
    ("scopedModels", "The models of `--models`."),
    ("thinkingLevel", "The thinking level."),
    ("signal", "`AbortSignal` of the current run."),
    ("sessionFile", "Path of the session file, or null."),
    ("isIdle()", "Whether no run is active."),
    ("isProjectTrusted()", "Whether the project is trusted."),
    ("hasPendingMessages()", "Whether messages are queued."),
    ("hasQueuedMessages()", "Old name of `hasPendingMessages`."),
    ("getContextUsage()", "Tokens of the context window that are used."),
    ("getSystemPrompt()", "The system prompt."),
    ("getSystemPromptOptions()", "The parts it was made from."),
    ("abort()", "Stop the run."),
    (
        "shutdown()",
        "End the program after pending responses; in another session than the first, close that session.",
    ),
    (
        "compact(options)",
        "Compact the session; `onComplete` and `onError` report the end.",
    ),
    ("exec(command, args, options)", "As `pi.exec`."),
];

const COMMAND: &[Doc] = &[
    ("waitForIdle()", "Wait until no run is active."),
    (
        "reload()",
        "Load settings, extensions, skills and templates again.",
    ),
    (
        "navigateTree(entryId, options)",
        "Move to another entry of the session tree.",
    ),
    (
        "newSession(options)",
        "Start a new session. `setup` fills it, `withSession` receives its context.",
    ),
    (
        "fork(entryId, options)",
        "Continue in a new session with everything before an entry.",
    ),
    ("branch(entryId)", "Old name of `fork`."),
    (
        "switchSession(path, options)",
        "Continue in another session file.",
    ),
];

const TOOL: &[Doc] = &[
    ("tools", "All tools."),
    (
        "executeTool(name, args, options)",
        "Call another tool, with permissions and hooks. Returns `{toolCall, result, isError}`, also after a failure.",
    ),
];

const UI: &[Doc] = &[
    (
        "select(title, options, opts)",
        "Ask for a choice. Returns undefined if there is no answer.",
    ),
    (
        "confirm(title, message, opts)",
        "Ask yes or no. Returns false if there is no answer.",
    ),
    ("input(title, placeholder, opts)", "Ask for a line of text."),
    ("editor(title, prefill, opts)", "Ask for a longer text."),
    (
        "notify(message, type)",
        "Show a message: `info`, `warning` or `error`.",
    ),
    ("setStatus(key, text)", "Show or remove a short text."),
    ("setTitle(title)", "Set the window title."),
    ("setEditorText(text)", "Set the text of the prompt editor."),
    ("pasteToEditor(text)", "Same as `setEditorText`."),
    ("openUrl(url, options)", "Open an address in a browser."),
    (
        "setWidget(key, lines, options)",
        "Show lines above or below the editor. Custom components are not supported.",
    ),
    ("theme", "A theme without colours."),
];

/// The page.
pub(super) fn render(root: &Path) -> Result<String> {
    let source = |name: &str| read(root, &format!("{FOLDER}/{name}"));
    let (api, context, ui) = (source("api.mjs")?, source("context.mjs")?, source("ui.mjs")?);
    let mut out = head("TypeScript extension API");
    out.push_str(INTRO);
    let part = |text: &str, from: &str, to: &str| {
        let rest = text.split_once(from).map(|(_, rest)| rest.to_owned());
        let rest = rest.with_context(|| format!("no {from} in the host"))?;
        anyhow::Ok(rest.split(to).next().unwrap_or(&rest).to_owned())
    };
    let members = part(&api, "const api = {", "  };\n")?
        + &part(&api, "function registrations", "\n}\n")?
        + &part(&api, "function messages", "\n}\n")?;
    section(&mut out, "`pi`", "", API, &members, &["changed", "need"])?;
    let class = |name: &str| part(&context, &format!("class {name} "), "\n}\n");
    section(
        &mut out,
        "`ctx` of handlers",
        "",
        CONTEXT,
        &class("HandlerContext")?,
        &[],
    )?;
    let also = "Handlers of slash commands get the members above and these.\n";
    section(
        &mut out,
        "`ctx` of commands",
        also,
        COMMAND,
        &class("CommandContext")?,
        &[],
    )?;
    let also = "`execute` of a tool gets the members of handlers and these.\n";
    section(
        &mut out,
        "`ctx` of tools",
        also,
        TOOL,
        &class("ToolContext")?,
        &[],
    )?;
    let also = "Dialogs take `{signal, timeout}` as their last argument. The client shows them; without a client they return their default.\n";
    section(
        &mut out,
        "`ctx.ui`",
        also,
        UI,
        &part(&ui, "const ui = {", "  };\n")?,
        &[],
    )?;
    out.push_str("\n## Without effect\n\nThese members of `ctx.ui` need a terminal. Pinion logs the first call of each and returns an empty value: ");
    let terminal = part(&ui, "const TERMINAL_ONLY = [", "];\n")?;
    let name = Regex::new(r#"\["(\w+)","#)?;
    let names: Vec<String> = name
        .captures_iter(&terminal)
        .filter_map(|hit| Some(format!("`{}`", hit.get(1)?.as_str())))
        .collect();
    ensure!(!names.is_empty(), "no members that need a terminal were found");
    out.push_str(&format!("{}.\n\nExports of pi's packages that need a terminal can be imported. They fail with `not available headless` when they are used.\n", names.join(", ")));
    out.push_str("\nOf `systemPromptOptions` in `before_agent_start`, changes to `sections`, `selectedTools`, `promptGuidelines` and `forceSystemPrompt` count. Changes to other members are ignored.\n");
    Ok(out)
}

fn section(
    out: &mut String,
    title: &str,
    text: &str,
    docs: &[Doc],
    source: &str,
    local: &[&str],
) -> Result<()> {
    let known: BTreeSet<&str> = docs
        .iter()
        .map(|(name, _)| name.split('(').next().unwrap_or(name))
        .collect();
    let found = members(source)?;
    let found: BTreeSet<&str> = found
        .iter()
        .map(String::as_str)
        .filter(|name| !local.contains(name))
        .collect();
    let differences: Vec<&&str> = known.symmetric_difference(&found).collect();
    ensure!(
        differences.is_empty(),
        "{title}: the page and the host differ in {differences:?}"
    );
    out.push_str(&format!(
        "\n## {title}\n\n{text}{}| member | use |\n| --- | --- |\n",
        if text.is_empty() { "" } else { "\n" }
    ));
    for (name, doc) in docs {
        out.push_str(&format!("| `{name}` | {} |\n", cell(doc)));
    }
    Ok(())
}

/// Names of members at the first level of an object or class.
fn members(source: &str) -> Result<BTreeSet<String>> {
    let member = Regex::new(r"(?m)^ {2,4}(?:async |get )?([a-zA-Z]\w*)(?:\([^\n]*\) \{|:)")?;
    let hits = member
        .captures_iter(source)
        .filter_map(|hit| Some(hit.get(1)?.as_str().to_owned()));
    let no_names = ["constructor", "if", "for", "try", "return", "catch", "const"];
    Ok(hits.filter(|name| !no_names.contains(&name.as_str())).collect())
}
