//! Takes a command line apart. What the options are lives in `flags`; nothing here knows one by name but for the commands,
//! and for the rules on options that exclude each other.

use super::error::UsageError;
use super::flags::{self, Flag, Takes};
use super::{Args, Command, Mode};

/// Takes the arguments apart, without the program's name.
///
/// # Errors
/// An unknown short option, a missing or wrong value, options that contradict each other, `@file` in RPC mode.
pub(crate) fn parse(argv: &[String]) -> Result<Args, UsageError> {
    let mut args = Args::default();
    let mut rest = argv;
    if let Some((first, after)) = argv.split_first()
        && let Some(command) = Command::parse(first)
    {
        args.command = Some(command);
        rest = after;
    }
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first.as_str() {
            "--" => {
                args.messages.extend(rest.iter().cloned());
                break;
            }
            file if file.len() > 1 && file.starts_with('@') => {
                args.files.push(file.trim_start_matches('@').to_owned());
            }
            // Three dashes start a Markdown document, not an option.
            option if option.starts_with('-') && !option.starts_with("---") => {
                rest = take_option(&mut args, option, rest)?;
            }
            message => args.messages.push(message.to_owned()),
        }
    }
    adopt_json(&mut args);
    check(&args)?;
    Ok(args)
}

/// `--json` before `--list-models` means it as much as after it.
fn adopt_json(args: &mut Args) {
    if args.list_models.is_some()
        && let Some(swallowed) = args.extension_flags.remove("json")
    {
        args.json = true;
        args.warnings.retain(|warning| !warning.contains(" --json "));
        // A word that followed was taken for its value.
        if let Some(None) = args.list_models {
            args.list_models = Some(swallowed);
        }
    }
}

/// Handles one option; returns what is left of the arguments.
fn take_option<'a>(args: &mut Args, option: &str, rest: &'a [String]) -> Result<&'a [String], UsageError> {
    let (name, inline) = match option.split_once('=') {
        Some((name, value)) if option.starts_with("--") => (name, Some(value.to_owned())),
        _ => (option, None),
    };
    let own = match args.command {
        Some(command) => flags::find_of_command(command, name),
        None if args.list_models.is_some() => flags::find_of_list(name),
        None => None,
    };
    let Some(flag) = own.or_else(|| flags::find(name)) else {
        return keep_unknown(args, name, inline, rest);
    };
    apply(args, flag, name, inline, rest)
}

fn apply<'a>(
    args: &mut Args,
    flag: &Flag,
    name: &str,
    inline: Option<String>,
    rest: &'a [String],
) -> Result<&'a [String], UsageError> {
    match (&flag.takes, inline) {
        (Takes::Nothing(_), Some(_)) => Err(UsageError::UnwantedValue(name.to_owned())),
        (Takes::Nothing(set), None) => {
            set(args);
            Ok(rest)
        }
        (Takes::Value(_, set), Some(value)) => set(args, value).map(|()| rest),
        (Takes::Value(what, set), None) => {
            // Whatever follows is the value, even with a dash: prompts and patterns may start with one.
            let (value, rest) = rest.split_first().ok_or_else(|| UsageError::MissingValue {
                flag: name.to_owned(),
                value: what,
            })?;
            set(args, value.clone()).map(|()| rest)
        }
        (Takes::Maybe(_, set), Some(value)) => {
            set(args, Some(value));
            Ok(rest)
        }
        (Takes::Maybe(_, set), None) => {
            let next = rest
                .split_first()
                .filter(|(next, _)| is_value(next) || next.starts_with("---"));
            set(args, next.map(|(value, _)| value.clone()));
            Ok(next.map_or(rest, |(_, rest)| rest))
        }
    }
}

/// Long options nobody knows may belong to an extension; short ones are mistakes.
fn keep_unknown<'a>(
    args: &mut Args,
    name: &str,
    inline: Option<String>,
    rest: &'a [String],
) -> Result<&'a [String], UsageError> {
    let Some(key) = name.strip_prefix("--") else {
        return Err(UsageError::UnknownOption(name.to_owned()));
    };
    let next = rest
        .split_first()
        .filter(|(next, _)| inline.is_none() && is_value(next));
    let value = inline.or_else(|| next.map(|(value, _)| value.clone()));
    args.warnings
        .push(format!("Unknown option {name} is kept for extensions"));
    args.extension_flags.insert(key.to_owned(), value);
    Ok(next.map_or(rest, |(_, rest)| rest))
}

/// True for what can only be a value or a message.
fn is_value(text: &str) -> bool {
    !text.starts_with(['-', '@'])
}

/// The first word that a command has no use for.
fn superfluous(command: Command, args: &Args) -> Option<&String> {
    let known = |word: &&String| command.words().contains(&word.as_str());
    // `trust` takes a directory.
    let takes_any = command == Command::Trust && !args.trust.list;
    let own = args.messages.first().as_ref().is_some_and(known) || takes_any;
    let own = usize::from(own);
    args.messages.iter().skip(own).chain(&args.files).next()
}

fn check(args: &Args) -> Result<(), UsageError> {
    let chosen = [
        ("--session", args.session.is_some()),
        ("--continue", args.continue_latest),
        ("--resume", args.resume),
    ];
    let mut names: Vec<&str> = chosen
        .iter()
        .filter(|(_, given)| *given)
        .map(|(name, _)| *name)
        .collect();
    if args.session_id.is_some() && !names.is_empty() {
        return Err(UsageError::Conflict("--session-id", names.join(", ")));
    }
    if args.fork.is_some() {
        names.extend(args.no_session.then_some("--no-session"));
        if !names.is_empty() {
            return Err(UsageError::Conflict("--fork", names.join(", ")));
        }
    }
    // The words of `auth` may be a key by mistake: whoever reads them shows none.
    if let Some(command) = args.command
        && !matches!(command, Command::Auth | Command::Mcp)
        && let Some(word) = superfluous(command, args)
    {
        return Err(UsageError::UnwantedWord {
            command: command.name(),
            word: word.clone(),
        });
    }
    if args.mode == Some(Mode::Rpc) && !args.files.is_empty() && !args.help && !args.version {
        return Err(UsageError::FilesInRpc);
    }
    Ok(())
}
