//! `--mode web --nats URL`: the web server with sessions of workers in place of sessions of this process. The program `pinion-cluster`
//! has the connection to NATS; lines go to it and come from it through pipes.

use std::io::Write as _;
use std::process::{ExitCode, Stdio};

use anyhow::{Context as _, bail};
use config::trust::Trust;
use store::SessionId;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use web::{Link, Web};

use crate::args::{Args, Mode};
use crate::environment::{Environment, complain};
use crate::limits::GATEWAY_LINES;
use crate::signals::Signals;
use crate::{exit, setup, version};

use super::web::{banner, encoded, ended, explain, options, stop, url};
use super::{cluster, runtime};

/// Runs it until a signal comes, or the connection to NATS has failed at the start.
pub(super) fn run(args: &Args, env: &Environment) -> anyhow::Result<ExitCode> {
    let nats = match (args.mode, args.messages.as_slice()) {
        (Some(Mode::Web), [url]) if args.files.is_empty() => url,
        (Some(Mode::Web), _) => bail!("--nats takes one URL and no messages"),
        _ => bail!("--nats needs --mode web. One session as lines: --mode rpc --attach URL/SESSION"),
    };
    if args.open {
        bail!("--open cannot be combined with --nats: each session has a page of its own, at /SESSION/");
    }
    let trust = Trust::new(&env.agent_dir, args.approve);
    let (settings, notes) = setup::load_settings(args, env, &trust);
    for note in &notes {
        complain(&format!("Warning: {note}"));
    }
    let options = options(args, env, &settings, version::OWN)?;
    let program = cluster::program(env)?;
    let runtime = runtime()?;
    let code = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let mut child = Command::new(&program)
            .args(["attach", "--each", nats.as_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        let link = connect(&mut child)?;
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

/// Carries lines between the program and the web server. A full queue makes the sender wait.
fn connect(child: &mut Child) -> anyhow::Result<Link> {
    let stdin = child.stdin.take().context("the gateway has no stdin")?;
    let stdout = child.stdout.take().context("the gateway has no stdout")?;
    let (commands, outgoing) = mpsc::channel(GATEWAY_LINES);
    let (incoming, lines) = mpsc::channel(GATEWAY_LINES);
    tokio::spawn(write(stdin, outgoing));
    tokio::spawn(read(stdout, incoming));
    Ok(Link {
        commands,
        lines,
        session: |name| SessionId::decode(name).map(|session| session.as_str().to_owned()),
    })
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
