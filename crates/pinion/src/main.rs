//! The `pinion` command: arguments and environment in, one mode of operation out. Only this crate reads the environment,
//! and only this file ends the process.

mod args;
mod environment;
mod exit;
mod generate;
mod limits;
mod logs;
mod modes;
mod run_command;
mod sandbox;
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
    // The reaper's helper process is this same program; it must do nothing else (tools::reaper).
    #[cfg(target_os = "linux")]
    if words.first().is_some_and(|word| word == "__guardian") {
        return tools::guardian::main();
    }
    // So is the program that confines a command and becomes it (tools::sandbox); its words are no text.
    #[cfg(target_os = "linux")]
    if words
        .first()
        .is_some_and(|word| word == tools::sandbox::SANDBOX_ARG)
    {
        let words = std::env::args_os().skip(2).collect();
        return tools::sandbox::launcher::main(words, std::env::current_dir(), environment::say);
    }
    match start(&words) {
        Ok(code) => code,
        Err(error) => {
            environment::complain(&format!("Error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn start(words: &[String]) -> anyhow::Result<ExitCode> {
    let version = version::line(std::env::args_os().next().as_deref());
    if let Some(text) = generate::text(words, &version)? {
        environment::say(text.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let args = args::parse(words)?;
    for warning in &args.warnings {
        environment::complain(&format!("Warning: {warning}"));
    }
    if args.help {
        environment::say(&args::help("pinion"));
        return Ok(ExitCode::SUCCESS);
    }
    if args.version {
        environment::say(&version);
        return Ok(ExitCode::SUCCESS);
    }
    modes::run(args, &Environment::read()?)
}
