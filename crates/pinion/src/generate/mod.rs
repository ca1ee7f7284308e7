//! `pinion completions SHELL` and `pinion man [COMMAND]`: files for packages, made from the tables of options and commands, so
//! that they cannot differ from them. `xtask package` runs both commands.

mod bash;
mod fish;
mod man;
mod table;
#[cfg(test)]
mod tests;
mod zsh;

use anyhow::bail;

use crate::args::{Args, COMMANDS, Command};

/// Returns the text of `completions` or `man`, or none for any other command line.
///
/// # Errors
/// A missing or unknown shell or command.
pub(crate) fn text(args: &Args, version: &str) -> anyhow::Result<Option<String>> {
    let word = args.messages.first().map(String::as_str);
    Ok(Some(match (args.command, word) {
        (Some(Command::Completions), Some("bash")) => bash::script(),
        (Some(Command::Completions), Some("zsh")) => zsh::script(),
        (Some(Command::Completions), Some("fish")) => fish::script(),
        (Some(Command::Completions), _) => bail!("completions takes one word: bash, zsh or fish"),
        (Some(Command::Man), None) => man::main_page(version),
        (Some(Command::Man), Some(name)) => {
            let Some(info) = COMMANDS.iter().find(|info| info.name == name) else {
                let names = COMMANDS.each_ref().map(|info| info.name).join(", ");
                bail!(
                    "There is no manual page for \"{name}\". Pages: {names}; without a word, the page of pinion"
                );
            };
            man::command_page(info, version)
        }
        _ => return Ok(None),
    }))
}
