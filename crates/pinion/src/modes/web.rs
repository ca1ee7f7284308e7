//! `--mode web`: the protocol on a WebSocket and over plain HTTP, and a page on top, until a signal comes.

use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use config::settings::Settings;
use rustix::process::{Resource, getrlimit, setrlimit};
use session::{Eviction, SessionManager};
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio::time::timeout;
use uuid::Uuid;
use web::limits::{WEB_CLOSE_WAIT, WEB_CONNECTIONS};
use web::{Web, WebOptions};

use crate::args::Args;
use crate::environment::{Environment, WEB_TOKEN, complain};
use crate::exit;
use crate::limits::{DRAIN, FEWEST_CONNECTIONS, FILES_OF_OUR_OWN};
use crate::setup::Setup;
use crate::signals::Signals;

use super::browse::browse;
use super::{eviction, finish_logins, open, runtime};

/// Where it listens when nothing was said (web.md 1.1).
const HOST: &str = "127.0.0.1";
/// See [`HOST`].
const PORT: u16 = 4781;

/// Defaults of a web server: browsers open sessions and never close them, so idle ones must be evicted.
const KEPT: Eviction = Eviction {
    most: 32,
    idle: Some(Duration::from_secs(30 * 60)),
};

/// Runs it to its end.
pub(crate) fn run(
    mut args: Args,
    env: &Environment,
    setup: &Setup,
    mut stdout: File,
) -> anyhow::Result<ExitCode> {
    let options = options(&args, env, &setup.agent.settings, &setup.agent.version)?;
    let runtime = runtime()?;
    // One thread carries all sessions; the web server has its own.
    let sessions = LocalSet::new();
    let code = sessions.block_on(&runtime, async {
        let (session, outbox, outgoing) = open(&mut args, env, setup).await?;
        outbox.render_all();
        // Before anybody can know that it is there.
        let mut signals = Signals::listen()?;
        let (lanes, joining) = mpsc::channel(session::limits::JOINING);
        let (slot, requests) = session::request_queue();
        let web = Web::open(options.clone(), outgoing, joining, slot).map_err(|error| explain(&error))?;
        let url = url(&options, web.address());
        let token = options.token.as_deref();
        let query = token
            .map(|token| format!("/?token={}", encoded(token)))
            .unwrap_or_default();
        // The parent process may have closed stdout; the server still listens.
        let _unseen = stdout.write_all(banner(&options, &url, &query).as_bytes());
        if args.open
            && let Err(error) = browse(&format!("{url}{query}"))
        {
            complain(&format!("{error:#}"));
        }
        let last = outbox.clone();
        let manager = SessionManager::new(session, outbox, lanes, setup.agent_for());
        let mut running = pin!(manager.eviction(eviction(&args, setup, KEPT)).run(requests));
        let code = tokio::select! {
            () = &mut running => exit::SUCCESS,
            code = stop(&mut signals) => {
                // Runs are ended and say so, extensions hear of it, and only then everybody is sent away.
                web.drain();
                tokio::select! {
                    _all_ended = timeout(DRAIN, running) => {}
                    _impatient = stop(&mut signals) => {}
                }
                code
            }
            () = web.ended() => exit::FAILURE,
        };
        setup.agent.reaper.shutdown().await;
        let _all_told = timeout(WEB_CLOSE_WAIT, last.flush()).await;
        drop(last);
        web.close().await;
        anyhow::Ok(ended(code))
    });
    finish_logins(&runtime, setup);
    let code = code?;
    runtime.shutdown_background();
    Ok(code)
}

/// Adds what to do when the port is taken.
pub(super) fn explain(error: &impl std::fmt::Display) -> anyhow::Error {
    let text = error.to_string();
    if !text.contains("Address already in use") {
        return anyhow::Error::msg(text);
    }
    anyhow::anyhow!(
        "{text}. Another program, perhaps another Pinion, uses this port. Choose another port with --port N, or a free one with \
         --port 0"
    )
}

/// The exit code of a server. SIGTERM is the way to stop one, and no failure.
pub(super) fn ended(code: u8) -> ExitCode {
    ExitCode::from(if code == exit::TERMINATED {
        exit::SUCCESS
    } else {
        code
    })
}

/// Waits for a signal that ends it; Ctrl-C is one, for there is a person at the terminal.
pub(super) async fn stop(signals: &mut Signals) -> u8 {
    tokio::select! {
        code = signals.next() => code,
        _ = tokio::signal::ctrl_c() => exit::INTERRUPTED,
    }
}

/// How many connections there may be, when files are scarce. The system is asked for as many as it takes.
fn connections() -> Option<usize> {
    let wanted = u64::try_from(WEB_CONNECTIONS + FILES_OF_OUR_OWN).ok()?;
    let mut limits = getrlimit(Resource::Nofile);
    let has = limits.current?;
    if has < wanted {
        limits.current = Some(limits.maximum.map_or(wanted, |most| most.min(wanted)));
        // Then it stays as it is.
        let _refused = setrlimit(Resource::Nofile, limits);
    }
    let has = usize::try_from(getrlimit(Resource::Nofile).current?).ok()?;
    let fit = has.saturating_sub(FILES_OF_OUR_OWN).max(FEWEST_CONNECTIONS);
    (fit < WEB_CONNECTIONS).then_some(fit)
}

pub(super) fn options(
    args: &Args,
    env: &Environment,
    settings: &Settings,
    version: &str,
) -> anyhow::Result<WebOptions> {
    let token = match (&args.web_token, env.get(WEB_TOKEN)) {
        (Some(Some(token)), _) if token.is_empty() => bail!("--web-token must not be empty"),
        (Some(Some(token)), _) => Some(token.clone()),
        (_, Some(token)) if token.trim().is_empty() => bail!("{WEB_TOKEN} must not be empty"),
        (_, Some(token)) => Some(token.trim().to_owned()),
        (Some(None), None) => Some(new_token()),
        (None, None) if args.open => Some(new_token()),
        (None, None) => None,
    };
    let ui = args.serve_ui.as_ref().map(|dir| env.cwd.join(dir));
    let tls = match (&args.web_cert, &args.web_key) {
        (Some(chain), Some(key)) => Some((env.cwd.join(chain), env.cwd.join(key))),
        (None, None) => None,
        _ => bail!("--web-cert and --web-key belong together"),
    };
    Ok(WebOptions {
        host: args.host.clone().unwrap_or_else(|| HOST.to_owned()),
        port: args.port.unwrap_or(PORT),
        token,
        origins: args.web_origins.clone(),
        ui,
        tls,
        insecure: args.web_insecure,
        connections: connections(),
        memory: settings.capacity.web_memory_mib.map(bytes_of_mib),
        version: version.to_owned(),
    })
}

fn bytes_of_mib(mib: u64) -> usize {
    usize::try_from(mib.saturating_mul(1 << 20)).unwrap_or(usize::MAX)
}

/// Returns a token with 244 random bits.
fn new_token() -> String {
    let (one, other) = (Uuid::new_v4(), Uuid::new_v4());
    format!("{}{}", one.simple(), other.simple())
}

/// The address of the page. A wildcard is shown as a name that works here.
pub(super) fn url(options: &WebOptions, bound: SocketAddr) -> String {
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let host = match options.host.as_str() {
        _ if bound.ip().is_unspecified() => "localhost".to_owned(),
        host if host.contains(':') && !host.starts_with('[') => format!("[{host}]"),
        host => host.to_owned(),
    };
    format!("{scheme}://{host}:{}", bound.port())
}

pub(super) fn banner(options: &WebOptions, url: &str, query: &str) -> String {
    let (socket, version) = (url.replacen("http", "ws", 1), &options.version);
    let page = options.ui.as_ref().map_or_else(
        || "built in".to_owned(),
        |dir: &PathBuf| dir.display().to_string(),
    );
    let mut text = format!(
        "Pinion {version}, web\n  UI:        {url}{query}\n  WebSocket: {socket}/ws\n  Static UI: {page}\n"
    );
    if let Some(token) = &options.token {
        text.push_str(&format!("  Token:     {token}\n"));
    }
    text
}

/// A value of a query.
pub(super) fn encoded(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    value
        .bytes()
        .map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
