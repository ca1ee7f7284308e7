//! `pinion models update [--from URL|FILE]` and `pinion models status [--json]`: the list of known models, renewed or looked
//! at. What a list must be like is `models::snapshot`'s business.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use config::trust::Trust;
use files::Mode;
use jiff::Timestamp;
use llm::limits::MAX_DOCUMENT_BYTES;
use models::snapshot::{self, Built};
use models::{CATALOGUE_FILE, Catalogue, Header};
use serde_json::{Value, json};

use crate::args::Args;
use crate::environment::{Environment, complain, say, say_exactly};
use crate::progress::Progress;
use crate::setup;

use super::runtime;

/// Default source of model lists.
const SOURCE: &str = "https://models.dev/api.json";

/// How long a download may take before the terminal shows that it is running.
const SHOW_AFTER: Duration = Duration::from_secs(1);

/// Most files of a directory of lists.
const MAX_FILES: usize = 500;

/// Does what the word after `models` says.
pub(super) fn run(args: &Args, env: &Environment) -> anyhow::Result<ExitCode> {
    match args.messages.first().map(String::as_str) {
        Some("update") => update(args, env)?,
        Some("status") | None => status(args, env)?,
        Some(word) => bail!("Unknown command: models {word}. There are: models update, models status"),
    }
    Ok(ExitCode::SUCCESS)
}

fn update(args: &Args, env: &Environment) -> anyhow::Result<()> {
    let from = args.from.as_deref().unwrap_or(SOURCE);
    let built = make(args, env, from).with_context(|| {
        let (catalogue, _) = Catalogue::load(&env.agent_dir);
        let stays = match catalogue.header() {
            Some(header) => format!("the list of {} stays in use", header.day()),
            None => format!("the built-in list of {} stays in use", Header::built_in().day()),
        };
        format!("No new list of models from {}; {stays}", shown(from))
    })?;
    let path = env.agent_dir.join(CATALOGUE_FILE);
    write(&path, &built.text).with_context(|| format!("Could not write {}", path.display()))?;
    say(&format!(
        "{} models of {} providers are known now, {} of the providers from {}.",
        built.models,
        built.providers,
        built.renewed.len(),
        shown(from)
    ));
    if !built.kept.is_empty() {
        say(&format!("As built in: {}", built.kept.join(", ")));
    }
    Ok(())
}

fn make(args: &Args, env: &Environment, from: &str) -> anyhow::Result<Built> {
    let lists = if from.contains("://") {
        if args.offline || (env.is_offline() && args.from.is_none()) {
            bail!("--offline (or PI_OFFLINE) forbids asking the network");
        }
        let trust = Trust::new(&env.agent_dir, args.approve);
        let (settings, _) = setup::load_settings(args, env, &trust);
        let config = setup::client_config(args, env, &settings);
        let progress = Progress::after(SHOW_AFTER, format!("Downloading {}", shown(from)));
        let fetched = runtime()?.block_on(llm::fetch(config, from));
        drop(progress);
        vec![parse(&fetched.map_err(anyhow::Error::msg)?)?]
    } else {
        read(&env.path(from))?
    };
    Ok(snapshot::build(
        &lists,
        &shown(from),
        &Timestamp::now().to_string(),
    )?)
}

/// An address without what may be secret in it.
fn shown(from: &str) -> String {
    let Some((scheme, rest)) = from.split_once("://") else {
        return from.to_owned();
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}/{path}")
}

/// The list in a file, or those in a directory's `.json` files.
fn read(path: &Path) -> anyhow::Result<Vec<Value>> {
    if !path.is_dir() {
        return Ok(vec![read_one(path)?]);
    }
    let mut files: Vec<PathBuf> = fs::read_dir(path)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| file.extension().is_some_and(|ending| ending == "json"))
        .take(MAX_FILES)
        .collect();
    files.sort();
    files.iter().map(|file| read_one(file)).collect()
}

fn read_one(path: &Path) -> anyhow::Result<Value> {
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_DOCUMENT_BYTES as u64).read_to_end(&mut bytes)?;
    parse(&bytes).with_context(|| path.display().to_string())
}

fn parse(bytes: &[u8]) -> anyhow::Result<Value> {
    serde_json::from_slice(bytes).context("it is not JSON")
}

/// Writes the list in one step, with the directories that are missing.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    files::replace(path, text.as_bytes(), Mode::Set(0o600))
}

fn status(args: &Args, env: &Environment) -> anyhow::Result<()> {
    let path = env.agent_dir.join(CATALOGUE_FILE);
    let (catalogue, problem) = Catalogue::load(&env.agent_dir);
    let providers = catalogue.providers().iter();
    let models: usize = providers.map(|provider| provider.models().len()).sum();
    let (header, built_in) = (catalogue.header(), Header::built_in());
    let age = catalogue.list().age_days(Timestamp::now().as_millisecond());
    let outdated = header.is_none() && problem.is_none() && path.exists();
    if args.json {
        say_exactly(&serde_json::to_string(&json!({
            "inUse": if header.is_some() { "file" } else { "built-in" }, "file": path, "fileExists": path.exists(),
            "fileOutdated": outdated, "fileProblem": problem, "source": header.map(|header| &header.source),
            "fetched": header.map(|header| &header.fetched), "builtIn": built_in.day(),
            "builtInSource": built_in.source, "ageDays": age, "models": models,
            "providers": catalogue.providers().len(),
        }))?);
        return Ok(());
    }
    if let Some(problem) = problem {
        complain(&format!("Warning: {problem}"));
    }
    match header {
        Some(header) => say(&format!(
            "In use: {}\nFrom:   {}, {}",
            path.display(),
            header.source,
            header.day()
        )),
        None => say(&format!(
            "In use: the built-in list of {}\nFrom:   {}",
            built_in.day(),
            built_in.source
        )),
    }
    if let Some(days) = age {
        say(&format!("Age:    {days} days"));
    }
    if outdated {
        say(&format!(
            "{} is older than this program and not used.",
            path.display()
        ));
    }
    say(&format!(
        "Knows:  {models} models of {} providers",
        catalogue.providers().len()
    ));
    Ok(())
}
