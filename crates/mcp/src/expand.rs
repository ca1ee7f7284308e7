//! Variables in a configuration: `${NAME}`, `${NAME:-otherwise}`, and `!command` for whole values that may be secrets. They
//! are put in when a connection is made, so that nothing secret lies around before.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{HttpConfig, OauthConfig, StdioConfig};
use crate::error::McpError;

/// Looks a variable up.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Runs a command and gives what it prints; nothing when it fails. It may block.
pub type RunCommand = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a configuration may refer to.
#[derive(Clone)]
pub struct Expander {
    /// Variables.
    pub lookup: Lookup,
    /// Commands.
    pub run: RunCommand,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
}

impl fmt::Debug for Expander {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Expander")
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

impl Expander {
    /// The program, as it is to be started in the session's directory `cwd`.
    ///
    /// # Errors
    /// When a variable is not set, or a command gives nothing.
    pub(crate) fn stdio(&self, config: &StdioConfig, cwd: &Path) -> Result<(StdioConfig, PathBuf), McpError> {
        let args = config
            .args
            .iter()
            .map(|arg| self.path(arg))
            .collect::<Result<_, _>>()?;
        let dir = match &config.cwd {
            Some(dir) => cwd.join(self.path(dir)?),
            None => cwd.to_path_buf(),
        };
        let expanded = StdioConfig {
            command: self.path(&config.command)?,
            args,
            env: self.pairs(&config.env)?,
            cwd: None,
        };
        Ok((expanded, dir))
    }

    /// The address.
    ///
    /// # Errors
    /// As for programs.
    pub(crate) fn http(&self, config: &HttpConfig) -> Result<HttpConfig, McpError> {
        let oauth = &config.oauth;
        let secret = oauth.client_secret.as_ref().map(|secret| self.value(secret));
        Ok(HttpConfig {
            url: self.text(&config.url)?,
            headers: self.pairs(&config.headers)?,
            oauth: OauthConfig {
                client_secret: secret.transpose()?,
                ..oauth.clone()
            },
        })
    }

    fn pairs(&self, pairs: &[(String, String)]) -> Result<Vec<(String, String)>, McpError> {
        let value = |(name, value): &(String, String)| Ok((name.clone(), self.value(value)?));
        pairs.iter().map(value).collect()
    }

    /// A value that may be a command.
    fn value(&self, text: &str) -> Result<String, McpError> {
        match text.strip_prefix('!') {
            Some(command) => (self.run)(command)
                .ok_or_else(|| McpError::Config("a command of its configuration gives nothing".to_owned())),
            None => self.text(text),
        }
    }

    fn path(&self, text: &str) -> Result<String, McpError> {
        let text = self.text(text)?;
        Ok(match (text.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest).to_string_lossy().into_owned(),
            _ => text,
        })
    }

    /// A text with its variables put in.
    ///
    /// # Errors
    /// When a variable is not set.
    pub(crate) fn text(&self, text: &str) -> Result<String, McpError> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let Some((name, behind)) = after.split_once('}') else {
                out.push_str("${");
                rest = after;
                continue;
            };
            let (name, otherwise) = match name.split_once(":-") {
                Some((name, otherwise)) => (name, Some(otherwise.to_owned())),
                None => (name, None),
            };
            let found = (self.lookup)(name)
                .filter(|value| !value.is_empty())
                .or(otherwise);
            let missing = || {
                McpError::Config(format!(
                    "the variable {} is not set",
                    crate::text::line(name, 100)
                ))
            };
            out.push_str(&found.ok_or_else(missing)?);
            rest = behind;
        }
        out.push_str(rest);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_variables_and_commands_are_expanded() {
        let expander = Expander {
            lookup: Arc::new(|name| (name == "TOKEN").then(|| "t0".to_owned())),
            run: Arc::new(|command| (command == "echo k").then(|| "k".to_owned())),
            home: Some("/home/a".into()),
        };
        let text = |text: &str| expander.text(text);
        assert_eq!(text("Bearer ${TOKEN}!").unwrap(), "Bearer t0!");
        assert_eq!(text("${NOPE:-x}${TOKEN").unwrap(), "x${TOKEN");
        assert_eq!(
            text("${NOPE}").unwrap_err().to_string(),
            "the variable NOPE is not set"
        );
        let config = StdioConfig {
            command: "~/bin/x".to_owned(),
            args: vec!["~/a".to_owned(), "b~/".to_owned()],
            env: vec![("K".to_owned(), "!echo k".to_owned())],
            cwd: Some("sub".to_owned()),
        };
        let (found, dir) = expander.stdio(&config, Path::new("/project")).unwrap();
        assert_eq!(found.command, "/home/a/bin/x");
        assert_eq!(found.args, ["/home/a/a", "b~/"]);
        assert_eq!(found.env, [("K".to_owned(), "k".to_owned())]);
        assert_eq!(dir, Path::new("/project/sub"));
    }
}
