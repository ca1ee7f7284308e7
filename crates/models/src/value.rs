//! Values that are looked up: `!command`, `$NAME`, the name of a variable, or the text itself (pi-core.md 8.3,
//! pi-1.5-delta.md 6). Running the command is the caller's business.

use crate::RegistryError;

/// Where a value may come from.
pub(crate) struct Lookup<'a> {
    /// One environment variable; empty counts as unset.
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
    /// Trimmed standard output of a shell command; `None` when it fails or says nothing.
    pub(crate) run: &'a dyn Fn(&str) -> Option<String>,
}

impl Lookup<'_> {
    /// The value that `text` stands for; `what` names it in errors.
    pub(crate) fn resolve(&self, text: &str, what: &str) -> Result<String, RegistryError> {
        match text.strip_prefix('!') {
            Some(command) => {
                (self.run)(command)
                    .filter(|out| !out.is_empty())
                    .ok_or_else(|| RegistryError::Command {
                        what: what.to_owned(),
                        command: command.to_owned(),
                    })
            }
            None => self.without_command(text, what),
        }
    }

    fn without_command(&self, text: &str, what: &str) -> Result<String, RegistryError> {
        if !text.contains('$') {
            return Ok((self.env)(text).unwrap_or_else(|| text.to_owned()));
        }
        let mut out = String::new();
        for part in Parts(text) {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Variable(name) => {
                    out.push_str(&(self.env)(name).ok_or_else(|| RegistryError::Variable {
                        what: what.to_owned(),
                        name: name.to_owned(),
                    })?)
                }
            }
        }
        Ok(out)
    }
}

/// Could `text` be resolved? Commands are trusted, not run.
pub(crate) fn is_configured(text: &str, env: &dyn Fn(&str) -> Option<String>) -> bool {
    let lookup = Lookup {
        env,
        run: &|_| Some(String::from("command")),
    };
    lookup.resolve(text, "").is_ok_and(|value| !value.is_empty())
}

/// The variables that `text` may be read from.
pub(crate) fn variables(text: &str) -> Vec<&str> {
    if text.starts_with('!') {
        return Vec::new();
    }
    if !text.contains('$') {
        return if name_length(text) == text.len() {
            vec![text]
        } else {
            Vec::new()
        };
    }
    Parts(text)
        .filter_map(|part| {
            if let Part::Variable(name) = part {
                Some(name)
            } else {
                None
            }
        })
        .collect()
}

enum Part<'a> {
    Text(&'a str),
    Variable(&'a str),
}

/// Cuts `a$NAME${OTHER}$$b` into text and variables; `$$` and `$!` are a literal `$` and `!`, and a `$` before anything else
/// stays as it is.
struct Parts<'a>(&'a str);

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        if self.0.is_empty() {
            return None;
        }
        let Some(rest) = self.0.strip_prefix('$') else {
            let (text, rest) = self
                .0
                .split_at_checked(self.0.find('$').unwrap_or(self.0.len()))?;
            self.0 = rest;
            return Some(Part::Text(text));
        };
        if rest.starts_with(['$', '!']) {
            let (text, rest) = rest.split_at_checked(1)?;
            self.0 = rest;
            return Some(Part::Text(text));
        }
        let braced = rest.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        if let Some((name, rest)) =
            braced.filter(|(name, _)| !name.is_empty() && name_length(name) == name.len())
        {
            self.0 = rest;
            return Some(Part::Variable(name));
        }
        let (name, after) = rest.split_at_checked(name_length(rest))?;
        self.0 = after;
        Some(if name.is_empty() {
            Part::Text("$")
        } else {
            Part::Variable(name)
        })
    }
}

/// Length of the variable name at the start of `text`, in bytes.
fn name_length(text: &str) -> usize {
    let is_name = |(at, byte): (usize, u8)| {
        byte == b'_' || byte.is_ascii_alphabetic() || (at > 0 && byte.is_ascii_digit())
    };
    text.bytes().enumerate().take_while(|item| is_name(*item)).count()
}
