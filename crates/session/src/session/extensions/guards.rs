//! Guards that could not be loaded: hooks, and extensions that the command line names. As long as there is one, the agent is locked
//! down as with unusable settings, or, where no client can see that, answers no prompt.

use config::extensions::Found;
use extensions::line::Failure;

use super::links::ExtensionLinks;

/// Path that failures have which concern a whole process.
const PROCESS: &str = "<runtime>";

/// Why guards of the session could not be loaded.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    /// Their files, and one sentence each.
    missing: Vec<String>,
    faults: Vec<String>,
}

impl Guards {
    /// One sentence for each guard that could not be loaded.
    pub(crate) fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Takes note of a failure. True if a guard is missing that was not known to be.
    pub(crate) fn misses(&mut self, failure: &Failure, links: &ExtensionLinks) -> bool {
        is_missed(failure, &links.found) && self.miss(failure)
    }

    /// Takes note of a guard that could not be loaded. False if it was known.
    pub(crate) fn miss(&mut self, failure: &Failure) -> bool {
        // It fails again with every restart of its process, and the agent is locked down already.
        if self.missing.contains(&failure.path) {
            return false;
        }
        self.missing.push(failure.path.clone());
        self.faults.push(format!("{}: {}", failure.path, failure.error));
        true
    }

    /// Forgets the guards that have loaded after all. True if there were any.
    pub(crate) fn take_loaded(&mut self, links: &ExtensionLinks) -> bool {
        let before = self.missing.len();
        let is_loaded = |path: &String| {
            let mut loaded = links
                .registered
                .iter()
                .filter(|extension| extension.error.is_none());
            loaded.any(|extension| extension.path == *path)
        };
        let kept = self.missing.iter().zip(&self.faults);
        let kept = kept.filter(|(path, _)| !is_loaded(path));
        let (missing, faults) = kept.map(|(path, fault)| (path.clone(), fault.clone())).unzip();
        *self = Self { missing, faults };
        self.missing.len() != before
    }
}

/// Returns true if a failure means that a guard is not loaded.
fn is_missed(failure: &Failure, found: &[Found]) -> bool {
    // A failure of a whole process names no extension, and any guard may have been in it.
    let concerns = |found: &Found| failure.path == PROCESS || failure.path == found.source.path;
    // A guard that fails later is loaded: its failure blocks the call that it should check.
    failure.event == "load" && found.iter().any(|found| found.is_guard() && concerns(found))
}

#[cfg(test)]
mod tests {
    use config::extensions::Key;
    use config::{Scope as FileScope, SourceInfo};
    use extensions::line::{Kind, Registered, Scope, Source};

    use super::super::failures::failure;
    use super::*;

    fn found(path: &str, kind: Kind, scope: Scope) -> Found {
        Found {
            source: Source {
                path: path.to_owned(),
                scope,
                kind,
            },
            info: SourceInfo {
                path: path.to_owned(),
                source: "local".to_owned(),
                scope: FileScope::User,
                origin: "top-level",
                base_dir: None,
            },
            runs: Ok(Key::TypeScript),
        }
    }

    #[test]
    fn only_failed_loading_of_guards_counts() {
        let links = ExtensionLinks {
            found: vec![
                found("hook.ts", Kind::Hook, Scope::User),
                found("plain.ts", Kind::Extension, Scope::User),
                found("named.ts", Kind::Extension, Scope::Temporary),
            ],
            ..ExtensionLinks::default()
        };
        let misses =
            |path: &str, event: &str| Guards::default().misses(&failure(path, event, "broken"), &links);
        assert!(misses("hook.ts", "load") && misses("named.ts", "load"));
        assert!(!misses("plain.ts", "load"), "it checks nothing");
        assert!(!misses("hook.ts", "tool_call"), "it is loaded");
        assert!(misses(PROCESS, "load"), "the guard was in that process");
        let without_guards = ExtensionLinks {
            found: vec![found("plain.ts", Kind::Extension, Scope::User)],
            ..ExtensionLinks::default()
        };
        assert!(!Guards::default().misses(&failure(PROCESS, "load", "x"), &without_guards));
    }

    #[test]
    fn missing_guard_is_noted_once() {
        let mut guards = Guards::default();
        assert!(guards.miss(&failure("hook.ts", "load", "first")));
        assert!(!guards.miss(&failure("hook.ts", "load", "second")));
        assert_eq!(guards.faults(), ["hook.ts: first"]);
    }

    #[test]
    fn guard_that_loads_later_is_forgotten() {
        let mut guards = Guards::default();
        guards.miss(&failure("a.ts", "load", "x"));
        guards.miss(&failure("b.ts", "load", "y"));
        let registered = |path: &str, error: Option<&str>| Registered {
            path: path.to_owned(),
            error: error.map(str::to_owned),
            ..Registered::default()
        };
        let mut links = ExtensionLinks {
            registered: vec![registered("a.ts", Some("x")), registered("c.ts", None)],
            ..ExtensionLinks::default()
        };
        assert!(!guards.take_loaded(&links), "it failed again");
        links.registered = vec![registered("a.ts", None)];
        assert!(guards.take_loaded(&links));
        assert_eq!(guards.faults(), ["b.ts: y"]);
    }
}
