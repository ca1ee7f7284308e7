//! Takes a command line apart. The options live in `flags`, `foreign` and `commands`; this file knows only `help` by name, and
//! the rules on options that exclude each other.

use super::commands::{self, COMMANDS};
use super::error::UsageError;
use super::flags::{self, Flag, SECTIONS, Takes};
use super::foreign;
use super::nearest::nearest;
use super::{Args, Command, Guess, Mode};

/// Takes the arguments apart. `program` is the name the program was started under, without directories.
///
/// # Errors
/// An unknown option that no extension can have, a missing or wrong value, options that contradict each other, a word that is
/// almost a command, `@file` in RPC mode.
pub(crate) fn parse(program: &str, argv: &[String]) -> Result<Args, UsageError> {
    let command_at = command_position(argv);
    let word = command_at.and_then(|at| argv.get(at));
    let mut args = Args {
        command: word
            .and_then(|word| commands::by_name(word))
            .map(|info| info.command),
        ..Args::default()
    };
    // An option such as `--attach` sets a command as well, which the first word is then not.
    let is_command = args.command.is_some();
    let mut rest = argv;
    let mut general = Vec::new();
    while let Some((first, after)) = rest.split_first() {
        let at = argv.len() - rest.len();
        rest = after;
        match first.as_str() {
            "--" => {
                // `worker` passes them on to another program.
                args.messages
                    .extend((args.command == Some(Command::Worker)).then(|| first.clone()));
                take_words(program, &mut args, rest);
                break;
            }
            _ if is_command && command_at == Some(at) => {}
            file if file.len() > 1 && file.starts_with('@') => {
                args.files.push(file.trim_start_matches('@').to_owned());
            }
            // Three dashes start a Markdown document, not an option.
            option if option.starts_with('-') && !option.starts_with("---") => {
                let (name, _) = split_inline(option);
                let own = args.command.and_then(|command| commands::own_flag(command, name));
                general.extend(flags::find(name).filter(|_| own.is_none()));
                rest = take_option(&mut args, option, rest)?;
            }
            message => args.messages.push(message.to_owned()),
        }
    }
    adopt_json(&mut args);
    if args.help || args.version {
        return Ok(args);
    }
    if args.command == Some(Command::Help) {
        return describe(args);
    }
    if args.command == Some(Command::Acp) {
        serve_editor(&mut args)?;
    }
    if args.command.is_none() && command_at.is_some() && !args.print {
        check_words(program, &args)?;
    }
    check(&args)?;
    check_workers(&args, &general)?;
    check_guesses(&args)?;
    Ok(args)
}

/// Takes the words after `--`. Unlike in pi, words with `@` are text: programs put texts of others here, and those must attach
/// nothing. Clients of pi attach files before the text, by absolute path (contraagent 0.9). Under the name `pi` these are files.
/// The last word, which is the text of such programs, never is one.
fn take_words(program: &str, args: &mut Args, words: &[String]) {
    let before_last = words.iter().take(words.len().saturating_sub(1));
    let files = before_last
        .take_while(|word| program == "pi" && word.starts_with("@/"))
        .count();
    let (files, texts) = words.split_at(files);
    args.files
        .extend(files.iter().map(|file| file.trim_start_matches('@').to_owned()));
    args.messages.extend(texts.iter().cloned());
}

/// Refuses general options that only the agents of workers carry out. A gateway runs no tools: an option that limits them there
/// would be passed over, and leave its user unprotected. A worker itself has no use for any general option.
fn check_workers(args: &Args, general: &[&'static Flag]) -> Result<(), UsageError> {
    let (place, refused) = match args.command {
        Some(Command::Attach) => ("--attach", general.iter().find(|flag| flag.protects())),
        Some(Command::Gateway) => ("--nats", general.iter().find(|flag| flag.protects())),
        Some(Command::Worker) => ("worker before \"--\"", general.first()),
        _ => return Ok(()),
    };
    let Some(option) = refused.and_then(|flag| flag.names.first()) else {
        return Ok(());
    };
    let why = format!(
        "{place}: the agents of workers run the tools. Give it to them: pinion worker --nats URL -- {option}"
    );
    Err(UsageError::Conflict(option, why))
}

/// Finds the first message, which may be a command: no option, no file, no value of an option. With `--print` all words are
/// for the model, as are words after `--`.
fn command_position(argv: &[String]) -> Option<usize> {
    let mut found = None;
    let mut rest = argv;
    while let Some((first, after)) = rest.split_first() {
        let at = argv.len() - rest.len();
        rest = after;
        if first == "--" {
            break;
        }
        if !first.starts_with('-') || first.starts_with("---") {
            let is_file = first.len() > 1 && first.starts_with('@');
            found = found.or((!is_file).then_some(at));
            continue;
        }
        let (name, inline) = split_inline(first);
        if found.is_none() && ["--print", "-p"].contains(&name) {
            return None;
        }
        let flag = flags::find(name).or_else(|| commands::any_flag(name));
        let takes_next = inline.is_none()
            && match flag.map(|flag| &flag.takes) {
                Some(Takes::Value(..)) => true,
                Some(Takes::Maybe(..)) => rest.first().is_some_and(|next| is_value(next)),
                Some(Takes::Nothing(_)) | None => false,
            };
        if takes_next {
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    found
}

/// Makes `acp` the same as `--mode acp`.
fn serve_editor(args: &mut Args) -> Result<(), UsageError> {
    match args.messages.first() {
        Some(word) => Err(UsageError::UnwantedWord {
            command: Command::Acp.name(),
            word: word.clone(),
        }),
        None => {
            args.command = None;
            args.mode = Some(Mode::Acp);
            Ok(())
        }
    }
}

/// `help` and `help COMMAND`.
fn describe(mut args: Args) -> Result<Args, UsageError> {
    args.help = true;
    args.command = match args.messages.first() {
        None => None,
        Some(word) => match commands::by_name(word) {
            Some(info) => Some(info.command),
            None => {
                let names: Vec<&str> = COMMANDS.iter().map(|info| info.name).collect();
                return Err(UsageError::NoHelp {
                    word: word.clone(),
                    commands: names.join(", "),
                });
            }
        },
    };
    Ok(args)
}

/// Refuses words that mean a command which does not exist.
fn check_words(program: &str, args: &Args) -> Result<(), UsageError> {
    let Some(first) = args.messages.first().filter(|_| args.files.is_empty()) else {
        return Ok(());
    };
    if (program == "pi" || args.messages.len() == 1)
        && let Some((word, instead)) = commands::of_pi(first)
    {
        return Err(UsageError::CommandOfPi {
            program: program.to_owned(),
            word,
            instead,
        });
    }
    match commands::meant_by(&args.messages) {
        Some(meant) => Err(UsageError::AlmostCommand {
            word: first.clone(),
            meant,
        }),
        None => Ok(()),
    }
}

/// `--json` before `--list-models` means the same as after it.
fn adopt_json(args: &mut Args) {
    if args.list_models.is_some()
        && let Some(swallowed) = args.extension_flags.remove("json")
    {
        args.json = true;
        args.guesses.retain(|guess| guess.option != "--json");
        // A word that followed was taken for its value.
        if let Some(None) = args.list_models {
            args.list_models = Some(swallowed);
        }
    }
}

/// Name and value of `--name=value`.
fn split_inline(option: &str) -> (&str, Option<String>) {
    match option.split_once('=') {
        Some((name, value)) if option.starts_with("--") => (name, Some(value.to_owned())),
        _ => (option, None),
    }
}

/// Handles one option; returns the remaining arguments.
fn take_option<'a>(args: &mut Args, option: &str, rest: &'a [String]) -> Result<&'a [String], UsageError> {
    let (name, inline) = split_inline(option);
    let own = match args.command {
        Some(command) => commands::own_flag(command, name),
        // `--list-models` has the same switch as `doctor`.
        None if args.list_models.is_some() => commands::own_flag(Command::Doctor, name),
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
            // The next argument is the value, even with a dash: prompts and patterns may start with one.
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

/// Keeps a long option that an extension may declare. Short ones and those of commands are mistakes.
fn keep_unknown<'a>(
    args: &mut Args,
    name: &str,
    inline: Option<String>,
    rest: &'a [String],
) -> Result<&'a [String], UsageError> {
    let takes_any = matches!(args.command, None | Some(Command::Acp));
    let Some(key) = name.strip_prefix("--").filter(|_| takes_any) else {
        return Err(unknown_option(args.command, name, &[], false));
    };
    let next = rest
        .split_first()
        .filter(|(next, _)| inline.is_none() && is_value(next));
    args.guesses.push(Guess {
        option: name.to_owned(),
        took_word_at: next.map(|_| args.messages.len()),
    });
    let value = inline.or_else(|| next.map(|(value, _)| value.clone()));
    args.extension_flags.insert(key.to_owned(), value);
    Ok(next.map_or(rest, |(_, rest)| rest))
}

/// The error for an option that does not exist. `declared` are the options of loaded extensions, with dashes.
pub(crate) fn unknown_option(
    command: Option<Command>,
    option: &str,
    declared: &[String],
    has_extensions: bool,
) -> UsageError {
    if let Some(instead) = foreign::instead_of(option).filter(|_| command.is_none()) {
        return UsageError::UnknownOption {
            option: option.to_owned(),
            nearest: None,
            help: instead.into(),
        };
    }
    let general = SECTIONS.iter().flat_map(|(_, flags)| flags.iter());
    let own = command
        .and_then(commands::info)
        .map_or(&[][..], |info| info.flags);
    let names = own
        .iter()
        .chain(general)
        .flat_map(|flag| flag.names.iter().copied());
    // A short name is close to every other short name.
    let long = names.filter(|name| name.starts_with("--"));
    let declared = declared.iter().map(String::as_str);
    let bare = |name: &'static str| name.trim_start_matches('-');
    let known: Vec<&str> = long.map(bare).collect();
    let declared: Vec<&str> = declared.map(|name| name.trim_start_matches('-')).collect();
    let typed = option.trim_start_matches('-');
    let nearest = nearest(typed, known.iter().copied().chain(declared.iter().copied()));
    let help = match command {
        Some(command) => format!("Options: pinion {} --help", command.name()),
        None if has_extensions => {
            "No loaded extension declares it. Options: pinion --help; loaded extensions: pinion doctor"
                .to_owned()
        }
        None => "Options: pinion --help".to_owned(),
    };
    UsageError::UnknownOption {
        option: option.to_owned(),
        nearest: nearest.map(|name| format!("--{name}")),
        help: help.into(),
    }
}

/// Options that nothing can declare are errors before anything is loaded.
fn check_guesses(args: &Args) -> Result<(), UsageError> {
    let named = [&args.extensions, &args.hooks, &args.custom_tools];
    let can_load = !args.no_extensions || named.iter().any(|paths| !paths.is_empty());
    match args.guesses.first() {
        Some(guess) if !can_load || args.export.is_some() => {
            Err(unknown_option(None, &guess.option, &[], false))
        }
        _ => Ok(()),
    }
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
    // A word of `auth` or `mcp` may be a key by mistake, so an error text must not repeat it. These commands check
    // their words.
    if let Some(command) = args.command
        && !command.checks_words()
        && let Some(word) = superfluous(command, args)
    {
        return Err(UsageError::UnwantedWord {
            command: command.name(),
            word: word.clone(),
        });
    }
    let serves = matches!(args.mode, Some(Mode::Rpc | Mode::Web | Mode::Acp));
    if args.run.output_schema.is_some() && serves {
        let modes = "--mode rpc, web or acp; clients send outputSchema with the prompt";
        return Err(UsageError::Conflict("--output-schema", modes.to_owned()));
    }
    // As in oh-my-pi. Another mode, and the agent of another process, would ask although the caller counts on silence.
    if args.foreign.no_ui && (args.mode != Some(Mode::Rpc) || args.command.is_some()) {
        let others = "--attach or a mode other than --mode rpc";
        return Err(UsageError::Conflict("--no-ui", others.to_owned()));
    }
    if args.mode == Some(Mode::Rpc) && !args.files.is_empty() {
        return Err(UsageError::FilesInRpc);
    }
    Ok(())
}
