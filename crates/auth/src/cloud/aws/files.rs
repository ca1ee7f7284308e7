//! The files of the AWS tools: `~/.aws/config` and `~/.aws/credentials`. Reads them, does not judge them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::Environment;
use crate::cloud::fetch::{aside, read_small};

/// A section's settings.
pub(super) type Section = HashMap<String, String>;

/// Both files together.
#[derive(Debug, Default)]
pub struct Files {
    /// Name of the profile in use.
    pub profile: String,
    profiles: HashMap<String, Section>,
    sessions: HashMap<String, Section>,
    /// The home folder.
    pub(super) home: Option<PathBuf>,
}

/// Which kind of names the sections have.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// `[profile NAME]`, `[default]`, `[sso-session NAME]`
    Config,
    /// `[NAME]`
    Credentials,
}

impl Files {
    /// Reads the files that the variables name, else those in the home folder; missing ones are empty.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub async fn read(environment: &Environment) -> Result<Self, String> {
        let home = environment.first(&["HOME", "USERPROFILE"]).map(PathBuf::from);
        let file = |variable: &str, name: &str| {
            let own = environment.value(variable).map(PathBuf::from);
            own.or_else(|| Some(home.as_ref()?.join(".aws").join(name)))
        };
        let config = file("AWS_CONFIG_FILE", "config");
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let (config, credentials) = aside(move || Ok((text(config)?, text(credentials)?))).await?;
        let mut files = Self {
            profile: environment
                .value("AWS_PROFILE")
                .unwrap_or_else(|| "default".to_owned()),
            home,
            ..Self::default()
        };
        files.parse(&config, Kind::Config);
        files.parse(&credentials, Kind::Credentials);
        Ok(files)
    }

    /// A setting of a profile.
    #[must_use]
    pub fn value(&self, profile: &str, name: &str) -> Option<&str> {
        self.profiles.get(profile)?.get(name).map(String::as_str)
    }

    /// The settings of a profile.
    pub(super) fn profile(&self, name: &str) -> Option<&Section> {
        self.profiles.get(name)
    }

    /// The settings of a login that several profiles share.
    pub(super) fn session(&self, name: &str) -> Option<&Section> {
        self.sessions.get(name)
    }

    /// Adds a file's sections. Lines that begin with blanks belong to nested settings, which nothing here needs.
    fn parse(&mut self, text: &str, kind: Kind) {
        let mut section: Option<&mut Section> = None;
        for line in text.lines() {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
                continue;
            }
            if let Some(rest) = trimmed.strip_prefix('[') {
                let name = rest.split(']').next().unwrap_or_default().trim();
                section = self.section(name, kind);
            } else if let (false, Some((name, value)), Some(section)) = (
                line.starts_with([' ', '\t']),
                trimmed.split_once('='),
                &mut section,
            ) {
                let value = value.split(" #").next().unwrap_or_default().trim();
                section.insert(name.trim().to_ascii_lowercase(), value.to_owned());
            }
        }
    }

    /// The section that a heading begins; none for kinds that are not needed.
    fn section(&mut self, heading: &str, kind: Kind) -> Option<&mut Section> {
        let (word, rest) = heading.split_once([' ', '\t']).unwrap_or((heading, ""));
        let name = rest.trim().trim_matches('"');
        match (kind, word) {
            (Kind::Credentials, _) => Some(self.profiles.entry(heading.to_owned()).or_default()),
            (Kind::Config, "default") => Some(self.profiles.entry("default".to_owned()).or_default()),
            (Kind::Config, "profile") => Some(self.profiles.entry(name.to_owned()).or_default()),
            (Kind::Config, "sso-session") => Some(self.sessions.entry(name.to_owned()).or_default()),
            (Kind::Config, _) => None,
        }
    }
}

/// A file's text; empty when there is no file.
fn text(path: Option<PathBuf>) -> Result<String, String> {
    let read = |path: &Path| Ok(read_small(path)?.unwrap_or_default());
    path.as_deref().map_or_else(|| Ok(String::new()), read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aws_profile_merges_sections_of_both_files() {
        let mut files = Files::default();
        files.parse(
            "# c\n[default]\nregion = eu-west-1\n[profile \"dev\"]\nREGION=us-west-2 # near\ns3 =\n  region = no\n\
             [sso-session corp]\nsso_region = eu-north-1\n[services x]\nregion = no\n[other]\nregion = no\n",
            Kind::Config,
        );
        files.parse(
            "[dev]\naws_access_key_id = A\naws_secret_access_key = s=t/u\n[other]\naws_access_key_id = B\n",
            Kind::Credentials,
        );
        assert_eq!(files.value("default", "region"), Some("eu-west-1"));
        assert_eq!(files.value("dev", "region"), Some("us-west-2"));
        assert_eq!(files.value("dev", "aws_secret_access_key"), Some("s=t/u"));
        assert_eq!(
            files.session("corp").unwrap().get("sso_region").unwrap(),
            "eu-north-1"
        );
        assert_eq!(files.value("other", "region"), None);
        assert_eq!(files.value("x", "region"), None);
    }
}
