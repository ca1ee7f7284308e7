//! Checks options and tool names that only loaded extensions can know, before a session exists and before a tool can run.

use session::extensions::{Declared, declared, has_extensions};
use session::{Agent, mcp};
use tools::pattern::fits;

use crate::args::{Args, FOREIGN_TOOLS, UsageError, nearest, unknown_option};
use crate::environment::complain;
use crate::session_options::{built_in_tools, rules_for_other_tools, tools_flag};

/// Prefix of the tools of MCP servers, which are known only when the servers are connected.
const MCP_TOOLS: &str = "mcp__";

/// Tools of a session that are known before it starts.
struct Known {
    /// Tools of this program and of loaded extensions.
    names: Vec<String>,
    /// True if a client or an MCP server can add tools with other names.
    can_grow: bool,
}

/// Checks the options and tool names of the command line. Extensions are loaded only if the answer depends on them.
///
/// # Errors
/// [`UsageError::UnknownOption`] and [`UsageError::UnknownTool`].
pub(crate) async fn check(args: &mut Args, agent: &Agent) -> Result<(), UsageError> {
    let has_extensions = has_extensions(agent);
    let mut known = Known::of(args, agent);
    let waits = !args.guesses.is_empty() || first_unknown(args, &known).is_some();
    if has_extensions && waits {
        let declared = declared(agent).await;
        known.names.extend(declared.tools.iter().cloned());
        check_options(args, &declared, true)?;
        for problem in &declared.problems {
            complain(&format!("Warning: {problem}"));
        }
    } else {
        check_options(args, &Declared::default(), has_extensions)?;
    }
    match first_unknown(args, &known) {
        Some(error) => Err(error),
        None => {
            warn_of_missing(args, &known);
            if !known.can_grow && !has_extensions {
                warn_of_rules(agent);
            }
            Ok(())
        }
    }
}

/// Requires that a loaded extension declares each unknown option. Returns a word that a switch took for its value to
/// the messages.
fn check_options(args: &mut Args, declared: &Declared, has_extensions: bool) -> Result<(), UsageError> {
    let mut given_back = 0;
    for guess in std::mem::take(&mut args.guesses) {
        let name = guess.option.trim_start_matches('-');
        let Some(flag) = declared.flags.iter().find(|flag| flag.name == name) else {
            let names: Vec<String> = declared.flags.iter().map(|flag| flag.name.clone()).collect();
            return Err(unknown_option(None, &guess.option, &names, has_extensions));
        };
        if let Some(at) = guess.took_word_at
            && !flag.takes_value
            && let Some(value) = args.extension_flags.insert(name.to_owned(), None).flatten()
        {
            let at = (at + given_back).min(args.messages.len());
            args.messages.insert(at, value);
            given_back += 1;
        }
    }
    Ok(())
}

impl Known {
    fn of(args: &Args, agent: &Agent) -> Self {
        let names = built_in_tools().map(str::to_owned).collect();
        let (servers, _) = mcp::configured(&agent.mcp, &agent.settings, &agent.agent_dir, &agent.cwd);
        let has_clients = args.mode.is_some_and(crate::args::Mode::serves_clients);
        Self {
            names,
            can_grow: has_clients || !servers.is_empty(),
        }
    }

    fn has(&self, item: &str) -> bool {
        self.names.iter().any(|name| fits(item, name))
    }

    fn nearest(&self, item: &str) -> Option<&str> {
        nearest(item, self.names.iter().map(String::as_str))
    }

    /// True if the name is certainly a mistake.
    fn is_mistake(&self, item: &str) -> bool {
        if self.has(item) || FOREIGN_TOOLS.iter().any(|name| fits(item, name)) {
            return false;
        }
        if self.can_grow && (item.starts_with(MCP_TOOLS) || item.contains('*')) {
            return false;
        }
        // Clients register tools later. A name close to a built-in one is still a mistake.
        !self.can_grow || self.nearest(item).is_some()
    }
}

/// The lists of tools that the command line names.
fn lists(args: &Args) -> [(&'static str, Vec<&str>); 2] {
    let (named, changes) = tools_flag(args);
    let changed = changes.iter().map(|item| item.trim_start_matches(['+', '-']));
    let named = named.into_iter().flatten().map(String::as_str);
    let excluded = args.exclude_tools.iter().map(String::as_str);
    [
        ("--tools", named.chain(changed).collect()),
        ("--exclude-tools", excluded.collect()),
    ]
}

fn first_unknown(args: &Args, known: &Known) -> Option<UsageError> {
    lists(args).into_iter().find_map(|(flag, items)| {
        let item = items.into_iter().find(|item| known.is_mistake(item))?;
        Some(UsageError::UnknownTool {
            name: item.to_owned(),
            flag,
            nearest: known.nearest(item).map(str::to_owned),
            known: known.names.join(", "),
        })
    })
}

/// Names the tools of other agents that are asked for and do not exist here.
fn warn_of_missing(args: &Args, known: &Known) {
    let [(_, named), _] = lists(args);
    for item in named {
        let is_foreign = FOREIGN_TOOLS.iter().any(|name| fits(item, name));
        if is_foreign && !known.has(item) {
            complain(&format!(
                "Warning: --tools names {item}, which does not exist here; ignored"
            ));
        }
    }
}

/// Names the rules that cannot match a call: no extension, client or MCP server has further tools.
fn warn_of_rules(agent: &Agent) {
    for rule in rules_for_other_tools(&agent.settings) {
        complain(&format!(
            "Warning: the permission rule \"{rule}\" matches no tool. Tools: {}",
            built_in_tools().collect::<Vec<_>>().join(", ")
        ));
    }
}
