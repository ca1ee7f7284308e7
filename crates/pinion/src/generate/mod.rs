//! `pinion completions SHELL` and `pinion man [COMMAND]`: files for packages, made from the table of options, so that they
//! cannot lag behind it. `xtask package` runs both commands. The parser of the command line does not know them; they
//! take no options.

mod bash;
mod fish;
mod man;
mod table;
#[cfg(test)]
mod tests;
mod zsh;

use anyhow::bail;

use crate::args::Command;

/// Returns the text of `completions` or `man`, or none for any other command line.
///
/// # Errors
/// An unknown shell or command.
pub(crate) fn text(words: &[String], version: &str) -> anyhow::Result<Option<String>> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(Some(match words.as_slice() {
        ["completions", "bash"] => bash::script(),
        ["completions", "zsh"] => zsh::script(),
        ["completions", "fish"] => fish::script(),
        ["completions", ..] => bail!("completions takes one word: bash, zsh or fish"),
        ["man"] => man::main_page(version),
        ["man", name] => {
            let Some(command) = Command::ALL.into_iter().find(|command| command.name() == *name) else {
                let names = Command::ALL.map(Command::name).join(", ");
                bail!(
                    "There is no manual page for \"{name}\". Pages: {names}; without a word, the page of pinion"
                );
            };
            man::command_page(command, version)
        }
        _ => return Ok(None),
    }))
}
