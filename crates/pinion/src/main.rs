//! The `pinion` command: arguments and environment in, one mode of operation out. Only this crate reads the environment,
//! and only this file ends the process.

mod args;
mod environment;
mod exit;
mod generate;
mod input_record;
mod limits;
mod logs;
mod modes;
mod preflight;
mod progress;
mod resources;
mod run_command;
mod sandbox;
mod session_options;
mod sessions;
mod setup;
mod signals;
mod version;

use std::process::ExitCode;

use environment::Environment;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    // The reaper's helper process is this same program; it must do nothing else (process::Reaper).
    #[cfg(target_os = "linux")]
    if words.first().is_some_and(|word| word == "__guardian") {
        return process::guardian::main(words.get(1).and_then(|level| level.parse().ok()));
    }
    // So is the program that confines a command and becomes it (process::sandbox); its words are no text.
    #[cfg(target_os = "linux")]
    if words
        .first()
        .is_some_and(|word| word == process::sandbox::SANDBOX_ARG)
    {
        let words = std::env::args_os().skip(2).collect();
        return process::sandbox::launcher::main(words, std::env::current_dir(), environment::say);
    }
    environment::forbid_inspection();
    match start(words) {
        // A script must not take a part of the output for all of it.
        Ok(_) if environment::has_lost_output() => ExitCode::FAILURE,
        Ok(code) => code,
        Err(error) => {
            environment::complain(&format!("Error: {error:#}"));
            match error.downcast_ref::<args::UsageError>() {
                Some(usage) => ExitCode::from(usage.exit_code()),
                None => ExitCode::FAILURE,
            }
        }
    }
}

fn start(words: Vec<String>) -> anyhow::Result<ExitCode> {
    let started_as = std::env::args_os().next();
    let program = version::program(started_as.as_deref());
    let mut args = args::parse(&program, &words)?;
    for warning in &args.warnings {
        environment::complain(&format!("Warning: {warning}"));
    }
    if args.help {
        let text = match args.command {
            Some(command) => args::help_of("pinion", command),
            None => args::help("pinion"),
        };
        environment::say(&text);
        return Ok(ExitCode::SUCCESS);
    }
    if args.version {
        environment::say(&version::line(started_as.as_deref()));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(text) = generate::text(&args, &version::line(started_as.as_deref()))? {
        environment::say_exactly(text.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let env = Environment::read(args.foreign.cwd.as_deref())?;
    if words.is_empty() && environment::is_interactive() {
        match modes::welcome(&env)? {
            Some(choice) => args = choice,
            None => return Ok(ExitCode::SUCCESS),
        }
    }
    modes::run(args, &env)
}
