//! `--mode web --nats URL` and `--mode acp --nats URL`: the web server, or an editor's connection, with sessions of workers in place of
//! sessions of this process. The program `pinion-cluster` has the connection to NATS; lines go to it and come from it through pipes.

use std::io::Write as _;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;

use acp::{Accounts, ClientPort, Host, LoggingOut, Provider};
use anyhow::{Context as _, bail};
use config::trust::Trust;
use serve::Sink;
use store::SessionId;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use web::Web;

use crate::args::{Args, Mode};
use crate::environment::{Environment, complain};
use crate::limits::GATEWAY_LINES;
use crate::signals::Signals;
use crate::{exit, setup, version};

use super::web::{banner, encoded, ended, explain, options, stop, url};
use super::{cluster, runtime};

/// Runs it until a signal comes, the client of ACP is gone, or the connection to NATS has failed at the start.
pub(super) fn run(args: &Args, env: &Environment) -> anyhow::Result<ExitCode> {
    let nats = match (args.mode, args.messages.as_slice()) {
        (Some(Mode::Web | Mode::Acp), [url]) if args.files.is_empty() => url,
        (Some(Mode::Web | Mode::Acp), _) => bail!("--nats takes one URL and no messages"),
        _ => bail!(
            "--nats needs --mode web or --mode acp. One session as lines: --mode rpc --attach URL/SESSION"
        ),
    };
    if args.open {
        bail!("--open cannot be combined with --nats: each session has a page of its own, at /SESSION/");
    }
    let mut command = Command::new(cluster::program(env)?);
    command
        .args(["attach", "--each", nats.as_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    if args.mode == Some(Mode::Acp) {
        serve_editor(command)
    } else {
        serve_web(args, env, command)
    }
}

fn serve_web(args: &Args, env: &Environment, program: Command) -> anyhow::Result<ExitCode> {
    let trust = Trust::new(&env.agent_dir, args.approve);
    let (settings, notes) = setup::load_settings(args, env, &trust);
    for note in &notes {
        complain(&format!("Warning: {note}"));
    }
    let options = options(args, env, &settings, version::OWN)?;
    let runtime = runtime()?;
    let code = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let mut child = start(program)?;
        let (commands, lines) = connect(&mut child)?;
        let session = |name: &str| SessionId::decode(name).map(|session| session.as_str().to_owned());
        let link = web::Link {
            commands,
            lines,
            session,
        };
        let web = Web::open_gateway(options.clone(), link).map_err(|error| explain(&error))?;
        let url = url(&options, web.address());
        let token = options.token.as_deref();
        let query = token
            .map(|token| format!("?token={}", encoded(token)))
            .unwrap_or_default();
        // The parent process may have closed stdout; the server still listens.
        let banner = banner(&options, &format!("{url}/SESSION"), &format!("/{query}"));
        let _unseen = std::io::stdout().write_all(banner.as_bytes());
        let code = tokio::select! {
            code = stop(&mut signals) => code,
            () = web.ended() => exit::FAILURE,
        };
        web.drain();
        web.close().await;
        anyhow::Ok(ended(code))
    })?;
    runtime.shutdown_background();
    Ok(code)
}

fn serve_editor(program: Command) -> anyhow::Result<ExitCode> {
    let stdout = serve::take_stdout()?;
    let runtime = runtime()?;
    let code = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let (input, sink) = (serve::stdio::open_stdin()?, Sink::open(stdout)?);
        let mut child = start(program)?;
        let (commands, lines) = connect(&mut child)?;
        let link = acp::Link {
            commands,
            lines,
            is_session: |name| SessionId::new(name).is_ok(),
        };
        let host = Host {
            version: version::OWN.to_owned(),
            accounts: Arc::new(NoLogins),
            port: ClientPort::default(),
            is_gateway: true,
        };
        let served = tokio::select! {
            served = acp::run_gateway(input, link, sink, host) => served,
            code = signals.next() => return anyhow::Ok(ExitCode::from(code)),
        };
        if let Err(error) = served {
            complain(&format!("stdout: {error}"));
            return Ok(ExitCode::FAILURE);
        }
        // It has ended: by itself if it failed, or because no command can follow.
        let status = child.wait().await?;
        Ok(if status.success() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    })?;
    runtime.shutdown_background();
    Ok(code)
}

/// Workers have the credentials.
struct NoLogins;

impl Accounts for NoLogins {
    fn providers(&self) -> Vec<Provider> {
        Vec::new()
    }

    fn needs_login(&self, _error: &str) -> bool {
        false
    }

    fn terminal_args(&self, _provider: &str) -> Vec<String> {
        Vec::new()
    }

    fn open_page(&self, url: &str) -> Result<(), String> {
        Err(format!("{url} belongs to a login on a worker"))
    }

    fn log_out(&self) -> LoggingOut {
        Box::pin(async { Err("Log out where the workers run".to_owned()) })
    }
}

fn start(mut program: Command) -> anyhow::Result<Child> {
    let name = program.as_std().get_program().to_string_lossy().into_owned();
    program
        .spawn()
        .with_context(|| format!("{name} cannot be started"))
}

/// Carries lines between the program and the server. A full queue makes the sender wait.
fn connect(child: &mut Child) -> anyhow::Result<(mpsc::Sender<String>, mpsc::Receiver<String>)> {
    let stdin = child.stdin.take().context("the gateway has no stdin")?;
    let stdout = child.stdout.take().context("the gateway has no stdout")?;
    let (commands, outgoing) = mpsc::channel(GATEWAY_LINES);
    let (incoming, lines) = mpsc::channel(GATEWAY_LINES);
    tokio::spawn(write(stdin, outgoing));
    tokio::spawn(read(stdout, incoming));
    Ok((commands, lines))
}

async fn write(mut stdin: ChildStdin, mut commands: mpsc::Receiver<String>) {
    while let Some(mut line) = commands.recv().await {
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stdout: ChildStdout, sender: mpsc::Sender<String>) {
    let mut lines = BufReader::with_capacity(64 << 10, stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if sender.send(line).await.is_err() {
            return;
        }
    }
}
