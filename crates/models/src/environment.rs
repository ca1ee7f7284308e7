//! The environment as one provider sees it, for requests of families that read variables. What each family reads is
//! decided there.

use std::sync::Arc;

use auth::Environment;

use crate::store::Registry;

impl Registry {
    /// The variables of a provider (its `env` in `auth.json` comes before the process environment) and the runner of
    /// commands, to be put into [`llm::ModelRequest::environment`]. Nothing is read before a family asks.
    #[must_use]
    pub fn environment(self: &Arc<Self>, provider: &str) -> Environment {
        let (variables, own, run) = (
            Arc::clone(self),
            Arc::clone(self),
            Arc::clone(&self.sources().run),
        );
        let (id, own_id) = (provider.to_owned(), provider.to_owned());
        Environment::new(
            move |name| variables.variable(&id, name),
            move |name| {
                let entry = own.auth().entry(&own_id)?;
                entry.variable(name).map(str::to_owned)
            },
            move |command| run(command),
        )
    }
}
