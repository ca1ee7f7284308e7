//! Where packages are installed and which settings name them: the user's agent directory, or the project's `.pi`.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use config::resources::PackageSource;
use config::settings::Settings;
use config::settings::edit::{self, PackageEdit, SettingsFileLock};
use config::trust::{Project, ProjectAccess};
use config::{Scope, resolve_path};

use super::staging::Staged;
use crate::environment::Environment;

/// A directory of packages and the settings that name them.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) scope: Scope,
    /// The agent directory, or the project's `.pi`.
    pub(super) base: PathBuf,
    home: Option<PathBuf>,
}

/// An entry of the setting `packages`.
#[derive(Debug)]
pub(super) struct Entry {
    /// The source as it is written.
    pub(super) text: String,
    /// True if the entry selects files of the package.
    pub(super) filtered: bool,
    /// None if the text names no package.
    pub(super) source: Option<PackageSource>,
}

impl Place {
    /// The user's packages.
    pub(super) fn user(env: &Environment) -> Self {
        Self {
            scope: Scope::User,
            base: env.agent_dir.clone(),
            home: env.home.clone(),
        }
    }

    /// A package that only the command line names. No settings belong to it.
    pub(super) fn named(env: &Environment, text: &str) -> Self {
        Self {
            scope: Scope::Temporary,
            base: env.agent_dir.join(PackageSource::temporary_base(text)),
            home: env.home.clone(),
        }
    }

    /// The project's packages, if the project is trusted.
    pub(super) fn trusted_project(env: &Environment, settings: &Settings) -> Option<Self> {
        let place = Self::project(env);
        (settings.project == ProjectAccess::Full && place.base != env.agent_dir).then_some(place)
    }

    /// The project's packages, to be changed. A project that was not decided about and brings nothing may get its first one.
    ///
    /// # Errors
    /// If the project is not trusted, or links in it lead elsewhere.
    pub(super) fn writable_project(env: &Environment, settings: &Settings) -> anyhow::Result<Self> {
        let project = Project {
            cwd: &env.cwd,
            agent_dir: &env.agent_dir,
            home: env.home.as_deref(),
            // What oh-my-pi reads is no package.
            is_omp: false,
        };
        let is_new = settings.project == ProjectAccess::Data && !project.needs_trust();
        if settings.project != ProjectAccess::Full && !is_new {
            bail!("Project is not trusted. Use --approve to modify local package config.");
        }
        let place = Self::project(env);
        for path in [
            &place.base,
            &place.base.join("npm"),
            &place.base.join("git"),
            &place.settings(),
        ] {
            if path.is_symlink() {
                bail!(
                    "{} is a link. Packages of a project are not installed through links",
                    path.display()
                );
            }
        }
        Ok(place)
    }

    fn project(env: &Environment) -> Self {
        Self {
            scope: Scope::Project,
            base: env.cwd.join(".pi"),
            home: env.home.clone(),
        }
    }

    /// The heading of the list.
    pub(super) fn title(&self) -> &'static str {
        match self.scope {
            Scope::Project => "Project",
            _ => "User",
        }
    }

    fn settings(&self) -> PathBuf {
        self.base.join("settings.json")
    }

    /// Where a package is, or would be.
    pub(super) fn path_of(&self, source: &PackageSource) -> PathBuf {
        match (source.below(), source) {
            (Some(below), _) => self.base.join(below),
            (None, PackageSource::Local(path)) => resolve_path(path, &self.base, self.home.as_deref()),
            (None, _) => self.base.clone(),
        }
    }

    /// The entries of the settings, in their order.
    ///
    /// # Errors
    /// If the settings cannot be read.
    pub(super) fn entries(&self) -> anyhow::Result<Vec<Entry>> {
        self.entries_of(&edit::read(&self.settings())?)
    }

    fn entries_of(&self, text: &str) -> anyhow::Result<Vec<Entry>> {
        let listed =
            edit::packages(text).map_err(|error| anyhow!("{}: {error}", self.settings().display()))?;
        let entry = |(text, filtered): (String, bool)| Entry {
            source: PackageSource::parse(&text).ok(),
            text,
            filtered,
        };
        Ok(listed.into_iter().map(entry).collect())
    }

    /// The index of the entry for a package; `cwd` is where a relative path of the command line starts.
    pub(super) fn position(&self, entries: &[Entry], source: &PackageSource, cwd: &Path) -> Option<usize> {
        let home = self.home.as_deref();
        let wanted = source.identity(cwd, home);
        entries.iter().position(|entry| {
            let known = entry.source.as_ref();
            known.is_some_and(|known| known.identity(&self.base, home) == wanted)
        })
    }

    /// Puts prepared directories in place and changes the settings, both or neither. `edit` gets the entries as they are then.
    ///
    /// # Errors
    /// If the settings or the directories cannot be changed.
    pub(super) fn commit(
        &self,
        staged: Option<&mut Staged>,
        edit: impl FnOnce(&[Entry]) -> Option<PackageEdit>,
    ) -> anyhow::Result<()> {
        let path = self.settings();
        let failed = |error: std::io::Error| anyhow!("Cannot change {}: {error}", path.display());
        let lock = SettingsFileLock::take(&path).map_err(failed)?;
        let text = edit::read(&path).map_err(failed)?;
        let edited = match edit(&self.entries_of(&text)?) {
            None => None,
            Some(edit) => Some(
                edit::edit_packages(&text, &edit).map_err(|error| anyhow!("{}: {error}", path.display()))?,
            ),
        };
        let Some(staged) = staged else {
            return edited.map_or(Ok(()), |text| lock.replace(&text).map_err(failed));
        };
        staged.swap()?;
        if let Some(text) = edited
            && let Err(error) = lock.replace(&text)
        {
            staged.undo();
            return Err(failed(error));
        }
        Ok(())
    }
}
