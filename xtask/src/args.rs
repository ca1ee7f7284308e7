//! The command line of a chore: words, flags and options with a value. No help texts here; they are in `main.rs`.

use std::str::FromStr;

use anyhow::{Context, Result, anyhow};

/// Words that are still unread.
#[derive(Debug, Clone)]
pub struct Args(Vec<String>);

impl Args {
    /// From a command line without the program name.
    pub fn new(words: impl Iterator<Item = String>) -> Self {
        Self(words.collect())
    }

    /// Takes the first unread word.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would promise more than this"
    )]
    pub fn next(&mut self) -> Option<String> {
        if self.0.is_empty() {
            None
        } else {
            Some(self.0.remove(0))
        }
    }

    /// Takes a flag; returns whether it was present.
    pub fn flag(&mut self, name: &str) -> bool {
        let found = self.0.iter().position(|word| word == name);
        if let Some(at) = found {
            self.0.remove(at);
        }
        found.is_some()
    }

    /// Takes an option and its value.
    ///
    /// # Errors
    /// When the value is missing or has the wrong form.
    pub fn option<T: FromStr>(&mut self, name: &str) -> Result<Option<T>> {
        let Some(at) = self.0.iter().position(|word| word == name) else {
            return Ok(None);
        };
        self.0.remove(at);
        if at >= self.0.len() {
            return Err(anyhow!("{name} needs a value"));
        }
        let value = self.0.remove(at);
        let parsed = value.parse().or_else(|_| value.replace('_', "").parse());
        parsed.map(Some).map_err(|_| anyhow!("{name} cannot be {value}"))
    }

    /// Takes an option that must be there.
    ///
    /// # Errors
    /// When it is not, or its value has the wrong form.
    pub fn required<T: FromStr>(&mut self, name: &str) -> Result<T> {
        self.option(name)?.with_context(|| format!("{name} is missing"))
    }
}
