//! The arguments of `pinion-cluster worker` and `pinion-cluster attach`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use cluster::address::{Address, NatsAddress};
use cluster::gateway::{self, GatewayOptions, Input, Output};
use cluster::limits::{LEASE_SECONDS, MOST_WORKER_SESSIONS, WORKER_SESSIONS};
use cluster::worker::{self, StateDir, WorkerOptions, WorkspaceHooks};
use store::SessionId;

fn nats(url: &str) -> Result<NatsAddress> {
    match Address::parse(url)? {
        Address::Nats(address) => Ok(address),
        Address::S3(_) => bail!("workers need NATS; an address of S3 has no commands and events"),
    }
}

/// Reads the options of a worker. `host` is the name of the machine, if it is known.
pub(crate) fn worker_options(words: &[&str], host: Option<&str>) -> Result<WorkerOptions> {
    let (mut url, mut name, mut health, mut program) = (None, None, None, None);
    let (mut state, mut cwd, mut resumes) = (None, None, false);
    let (mut sessions, mut lease) = (WORKER_SESSIONS, LEASE_SECONDS);
    let here = std::env::current_dir().context("the working directory cannot be read")?;
    let mut workspace = WorkspaceHooks::default();
    let mut args = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match *word {
            "--nats" => url = Some(*value()?),
            "--name" => name = Some(*value()?),
            "--health" => health = Some((*value()?).to_owned()),
            "--program" => program = Some(PathBuf::from(value()?)),
            "--state-dir" => state = Some(PathBuf::from(value()?)),
            "--resume" => match *value()? {
                "auto" => resumes = true,
                "wait" => resumes = false,
                _ => bail!("--resume must be auto or wait"),
            },
            "--prepare" => workspace.prepare = Some(here.join(value()?)),
            "--save" => workspace.save = Some(here.join(value()?)),
            "--cwd" => cwd = Some(PathBuf::from(value()?)),
            "--max-sessions" => {
                let number = value()?
                    .parse()
                    .ok()
                    .filter(|number| (1..=MOST_WORKER_SESSIONS).contains(number));
                sessions =
                    number.with_context(|| format!("--max-sessions must be 1 to {MOST_WORKER_SESSIONS}"))?;
            }
            "--lease-seconds" => {
                let number = value()?.parse().ok().filter(|number| (1..=600).contains(number));
                lease = number.context("--lease-seconds must be 1 to 600")?;
            }
            "--" => {
                args = words.by_ref().map(|word| (*word).to_owned()).collect();
                let names_dialect = |arg: &String| arg.split('=').next() == Some("--rpc-dialect");
                if args.iter().any(names_dialect) {
                    bail!("--rpc-dialect is not available: agents of workers speak the dialect pi");
                }
            }
            other => bail!("unknown option {other} of worker"),
        }
    }
    let name = match name {
        Some(name) => name.to_owned(),
        None => format!("{}-{}", host.unwrap_or("worker"), std::process::id()),
    };
    let state_dir = match state {
        Some(dir) => StateDir::At(here.join(dir)),
        None => StateDir::NewIn(std::env::temp_dir()),
    };
    Ok(WorkerOptions {
        address: nats(url.context("--nats URL is missing, for example --nats nats://127.0.0.1:4222")?)?,
        name,
        sessions,
        state_dir,
        cwd: cwd.map_or_else(|| here.clone(), |dir| here.join(dir)),
        health,
        resumes,
        workspace,
        lease: Duration::from_secs(lease),
        program: program.unwrap_or_else(|| PathBuf::from("pinion")),
        own: std::env::current_exe().context("the path of this program is unknown")?,
        args,
    })
}

/// Reads `nats://HOST[/PREFIX]/SESSION[?client=NAME&...]`.
pub(crate) fn gateway_options(url: &str) -> Result<GatewayOptions> {
    // Without the address, which may have a password.
    let wrong = || "the address of a session must be nats://HOST/PREFIX/SESSION or nats://HOST/SESSION";
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let (scheme, rest) = base.split_once("://").with_context(wrong)?;
    let (server, session) = rest.rsplit_once('/').with_context(wrong)?;
    let (client, others) = client_name(query);
    let session = SessionId::decode(session).with_context(wrong)?;
    let server = format!("{scheme}://{server}?{others}");
    Ok(GatewayOptions {
        address: nats(&server)?,
        session,
        client,
    })
}

/// Takes the option `client` out of the options of an address.
fn client_name(query: &str) -> (Option<String>, String) {
    let (mut client, mut others) = (None, Vec::new());
    for option in query.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("client", name)) => client = Some(name.to_owned()),
            _ => others.push(option),
        }
    }
    (client, others.join("&"))
}

/// Runs `worker`.
pub(crate) async fn worker(words: &[&str]) -> Result<ExitCode> {
    let host = std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
    let options = worker_options(words, host.as_deref())?;
    worker::run(options, |line| drop(writeln!(std::io::stderr(), "{line}"))).await?;
    Ok(ExitCode::SUCCESS)
}

/// Runs `gate`, which agents of workers start.
pub(crate) fn gate(socket: &str) -> Result<ExitCode> {
    worker::extension(socket.as_ref(), std::io::stdin(), std::io::stdout())?;
    Ok(ExitCode::SUCCESS)
}

/// Runs `attach`.
pub(crate) async fn attach(url: &str) -> Result<ExitCode> {
    let options = gateway_options(url)?;
    let (input, output) = (Input::spawn(std::io::stdin()), Output::spawn(std::io::stdout()));
    gateway::attach(options, input, output).await?;
    Ok(ExitCode::SUCCESS)
}

/// Runs `attach --each`.
pub(crate) async fn attach_many(url: &str) -> Result<ExitCode> {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let (client, others) = client_name(query);
    let address = nats(&format!("{base}?{others}"))?;
    let (input, output) = (Input::spawn(std::io::stdin()), Output::spawn(std::io::stdout()));
    gateway::attach_many(address, client, input, output).await?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::{StateDir, gateway_options, worker_options};

    #[test]
    fn attach_address_ends_with_the_session() {
        let options = gateway_options("nats://u:p@h:1/team/chat-7?client=web&replicas=3").unwrap();
        assert_eq!(
            (options.address.prefix.as_str(), options.session.as_str()),
            ("team", "chat-7")
        );
        assert_eq!(
            (options.client.as_deref(), options.address.replicas),
            (Some("web"), 3)
        );
        assert_eq!(gateway_options("nats://h/s").unwrap().address.prefix, "pinion");
        for url in ["nats://u:secret@h", "nats://u:secret@h/a=b"] {
            let error = format!("{:#}", gateway_options(url).unwrap_err());
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn worker_arguments_after_dashes_go_to_agent() {
        let words = [
            "--nats",
            "nats://h",
            "--max-sessions",
            "3",
            "--",
            "--model",
            "offline/echo",
        ];
        let options = worker_options(&words, Some("host")).unwrap();
        assert_eq!((options.sessions, options.args.len()), (3, 2));
        assert!(options.name.starts_with("host-"));
        assert_eq!(options.state_dir, StateDir::NewIn(std::env::temp_dir()));
        assert!(worker_options(&["--nats", "nats://h", "--lease-seconds", "0"], None).is_err());
        // The agent would refuse some of so many sessions.
        assert!(worker_options(&["--nats", "nats://h", "--max-sessions", "5000"], None).is_err());
        assert!(worker_options(&[], None).is_err());
        for dialect in [&["--rpc-dialect", "pi-delta"][..], &["--rpc-dialect=omp-now"]] {
            let words = [&["--nats", "nats://h", "--"][..], dialect].concat();
            let error = worker_options(&words, None).unwrap_err().to_string();
            assert!(error.starts_with("--rpc-dialect is not available"), "{error}");
        }
    }
}
