//! One place that is searched for skills, templates and rules: a directory or a file, and who brought it.

use std::path::{Path, PathBuf};

use files::Root;

use crate::resources::ResourceOptions;
use crate::source::{ExtraPath, Origin, Scope, SourceInfo};

/// One place that is searched: a directory or a single file.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Whose files are there.
    pub(crate) root: Root,
    pub(crate) path: PathBuf,
    pub(crate) base: PathBuf,
    pub(crate) scope: Scope,
    pub(crate) source: Origin,
    /// The package it belongs to, as it was named.
    pub(crate) package: Option<String>,
    /// True when `*.md` files directly inside count as skills. In `.agents`, those in directories below do (pi 1.5.2).
    pub(crate) loose_files: bool,
}

impl Place {
    /// One of the usual directories.
    pub(crate) fn auto(root: Root, path: PathBuf, base: &Path, scope: Scope) -> Self {
        Self {
            root,
            path,
            base: base.to_path_buf(),
            scope,
            source: Origin::Auto,
            package: None,
            loose_files: true,
        }
    }

    /// A path named in settings or on the command line.
    pub(crate) fn named(extra: &ExtraPath, options: &ResourceOptions) -> Self {
        let base = match extra.path.parent() {
            Some(parent) if extra.path.extension().is_some_and(|ext| ext == "md") => parent.to_path_buf(),
            _ => extra.path.clone(),
        };
        let root = match extra.scope {
            Scope::Project => options.boundaries.named(&options.cwd, &extra.path),
            Scope::User | Scope::Temporary => Root::user(),
        };
        Self {
            root,
            path: extra.path.clone(),
            base,
            scope: extra.scope,
            // pi says the same for prompts and skills of flags; only extensions of flags are `cli`.
            source: Origin::Local,
            package: None,
            loose_files: true,
        }
    }

    /// The `sourceInfo` of a file found here.
    pub(crate) fn info(&self, file: &Path) -> SourceInfo {
        // As pi: what a flag names has no directory of configuration, so the base is the directory of each file. What settings name
        // has no base.
        let is_of_flag = self.scope == Scope::Temporary && self.package.is_none();
        let is_of_settings = !is_of_flag && self.package.is_none() && self.source == Origin::Local;
        let base = file.parent().filter(|_| is_of_flag).unwrap_or(&self.base);
        SourceInfo {
            path: file.display().to_string(),
            source: match &self.package {
                Some(package) => package.clone(),
                None => self.source.word().to_owned(),
            },
            scope: self.scope,
            origin: match &self.package {
                Some(_) => "package",
                None => "top-level",
            },
            base_dir: (!is_of_settings).then(|| base.display().to_string()),
        }
    }
}
