//! What a session would load, for people: extensions, hooks and custom tools with where they are, and why one of them is not
//! loaded. Nothing is started for it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ::extensions::line::{Kind, Scope as ChildScope};
use ::extensions::runtime::Runtime;

use crate::extensions::{self, Key};
use crate::hooks::{self, Hook};
use crate::limits;
use crate::places::Places;
use crate::source::Scope;
use crate::trust::ProjectAccess;

/// Something that can be loaded, or cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// `extension`, `hook`, `tool`, or `executable` for a hook that runs by itself.
    pub kind: &'static str,
    /// The file, or the program of a setting.
    pub path: PathBuf,
    /// Whose it is.
    pub scope: Scope,
    /// The event of an executable.
    pub event: Option<&'static str>,
    /// True if it needs Node or Bun.
    pub needs_runtime: bool,
    /// Why it is not loaded.
    pub problem: Option<String>,
}

/// What a session in these places would load.
#[must_use]
pub fn list(places: &Places<'_>) -> Vec<Listed> {
    let mut listed: Vec<Listed> = extensions::find(places)
        .into_iter()
        .map(|found| Listed {
            kind: match found.source.kind {
                Kind::Extension => "extension",
                Kind::Hook => "hook",
                Kind::Tool => "tool",
                Kind::Command => "command",
            },
            problem: missing(Path::new(&found.source.path)).or_else(|| found.runs.clone().err()),
            needs_runtime: found.runs == Ok(Key::TypeScript),
            path: found.source.path.into(),
            scope: match found.source.scope {
                ChildScope::User => Scope::User,
                ChildScope::Project => Scope::Project,
                ChildScope::Temporary => Scope::Temporary,
            },
            event: None,
        })
        .collect();
    let found = hooks::find(places);
    listed.extend(found.hooks.into_iter().map(executable));
    listed.extend(found.refused.into_iter().map(|refused| Listed {
        kind: "executable",
        path: refused.path,
        scope: refused.scope,
        event: None,
        needs_runtime: false,
        problem: Some(refused.why),
    }));
    listed.extend(untrusted(places));
    listed
}

/// What runs extensions in TypeScript, if it is on this `PATH`.
#[must_use]
pub fn runtime(path: &OsStr) -> Option<PathBuf> {
    Runtime::find(path).map(|runtime| runtime.program)
}

fn executable(hook: Hook) -> Listed {
    Listed {
        kind: "executable",
        path: hook.path,
        scope: hook.scope,
        event: Some(hook.event),
        needs_runtime: false,
        problem: None,
    }
}

fn missing(path: &Path) -> Option<String> {
    (!path.exists()).then(|| "There is no such file".to_owned())
}

/// What a project would bring that is not trusted.
fn untrusted(places: &Places<'_>) -> Vec<Listed> {
    if places.settings.project == ProjectAccess::Full || places.choice.only_named {
        return Vec::new();
    }
    let kinds = [("extensions", "extension"), ("hooks", "hook"), ("tools", "tool")];
    let mut listed = Vec::new();
    for (folder, kind) in kinds {
        let root = places.boundaries.project(places.cwd);
        let paths = root.list(&places.cwd.join(".pi").join(folder), limits::HOOK_ENTRIES);
        listed.extend(paths.unwrap_or_default().0.into_iter().map(|path| Listed {
            kind,
            path,
            scope: Scope::Project,
            event: None,
            needs_runtime: false,
            problem: Some("The project is not trusted (see --approve)".to_owned()),
        }));
    }
    listed
}
