//! Slash commands as oh-my-pi lists them (`get_available_commands`).

use config::resources::CommandInfo;
use wire::omp::{AvailableCommand, AvailableCommands, CommandInput};

/// The reply that lists these commands.
pub(super) fn reply(commands: Vec<CommandInfo>) -> AvailableCommands {
    AvailableCommands {
        commands: commands.into_iter().map(available).collect(),
    }
}

/// A slash command in the words of oh-my-pi.
fn available(command: CommandInfo) -> AvailableCommand {
    let source = match command.source {
        // Prompts of servers are listed like templates otherwise, so only the name tells them apart.
        _ if command.name.starts_with("mcp:") => "mcp_prompt",
        // Templates have another name there; `skill` and `extension` are the same (dialects.md 14).
        "prompt" => "file",
        other => other,
    };
    let general = || (source != "file").then(|| "arguments".to_owned());
    let hint = command.argument_hint.or_else(general);
    AvailableCommand {
        name: command.name,
        description: command.description,
        input: hint.map(|hint| CommandInput { hint }),
        source: source.to_owned(),
    }
}
