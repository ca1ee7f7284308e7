//! Slash commands as oh-my-pi lists them (`get_available_commands`), and sends them when they change.

use config::resources::CommandInfo;
use wire::omp::{AvailableCommand, AvailableCommands, CommandInput};
use wire::{Event, SessionRule};

use super::driver::Driver;

/// The slash commands that were sent to clients of today's oh-my-pi (dialects.md 14). Their menus rely on it.
#[derive(Debug, Default)]
pub(super) enum SentCommands {
    /// None yet.
    #[default]
    Nothing,
    /// This list.
    List(Vec<AvailableCommand>),
    /// Never: no client shows menus of this session, which is that of a sub-agent or an extension.
    Off,
}

impl SentCommands {
    /// Sends clients the commands, if they do not have them yet.
    pub(super) async fn update(&mut self, driver: &Driver) {
        // The list would lack commands of extensions that are being loaded.
        if matches!(self, Self::Off)
            || !driver.core.follows(SessionRule::AnnouncesCommands)
            || driver.extensions.is_opening()
        {
            return;
        }
        let AvailableCommands { commands } = reply(driver.extensions.commands(&driver.core));
        if matches!(self, Self::List(sent) if *sent == commands) {
            return;
        }
        *self = Self::List(commands.clone());
        let event = Event::AvailableCommandsUpdate { commands };
        driver.core.outbox.tell(event).await;
    }
}

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
