//! The command `pinion-cluster`. `pinion sessions` and `pinion worker` start it with all settings as arguments; of the environment
//! it reads what the engines need.

#[cfg(feature = "nats")]
mod cli;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use cluster::FileStore;
use cluster::copy::{Copied, copy};
use store::{SessionDirectory, SessionId, SessionStore};

const HELP: &str = "\
pinion-cluster: sessions on several machines

Usage:
  pinion-cluster sessions push URL [ID...] --dir DIR [--flat]   Copy sessions from DIR to the store
  pinion-cluster sessions pull URL [ID...] --dir DIR [--flat]   Copy sessions from the store to DIR
  pinion-cluster sessions list URL                              Print the ids of the sessions in the store
  pinion-cluster worker --nats URL [options] [-- ARGS]          Run sessions until SIGTERM; ARGS go to pinion --mode rpc
  pinion-cluster attach nats://HOST/[PREFIX/]SESSION            Serve a client of a session on stdin and stdout
  pinion-cluster attach --each nats://HOST[/PREFIX]             Serve clients of all sessions; each line names its session

Without an ID, push and pull copy all sessions. --flat: session files are in DIR itself, not in one directory per working directory.

Options of worker:
  --max-sessions N      Sessions at a time, 1 to 4000 (default: 250)
  --name NAME           Name in leases (default: host name and process id)
  --state-dir DIR       Directory of the files of its sessions (default: a temporary one)
  --cwd DIR             Working directory of new sessions (default: the current one)
  --health ADDR:PORT    Answer GET /live, /ready and /metrics
  --lease-seconds S     Time until another worker takes over; set by the first worker (default: 10)
  --resume auto|wait    Continue runs of lost workers, or wait for a command (default: wait)
  --prepare FILE        Program that makes the working directory of a session before it opens
  --save FILE           Program that keeps the working directory of a session after each run
  --program FILE        The program pinion

Stores:
  nats://[USER:PASSWORD@]HOST[:PORT][/PREFIX][?replicas=N&creds=FILE]
  s3://BUCKET[/PREFIX][?endpoint=URL&region=NAME]               Keys: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    match start(&words) {
        Ok(code) => code,
        Err(error) => {
            complain(&format!("Error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn start(words: &[String]) -> Result<ExitCode> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] | ["--help" | "-h" | "help"] => {
            say(HELP.trim_end());
            Ok(ExitCode::SUCCESS)
        }
        ["--version"] => {
            say(concat!("pinion-cluster ", env!("CARGO_PKG_VERSION")));
            Ok(ExitCode::SUCCESS)
        }
        ["sessions", action, rest @ ..] => {
            let args = Args::parse(rest)?;
            runtime()?.block_on(sessions(action, args))
        }
        #[cfg(feature = "nats")]
        ["worker", rest @ ..] => runtime()?.block_on(cli::worker(rest)),
        #[cfg(feature = "nats")]
        ["attach", "--each", url] => runtime()?.block_on(cli::attach_many(url)),
        #[cfg(feature = "nats")]
        ["attach", url] => runtime()?.block_on(cli::attach(url)),
        #[cfg(feature = "nats")]
        ["gate", socket] => cli::gate(socket),
        #[cfg(not(feature = "nats"))]
        ["worker" | "attach" | "gate", ..] => {
            bail!("{}", cluster::without("NATS"))
        }
        [other, ..] => bail!("unknown command {other}. Run pinion-cluster --help"),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime cannot start")
}

/// What follows `sessions push`.
#[derive(Debug, Default)]
struct Args {
    url: String,
    ids: Vec<SessionId>,
    dir: Option<String>,
    is_flat: bool,
}

impl Args {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut args = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--dir" => args.dir = Some((*words.next().context("--dir needs a directory")?).to_owned()),
                "--flat" => args.is_flat = true,
                option if option.starts_with('-') => bail!("unknown option {option}"),
                url if args.url.is_empty() => url.clone_into(&mut args.url),
                id => args.ids.push(SessionId::new(id)?),
            }
        }
        if args.url.is_empty() {
            bail!("the URL of a store is missing, for example nats://127.0.0.1:4222");
        }
        Ok(args)
    }

    fn files(&self) -> Result<FileStore> {
        let dir = self
            .dir
            .as_ref()
            .context("--dir is missing: the directory of the session files")?;
        Ok(FileStore::new(SessionDirectory::new(dir.into(), self.is_flat)))
    }
}

async fn sessions(action: &str, args: Args) -> Result<ExitCode> {
    let aws: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with("AWS_"))
        .collect();
    if !matches!(action, "push" | "pull" | "list") {
        bail!("unknown command sessions {action}. Run pinion-cluster --help");
    }
    let store = cluster::open(&args.url, &aws).await?;
    match action {
        "push" => copy_all("pushed", &args.files()?, store.as_ref(), &args.ids).await,
        "pull" => copy_all("pulled", store.as_ref(), &args.files()?, &args.ids).await,
        _ => {
            for id in store.list().await? {
                say(id.as_str());
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Copies each session by itself: a failure does not keep the others.
async fn copy_all(
    done: &str,
    source: &dyn SessionStore,
    target: &dyn SessionStore,
    ids: &[SessionId],
) -> Result<ExitCode> {
    let all = if ids.is_empty() {
        source.list().await?
    } else {
        ids.to_vec()
    };
    let mut code = ExitCode::SUCCESS;
    for id in &all {
        match copy(source, target, id).await {
            Ok(copied) => say(&format!("{id}: {}", outcome(done, copied))),
            Err(error) => {
                complain(&format!("{id}: {error}"));
                code = ExitCode::FAILURE;
            }
        }
    }
    if all.is_empty() {
        say("no sessions");
    }
    Ok(code)
}

fn outcome(done: &str, copied: Copied) -> String {
    let Copied {
        added,
        position,
        is_ahead,
    } = copied;
    match (is_ahead, added) {
        (true, _) => format!("not {done}: the target is ahead, it has {position} lines"),
        (false, 0) => format!("unchanged, {position} lines"),
        (false, added) => format!("{done} {added} of {position} lines"),
    }
}

/// Prints a line to stdout. Fails silently when the reader is gone.
fn say(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

/// Prints a line to stderr.
fn complain(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}
