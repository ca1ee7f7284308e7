//! The command line: a pure function from arguments to [`Args`].
//!
//! What lives here: the tables of options and commands, the parser, the help texts, and the reading of `@file` arguments. What
//! does not: the environment, the choice of mode, model and session, and everything printed but the text of `--help`.

mod commands;
mod error;
mod files;
mod flags;
mod foreign;
mod help;
mod nearest;
mod parse;
mod set;
#[cfg(test)]
mod tests;
mod worker;

use std::collections::BTreeMap;

use wire::{Dialect, ThinkingLevel};

pub(crate) use commands::{COMMANDS, CommandInfo};
pub(crate) use error::UsageError;
pub(crate) use files::{read_files, read_named};
pub(crate) use flags::{Flag, SECTIONS, Takes};
pub(crate) use foreign::FOREIGN_TOOLS;
pub(crate) use help::{help, help_of};
pub(crate) use nearest::nearest;
pub(crate) use parse::{parse, unknown_option};

/// Longest `--session-id`: it becomes part of a file name, which may have 255 bytes.
pub(crate) const SESSION_ID_BYTES: usize = 128;

/// `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Answers as plain text.
    Text,
    /// Events as JSON lines.
    Json,
    /// Commands in, responses and events out. Also `rpc-ui`.
    Rpc,
    /// JSON lines over WebSocket and HTTP, with a page.
    Web,
    /// The Agent Client Protocol over stdin and stdout, for editors.
    Acp,
}

impl Mode {
    /// The words that `--mode` takes.
    const WORDS: &str = "text, json, rpc, web or acp";

    fn parse(word: &str) -> Option<Self> {
        match word {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            "rpc" | "rpc-ui" => Some(Self::Rpc),
            "web" => Some(Self::Web),
            "acp" => Some(Self::Acp),
            _ => None,
        }
    }

    /// True if a host application or a browser connects, which must be told of problems.
    pub(crate) fn serves_clients(self) -> bool {
        matches!(self, Self::Rpc | Self::Web | Self::Acp)
    }
}

/// A command: what to do instead of a conversation. Names and texts live in `commands`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// Serve the Agent Client Protocol, as `--mode acp` does.
    Acp,
    /// Check the installation: settings, keys, models, tools and sessions.
    Doctor,
    /// Print the protocol.
    Schema,
    /// Manage logins and stored keys.
    Auth,
    /// Manage the list of known models.
    Models,
    /// Copy sessions to and from a store for several machines.
    Sessions,
    /// Run sessions of a NATS server.
    Worker,
    /// Serve a client of a session on a worker: `--attach`.
    Attach,
    /// Serve clients of all sessions on workers: `--nats`.
    Gateway,
    /// Manage stored decisions about projects.
    Trust,
    /// Manage MCP servers.
    Mcp,
    /// Install a package.
    Install,
    /// Remove a package.
    Remove,
    /// List packages.
    List,
    /// Update packages.
    Update,
    /// Print a completion script.
    Completions,
    /// Print a manual page.
    Man,
    /// Print help.
    Help,
}

impl Command {
    /// The word.
    pub(crate) fn name(self) -> &'static str {
        commands::info(self).map_or("help", |info| info.name)
    }

    /// The words that may follow. Empty for `auth` and `mcp`, whose words may be keys and names.
    pub(crate) fn words(self) -> &'static [&'static str] {
        match self {
            Self::Auth | Self::Mcp => &[],
            other => commands::info(other).map_or(&[], |info| info.words),
        }
    }

    /// Returns true for commands that check their words themselves.
    pub(super) fn checks_words(self) -> bool {
        matches!(
            self,
            Self::Auth
                | Self::Mcp
                | Self::Install
                | Self::Remove
                | Self::List
                | Self::Update
                | Self::Sessions
                | Self::Worker
                | Self::Attach
                | Self::Gateway
        )
    }
}

/// An unknown option that was given before extensions were loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guess {
    /// The option with its dashes.
    pub(crate) option: String,
    /// Number of messages before it, if the next word was taken for its value.
    pub(crate) took_word_at: Option<usize>,
}

/// What `trust` is to do, other than to trust.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TrustWish {
    /// `--remove`: take the decision back.
    pub(crate) remove: bool,
    /// `--deny`: decide against it.
    pub(crate) deny: bool,
    /// `--list`.
    pub(crate) list: bool,
}

/// Options of `auth` other than `--json`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AuthArgs {
    /// `--api-key`: the key comes from stdin.
    pub(crate) key_from_stdin: bool,
    /// `--domain`.
    pub(crate) domain: Option<String>,
    /// `--login`.
    pub(crate) login: Option<String>,
}

/// Options of the commands for packages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PackageArgs {
    /// `--local`: in the project instead of the user's settings.
    pub(crate) local: bool,
    /// `--allow-scripts`: npm runs the scripts that packages bring.
    pub(crate) allow_scripts: bool,
    /// `--extension`: the only package to update.
    pub(crate) source: Option<String>,
    /// `--extensions` or `--all`: update packages.
    pub(crate) extensions: bool,
    /// `--self`: update the program.
    pub(crate) own: bool,
}

/// Arguments of `mcp add` other than the server's command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct McpArgs {
    /// `--url`.
    pub(crate) url: Option<String>,
    /// `--env`: `NAME=VALUE`.
    pub(crate) env: Vec<String>,
    /// `--header`: `NAME: VALUE`.
    pub(crate) headers: Vec<String>,
    /// `--bearer-token-env-var`.
    pub(crate) bearer: Option<String>,
    /// `--cwd`.
    pub(crate) cwd: Option<String>,
    /// `--timeout`.
    pub(crate) timeout: Option<String>,
    /// `--local`: in the project's file.
    pub(crate) local: bool,
}

/// `--sandbox` and `--sandbox-network`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct SandboxArgs {
    /// Which sandbox tools run in.
    pub(crate) mode: Option<wire::state::SandboxMode>,
    /// Whether tools may use the network in it.
    pub(crate) network: bool,
}

/// What a run may use and must give.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RunArgs {
    /// `--max-turns`, `--max-tool-calls`, `--max-tokens`, `--max-cost`, `--max-time`, `--max-repeats`.
    pub(crate) limits: wire::RunLimits,
    /// `--output-schema`: the file.
    pub(crate) output_schema: Option<String>,
}

/// Options of other agents that have an effect of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ForeignArgs {
    /// `--cwd`.
    pub(crate) cwd: Option<String>,
    /// `--no-rules`.
    pub(crate) no_rules: bool,
    /// `--no-ui`.
    pub(crate) no_ui: bool,
}

/// What a session stores, as far as the command line says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StorageArgs {
    /// `--durability`.
    pub(crate) durability: Option<wire::state::Durability>,
    /// `--checkpoints`.
    pub(crate) checkpoints: Option<wire::changes::Checkpoints>,
}

/// The parsed command line. Options that were not given are `None`, empty or false.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Args {
    /// The command: the first message, if it is one.
    pub(crate) command: Option<Command>,
    /// `--json` of `doctor`, `auth`, `models` and `trust`, and of `--list-models`.
    pub(crate) json: bool,
    /// Options of `auth`.
    pub(crate) auth: AuthArgs,
    /// Options of `install`, `remove`, `list` and `update`.
    pub(crate) packages: PackageArgs,
    /// `--from` of `models update`.
    pub(crate) from: Option<String>,
    /// Options of `trust`.
    pub(crate) trust: TrustWish,
    /// `--ts` of `schema`.
    pub(crate) typescript: bool,
    /// `--dialect` of `schema`.
    pub(crate) schema_dialect: Option<Dialect>,
    /// `--mode`.
    pub(crate) mode: Option<Mode>,
    /// `--print`; its text is in `messages`.
    pub(crate) print: bool,
    /// `--rpc-dialect`.
    pub(crate) rpc_dialect: Option<Dialect>,
    /// The dialect whose own options were given (dialects.md 6, rule 3).
    pub(crate) vendor: Option<Dialect>,
    /// `--cwd`, `--no-rules` and `--no-ui`.
    pub(crate) foreign: ForeignArgs,
    /// `--list-models` with its optional search.
    pub(crate) list_models: Option<Option<String>>,
    /// `--export`: the session file; the output is the first of `messages`, if any.
    pub(crate) export: Option<String>,
    /// `--offline`.
    pub(crate) offline: bool,
    /// `--verbose`.
    pub(crate) verbose: bool,
    /// `--help`.
    pub(crate) help: bool,
    /// `--version`.
    pub(crate) version: bool,
    /// `--provider`.
    pub(crate) provider: Option<String>,
    /// `--model`, with `:level` if it was given so.
    pub(crate) model: Option<String>,
    /// `--thinking`.
    pub(crate) thinking: Option<ThinkingLevel>,
    /// `--permission-mode`.
    pub(crate) permission_mode: Option<wire::state::PermissionMode>,
    /// `--durability` and `--checkpoints`.
    pub(crate) storage: StorageArgs,
    /// What a run may use and must give.
    pub(crate) run: RunArgs,
    /// `--sandbox` and `--sandbox-network`.
    pub(crate) sandbox: SandboxArgs,
    /// `--models`, cut at commas.
    pub(crate) models: Vec<String>,
    /// `--api-key`.
    pub(crate) api_key: Option<String>,
    /// `--continue`.
    pub(crate) continue_latest: bool,
    /// `--resume`.
    pub(crate) resume: bool,
    /// `--session`.
    pub(crate) session: Option<String>,
    /// `--fork`.
    pub(crate) fork: Option<String>,
    /// `--session-id`, fit for a file name.
    pub(crate) session_id: Option<String>,
    /// `--name`.
    pub(crate) name: Option<String>,
    /// `--session-dir`.
    pub(crate) session_dir: Option<String>,
    /// `--no-session`.
    pub(crate) no_session: bool,
    /// `--tools`, cut at commas; an empty list allows none.
    pub(crate) tools: Option<Vec<String>>,
    /// `--exclude-tools`, cut at commas, all of them.
    pub(crate) exclude_tools: Vec<String>,
    /// `--no-tools`.
    pub(crate) no_tools: bool,
    /// `--no-builtin-tools`.
    pub(crate) no_builtin_tools: bool,
    /// `--approve` is true, `--no-approve` false; the later one counts.
    pub(crate) approve: Option<bool>,
    /// `--no-mcp`.
    pub(crate) no_mcp: bool,
    /// `--mcp-config`.
    pub(crate) mcp_config: Vec<String>,
    /// Options of `mcp add` alone.
    pub(crate) mcp: McpArgs,
    /// `--system-prompt`: text or file.
    pub(crate) system_prompt: Option<String>,
    /// `--append-system-prompt`, in order: texts or files.
    pub(crate) append_system_prompt: Vec<String>,
    /// `--no-context-files`.
    pub(crate) no_context_files: bool,
    /// `--skill`.
    pub(crate) skills: Vec<String>,
    /// `--no-skills`.
    pub(crate) no_skills: bool,
    /// `--prompt-template`.
    pub(crate) prompt_templates: Vec<String>,
    /// `--no-prompt-templates`.
    pub(crate) no_prompt_templates: bool,
    /// `--extension`.
    pub(crate) extensions: Vec<String>,
    /// `--hook`.
    pub(crate) hooks: Vec<String>,
    /// `--no-hooks`.
    pub(crate) no_hooks: bool,
    /// `--no-extensions`.
    pub(crate) no_extensions: bool,
    /// `--tool`.
    pub(crate) custom_tools: Vec<String>,
    /// `--host`.
    pub(crate) host: Option<String>,
    /// `--port`.
    pub(crate) port: Option<u16>,
    /// `--open`.
    pub(crate) open: bool,
    /// `--web-token`; the inner `None` asks for one to be made up.
    pub(crate) web_token: Option<Option<String>>,
    /// `--web-allowed-origin`.
    pub(crate) web_origins: Vec<String>,
    /// `--web-cert`.
    pub(crate) web_cert: Option<String>,
    /// `--web-key`.
    pub(crate) web_key: Option<String>,
    /// `--web-insecure`.
    pub(crate) web_insecure: bool,
    /// `--max-open-sessions`.
    pub(crate) max_open_sessions: Option<usize>,
    /// `--serve-ui`.
    pub(crate) serve_ui: Option<String>,
    /// `--script`.
    pub(crate) script: Option<String>,
    /// `--record`.
    pub(crate) record: Option<String>,
    /// `--record-inputs`.
    pub(crate) record_inputs: Option<String>,
    /// `--replay`.
    pub(crate) replay: Option<String>,
    /// `--replay-speed`, above 0; none plays at once.
    pub(crate) replay_speed: Option<f64>,
    /// `--replay-strict`.
    pub(crate) replay_strict: bool,
    /// `--log-file`.
    pub(crate) log_file: Option<String>,
    /// `--provider-session-id`.
    pub(crate) provider_session_id: Option<String>,
    /// Long options unknown to us, without dashes; extensions may know them. `None` when they came without a value.
    pub(crate) extension_flags: BTreeMap<String, Option<String>>,
    /// Options that may belong to an extension, in order, until the loaded extensions confirm them.
    pub(crate) guesses: Vec<Guess>,
    /// `@file` arguments without the `@`, in order.
    pub(crate) files: Vec<String>,
    /// Everything else, in order.
    pub(crate) messages: Vec<String>,
    /// Warnings for stderr about ignored or unusual arguments, one sentence each.
    pub(crate) warnings: Vec<String>,
}
