//! `cargo run -p xtask -- <chore>`: picks a chore. The library of this package implements the chores.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use xtask::args::Args;
use xtask::out::{complain, say};
use xtask::{
    abort, bench, book, breaking, cluster, examples, first_hour, fuzz, kill9, models, package, protocol,
    soak, startup, tidy, torn,
};

const USAGE: &str = "\
Usage: cargo run -p xtask -- <chore>

  gen [--check]                                   write schema, types and reference pages, or see that they are up to date
  book [--agent PATH]                             check links and code blocks of all pages; with an agent also run `sh,run` blocks
  breaking [--against TAG|FILE]                   see whether clients of the last release would break
  examples --agent PATH [--check]                 record protocol/examples from an agent, or see that it is up to date
  tidy                                            see that the house rules are kept
  fuzz-lines --agent PATH [--count N] [--seed S] [--acp]  drive an agent with broken and odd lines
  kill9 --agent PATH [--rounds N] [--seed S]      kill an agent at random moments and see what is left
  kill9 --agent PATH --every-write                kill it at each write to its session file (needs strace)
  abort --agent PATH [--rounds N] [--seed S] [--only MOMENT] [--untimed]
                                                  abort runs at random moments; with --untimed times are not judged
  torn --agent PATH [--flips N] [--step N] [--seed S] [--keep FOLDER]
                                                  open session files that were cut or have wrong bytes
  bench --agent PATH [--only NAME] [--json FILE] [--peer NAME=COMMAND] [--strict]
                                                  measure start-up, streaming, tools, sessions, floods (build with --release)
  instructions [--agent PATH] [--only NAME] [--runs N]  count instructions of fixed work; fails when a count grew (needs valgrind)
  instructions --write REASON                     store the counts in bench/instructions.json with the reason for the change
  cluster [--agent PATH] [--release] [--sessions N] [--minutes M] [--figures] [OPTION VALUE...]
                                                  run sessions on workers and NATS servers that are killed and stopped, and check
                                                  histories; with --figures measure instead. Other options: example faults of pinion-cluster
  cluster --engines                               install the engines from PyPI and print their directory
  soak --agent PATH [--prompts N] [--seed S] [--plot FILE.svg]
                                                  many prompts in one process; fails when it holds more at the end than at the start
  package --agent PATH --out DIR [--static-agent PATH] [--target TRIPLE] [--signing-key FILE] [--ca-bundle FILE] [KIND...]
                                                  write the files of a release (packaging/README.md)
  first-hour [--repository URL] [--packages] [--write] [--profile NAME] [--keep DIR] [--max-wall S] [--max-cpu S]
                                                  clone, run the README's first command, report time and disk
  startup --agent PATH                            measure the memory of a start; fails above the limits
  startup --write [PROFILE...]                    record the order of functions again (needs valgrind)
  models [--version V] [--from DIR]               make the catalogue of crates/models from npm's pi-ai, or from an unpacked one
  models --max-age DAYS                           fail when the catalogue is older; a release allows 30
";

fn main() -> ExitCode {
    match run(Args::new(std::env::args().skip(1))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Runs a chore; false when it found something wrong.
fn run(mut args: Args) -> Result<bool> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("xtask lies in no workspace")?;
    match args.next().as_deref() {
        Some("gen") => protocol::run(root, args.flag("--check")),
        Some("book") => {
            let agent: Option<std::path::PathBuf> = args.option("--agent")?;
            book::run(root, agent.as_deref())
        }
        Some("breaking") => breaking::run(root, args.option::<String>("--against")?.as_deref()),
        Some("examples") => {
            let agent: std::path::PathBuf = args.required("--agent")?;
            examples::run(root, &agent, args.flag("--check"))
        }
        Some("tidy") => tidy::run(root),
        Some("fuzz-lines") => fuzz::run(&fuzz::Options::parse(&mut args)?),
        Some("kill9") => kill9::run(&kill9::Options::parse(&mut args)?),
        Some("abort") => abort::run(&abort::Options::parse(&mut args)?),
        Some("torn") => torn::run(&torn::Options::parse(&mut args)?),
        Some("bench") => bench::run(&bench::Options::parse(&mut args)?),
        Some("instructions") => {
            bench::instructions::run(root, &bench::instructions::CountOptions::parse(&mut args, root)?)
        }
        Some("package") => package::run(root, &package::Options::parse(&mut args)?),
        Some("soak") => soak::run(&soak::Options::parse(&mut args)?),
        Some("cluster") => cluster::run(root, &cluster::Options::parse(&mut args)?),
        Some("startup") => startup::run(root, &startup::Options::parse(&mut args)?),
        Some("first-hour") => first_hour::run(root, &first_hour::Options::parse(&mut args)?),
        Some("empty") => {
            // What `bench` compares the agent's start with: a program that only prints a line.
            say("");
            Ok(true)
        }
        Some("print") => {
            // What background processes run in `bench`.
            bench::print(args.next().context("print needs a rate")?.parse()?)?;
            Ok(true)
        }
        Some("models") => {
            let data = root.join("crates/models/data");
            if let Some(days) = args.option("--max-age")? {
                return models::is_fresh(&data, days);
            }
            let from: Option<std::path::PathBuf> = args.option("--from")?;
            let version: Option<String> = args.option("--version")?;
            let package = models::Package::open(from, version.as_deref())?;
            say(&models::run(package.path(), &data)?);
            models::write_adaptive(&data, &root.join("crates/llm/data"))?;
            Ok(true)
        }
        Some("help" | "--help") => {
            say(USAGE);
            Ok(true)
        }
        Some(other) => bail!("there is no chore called {other}\n\n{USAGE}"),
        None => bail!("no chore given\n\n{USAGE}"),
    }
}
