//! `pinion install|remove|list|update`: packages in pi's directories and settings (pi 1.5, packages docs), so that both programs
//! see the same ones. Here: what each command does and says. Packages that only `-e` names are in `named`. Loading packages is
//! `config::resources`' business.

mod git;
mod limits;
mod list;
mod lock;
mod named;
mod npm;
mod place;
mod programs;
mod staging;
mod update;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use config::resources::PackageSource;
use config::settings::Settings;
use config::settings::edit::PackageEdit;
use config::trust::{ProjectAccess, Trust};
use config::{Scope, resolve_path};
use models::local::LocalSources;
use process::{GuardianLaunch, Reaper};
use tokio_util::sync::CancellationToken;

use crate::args::{Args, Command};
use crate::environment::{Environment, complain, say};
use crate::modes::runtime;
use crate::signals::Signals;
use crate::{exit, run_command, setup};
pub(super) use named::install_named;
use npm::Npm;
use place::{Entry, Place};
use programs::{Cancelled, Programs};
use staging::Staged;

/// What the commands work with.
struct Context<'a> {
    args: &'a Args,
    env: &'a Environment,
    settings: Settings,
    programs: Programs,
    npm: Npm,
}

/// Carries out one of the commands.
pub(super) fn run(command: Command, args: &Args, env: &Environment) -> anyhow::Result<ExitCode> {
    let trust = Trust::new(&env.agent_dir, args.approve);
    let (settings, notes) = setup::load_settings(args, env, &trust);
    for note in &notes {
        complain(&format!("Warning: {note}"));
    }
    if let Some(file) = args.files.first() {
        bail!("Unexpected argument @{file}.");
    }
    if command == Command::List {
        no_more(&args.messages)?;
        let project = Place::trusted_project(env, &settings);
        let places: Vec<Place> = [Place::user(env)].into_iter().chain(project).collect();
        list::run(&places, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let cancel = CancellationToken::new();
        let context = Context::new(args, env, settings, cancel.clone())?;
        let mut signals = Signals::listen()?;
        let mut work = Box::pin(context.carry_out(command));
        let (done, code) = tokio::select! {
            done = &mut work => (done, exit::FAILURE),
            code = signals.next() => (cancelled(&cancel, work).await, code),
            _ = tokio::signal::ctrl_c() => (cancelled(&cancel, work).await, exit::INTERRUPTED),
        };
        context.programs.reaper.shutdown().await;
        done.map(|()| None)
            .or_else(|error| match error.is::<Cancelled>() {
                true => Ok(Some(code)),
                false => Err(error),
            })
    })?;
    if let Some(code) = done {
        complain(&Cancelled.to_string());
        return Ok(ExitCode::from(code));
    }
    Ok(ExitCode::SUCCESS)
}

/// Cancels the work and waits until its programs have ended and its directories are removed.
async fn cancelled(
    cancel: &CancellationToken,
    work: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    cancel.cancel();
    work.await
}

fn no_more(words: &[String]) -> anyhow::Result<()> {
    match words.first() {
        Some(word) => bail!("Unexpected argument {word}."),
        None => Ok(()),
    }
}

impl<'a> Context<'a> {
    fn new(
        args: &'a Args,
        env: &'a Environment,
        settings: Settings,
        cancel: CancellationToken,
    ) -> anyhow::Result<Self> {
        let registry = setup::load_registry(args, env, Arc::new(run_command::run), LocalSources::default());
        let hidden = setup::hidden_variables(&registry, &settings);
        Ok(Self {
            npm: Npm::of(&settings, args.packages.allow_scripts)?,
            programs: Programs {
                reaper: Reaper::new(GuardianLaunch::default()),
                env: git::environment(env.for_tools(&hidden)),
                secrets: registry.secrets().clone(),
                cancel,
            },
            args,
            env,
            settings,
        })
    }

    async fn carry_out(&self, command: Command) -> anyhow::Result<()> {
        if command == Command::Update {
            return update::run(self).await;
        }
        let (text, rest) = self
            .args
            .messages
            .split_first()
            .with_context(|| format!("Missing {} source.", command.name()))?;
        no_more(rest)?;
        let place = match self.args.packages.local {
            true => Place::writable_project(self.env, &self.settings)?,
            false => Place::user(self.env),
        };
        match command {
            Command::Install => self.install(&place, text).await,
            _ => self.remove(&place, text).await,
        }
    }

    async fn install(&self, place: &Place, text: &str) -> anyhow::Result<()> {
        let source = PackageSource::parse(text).map_err(|error| anyhow!("{text} {error}"))?;
        if source.has_password() {
            bail!(
                "The address contains a password or token, which settings must not contain. Use git's credential helper"
            );
        }
        place.entries()?;
        say(&format!("Installing {text}..."));
        let _lock = lock::take(&self.env.agent_dir, &self.programs.cancel).await?;
        let mut staged = self.fetch(place, text, &source).await?;
        let stored = self.stored(place, text, &source);
        place.commit(staged.as_mut(), |entries| {
            match place.position(entries, &source, &self.env.started_in) {
                None => Some(PackageEdit::Append(stored)),
                Some(index) => {
                    let is_same = entries.get(index).is_some_and(|entry| entry.text == stored);
                    (!is_same).then_some(PackageEdit::Replace(index, stored))
                }
            }
        })?;
        say(&format!("Installed {text}"));
        if place.scope == Scope::Project && self.settings.project != ProjectAccess::Full {
            complain("The project is not trusted, so the package is not loaded. To trust it: pinion trust");
        }
        Ok(())
    }

    /// Prepares the directory that a package is installed with. None for packages that stay where they are.
    async fn fetch(
        &self,
        place: &Place,
        text: &str,
        source: &PackageSource,
    ) -> anyhow::Result<Option<Staged>> {
        match source {
            PackageSource::Local(path) => {
                let path = resolve_path(path, &self.env.started_in, self.env.home.as_deref());
                if !path.exists() {
                    bail!("Path does not exist: {}", path.display());
                }
                Ok(None)
            }
            _ if self.is_offline() => {
                bail!("Cannot install {text}: offline mode is on (--offline or PI_OFFLINE)")
            }
            PackageSource::Npm { name, version } => {
                let spec = match version {
                    Some(version) => format!("{name}@{version}"),
                    None => name.clone(),
                };
                let staged = self.fetch_npm(place, &[spec]).await?;
                if !staged
                    .dir()
                    .join("node_modules")
                    .join(name)
                    .join("package.json")
                    .is_file()
                {
                    bail!("npm reported success but did not install {name}");
                }
                Ok(Some(staged))
            }
            PackageSource::Git { .. } => self.fetch_git(place, source).await.map(Some),
        }
    }

    /// Installs packages into a copy of the directory that npm keeps.
    async fn fetch_npm(&self, place: &Place, specs: &[String]) -> anyhow::Result<Staged> {
        let target = real(&place.base.join("npm"));
        let staged = Staged::copy(&target, beside(&target), self.args.packages.allow_scripts)?;
        Npm::prepare(staged.dir())?;
        self.npm.install(&self.programs, staged.dir(), specs).await?;
        Ok(staged)
    }

    /// Clones a repository with its dependencies.
    async fn fetch_git(&self, place: &Place, source: &PackageSource) -> anyhow::Result<Staged> {
        let PackageSource::Git {
            repository,
            reference,
            ..
        } = source
        else {
            bail!("not a git repository");
        };
        let (root, target) = (place.base.join("git"), place.path_of(source));
        let is_repository = |dir: &Path| dir.join(".git").exists();
        let outer = target.ancestors().skip(1).take_while(|dir| *dir != root);
        if let Some(outer) = outer.into_iter().find(|dir| is_repository(dir)) {
            bail!(
                "{} is a package already; another one cannot be inside it",
                outer.display()
            );
        }
        if target.exists() && !is_repository(&target) {
            bail!("{} exists and is not a git repository", target.display());
        }
        let staged = Staged::empty(&target, root.join(".pinion-new"))?;
        git::clone(&self.programs, repository, reference.as_deref(), staged.dir()).await?;
        self.npm.dependencies(&self.programs, staged.dir()).await?;
        // In the directory of all repositories, as pi writes it: the first installation creates both.
        let ignored = root.join(".gitignore");
        if !ignored.exists() {
            std::fs::write(&ignored, npm::IGNORED).with_context(|| ignored.display().to_string())?;
        }
        Ok(staged)
    }

    /// The text that settings name the package with.
    fn stored(&self, place: &Place, text: &str, source: &PackageSource) -> String {
        match source {
            PackageSource::Local(path) => {
                let path = resolve_path(path, &self.env.started_in, self.env.home.as_deref());
                relative(&place.base, &path)
            }
            // pi takes this form only with the prefix.
            PackageSource::Git { .. } if text.starts_with("git@") => format!("git:{text}"),
            _ => text.trim().to_owned(),
        }
    }

    async fn remove(&self, place: &Place, text: &str) -> anyhow::Result<()> {
        let source = PackageSource::parse(text).map_err(|error| anyhow!("{text} {error}"))?;
        let entries = place.entries()?;
        if place.position(&entries, &source, &self.env.started_in).is_none() {
            bail!(no_match(text, &entries));
        }
        say(&format!("Removing {text}..."));
        let _lock = lock::take(&self.env.agent_dir, &self.programs.cancel).await?;
        let path = place.path_of(&source);
        let mut staged = match &source {
            PackageSource::Npm { name, .. } if path.exists() => {
                let target = real(&place.base.join("npm"));
                let staged = Staged::copy(&target, beside(&target), false)?;
                self.npm.uninstall(&self.programs, staged.dir(), name).await?;
                Some(staged)
            }
            _ => None,
        };
        place.commit(staged.as_mut(), |entries| {
            let index = place.position(entries, &source, &self.env.started_in)?;
            Some(PackageEdit::Remove(index))
        })?;
        if let PackageSource::Git { .. } = source
            && path.exists()
        {
            std::fs::remove_dir_all(&path).with_context(|| format!("Cannot remove {}", path.display()))?;
            let host = source
                .below()
                .and_then(|below| below.iter().nth(1).map(|host| place.base.join("git").join(host)));
            if let (Some(parent), Some(host)) = (path.parent(), host) {
                staging::remove_empty(parent, &host);
            }
        }
        say(&format!("Removed {text}"));
        Ok(())
    }

    fn is_offline(&self) -> bool {
        self.args.offline || self.env.is_offline()
    }
}

/// The error for a source that settings do not name, in pi's words, with the entry that is probably meant.
fn no_match(text: &str, entries: &[Entry]) -> String {
    let meant = entries.iter().find(|entry| {
        let text = text.trim();
        let Some(source) = &entry.source else { return false };
        source
            .identity(Path::new("/"), None)
            .split_once(':')
            .is_some_and(|(_, name)| name == text)
            || entry.text.split_once(':').is_some_and(|(_, rest)| rest == text)
    });
    let meant = meant.map(|entry| format!(". Did you mean {}?", entry.text));
    format!(
        "No matching package found for {text}{}",
        meant.unwrap_or_default()
    )
}

/// The directory that a link leads to: npm writes wrong paths below links.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// Where the copy of a directory is prepared.
fn beside(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".pinion-new");
    PathBuf::from(name)
}

/// A path as seen from a directory. Both are absolute.
fn relative(base: &Path, path: &Path) -> String {
    let shared = base.components().zip(path.components());
    let shared = shared.take_while(|(one, other)| one == other).count();
    let mut out = PathBuf::new();
    for _ in base.components().skip(shared) {
        out.push("..");
    }
    out.extend(path.components().skip(shared));
    match out.to_string_lossy().into_owned() {
        empty if empty.is_empty() => ".".to_owned(),
        text => text,
    }
}
