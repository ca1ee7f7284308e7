//! What a provider's module may know of the surroundings: variables as this provider sees them and a way to run a command.
//! Where they come from is known in `models`; this crate reads no environment by itself.

use std::fmt;
use std::sync::Arc;

/// Looks up a variable.
type Look = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;
/// Runs a command line and gives its trimmed output.
type Run = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Variables and commands that providers may use. Empty by default: no variable is set and no command runs.
#[derive(Clone, Default)]
pub struct Environment(Option<Arc<Inner>>);

struct Inner {
    variables: Look,
    own: Look,
    run: Run,
}

impl Environment {
    /// `variables` are all variables that the provider sees, `own` those of `env` in its own entry of `auth.json`.
    /// `run` runs a shell command and may block.
    #[must_use]
    pub fn new(
        variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
        own: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
        run: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(Inner {
            variables: Arc::new(variables),
            own: Arc::new(own),
            run: Arc::new(run),
        })))
    }

    /// A variable, without the blanks around it; empty counts as unset.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<String> {
        let value = (self.0.as_ref()?.variables)(name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// The first variable of several that is set.
    #[must_use]
    pub fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.value(name))
    }

    /// Returns true if the variable is `1` or `true`.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.value(name)
            .is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"))
    }

    /// Returns true if the variable was set for this provider in particular.
    #[must_use]
    pub fn is_own(&self, name: &str) -> bool {
        let own = self.0.as_ref().and_then(|inner| (inner.own)(name));
        own.is_some_and(|value| !value.trim().is_empty())
    }

    /// Output of a command; none when it fails. May block for seconds.
    #[must_use]
    pub fn run(&self, command: &str) -> Option<String> {
        (self.0.as_ref()?.run)(command)
    }
}

/// Shows nothing of the values: they may be keys.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment(..)")
    }
}
