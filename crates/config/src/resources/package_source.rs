//! The text that names a package: `npm:NAME@VERSION`, a git repository, or a path (pi 1.5, packages docs). The same parser serves
//! loading and installing, so that a package is looked for where it was installed. Names that could leave the directory of
//! packages, or that npm or git could read as an option, name nothing.

use std::path::{Path, PathBuf};

use crate::source::resolve_path;

/// Schemes of git addresses. Helpers such as `ext::` run programs and are not among them.
const SCHEMES: [&str; 4] = ["https://", "http://", "ssh://", "git://"];

/// Where a package comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageSource {
    /// A package of an npm registry.
    Npm {
        /// The name, with its scope.
        name: String,
        /// A version, range or tag.
        version: Option<String>,
    },
    /// A git repository.
    Git {
        /// What `git clone` takes.
        repository: String,
        /// The host in lower case, without user and port.
        host: String,
        /// The path on the host without `.git`, at least two segments.
        path: String,
        /// A branch, tag or commit.
        reference: Option<String>,
    },
    /// A file or directory, as it was named.
    Local(String),
}

/// Why a text names no package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceError {
    /// The name after `npm:` is not the name of a package.
    NpmName,
    /// What follows the name is neither a version nor a range nor a tag.
    NpmVersion,
    /// The text after `git:`, or the address, is not a repository.
    Repository,
    /// The branch, tag or commit has characters that git does not allow, or starts with a dash.
    Reference,
    /// The scheme is none that packages can have.
    Scheme,
}

impl std::fmt::Display for SourceError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::NpmName => "names no package. Write npm:NAME or npm:NAME@VERSION",
            Self::NpmVersion => "has no valid version. Write a version, a range or a tag of the registry",
            Self::Repository => {
                "names no repository. Write git:HOST/USER/REPOSITORY or an https or ssh address of one"
            }
            Self::Reference => "has no valid branch, tag or commit after the repository",
            Self::Scheme => {
                "has a scheme that packages cannot have. Write npm:, git:, https://, ssh:// or a path"
            }
        })
    }
}

impl PackageSource {
    /// Takes the text apart.
    ///
    /// # Errors
    /// If the text has the form of an npm package or a git repository, but is none.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let text = text.trim();
        if let Some(spec) = text.strip_prefix("npm:") {
            return npm(spec.trim());
        }
        let git = text.strip_prefix("git:").filter(|rest| !rest.starts_with("//"));
        if let Some(address) = git {
            return repository(address.trim());
        }
        if has_scheme(text) || text.starts_with("git@") {
            return repository(text);
        }
        let is_path = text.starts_with(['/', '.', '~']);
        if !is_path && (text.contains("://") || text.contains("::") || text.starts_with("github:")) {
            return Err(SourceError::Scheme);
        }
        Ok(Self::Local(text.to_owned()))
    }

    /// Where the package is installed, below the agent directory or the project's `.pi`. None for paths.
    #[must_use]
    pub fn below(&self) -> Option<PathBuf> {
        match self {
            Self::Npm { name, .. } => Some(Path::new("npm/node_modules").join(name)),
            Self::Git { host, path, .. } => Some(Path::new("git").join(host).join(path)),
            Self::Local(_) => None,
        }
    }

    /// The directory that a package of the command line is installed in, as `below` is in the agent directory. Each text has its own, so
    /// that versions of a package do not replace each other. Relative to the agent directory.
    #[must_use]
    pub fn temporary_base(text: &str) -> PathBuf {
        let name = text.trim().bytes().map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => char::from(byte).to_string(),
            _ => format!("+{byte:02x}"),
        });
        Path::new("tmp/extensions").join(name.collect::<String>())
    }

    /// Identifies the package: two sources with the same identity name the same package, perhaps in different versions.
    /// `base` is the directory that relative paths start from.
    #[must_use]
    pub fn identity(&self, base: &Path, home: Option<&Path>) -> String {
        match self {
            Self::Npm { name, .. } => format!("npm:{name}"),
            Self::Git { host, path, .. } => format!("git:{host}/{path}"),
            Self::Local(path) => format!("local:{}", resolve_path(path, base, home).display()),
        }
    }

    /// Returns true if the address contains a password, which must not be stored in settings.
    #[must_use]
    pub fn has_password(&self) -> bool {
        let Self::Git { repository, .. } = self else {
            return false;
        };
        let authority = repository.split_once("://").map_or("", |(_, rest)| rest);
        let authority = authority.split('/').next().unwrap_or_default();
        let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
        user.contains(':') || repository.starts_with("http") && !user.is_empty()
    }

    /// Returns the exact version that the source asks npm for. Ranges and tags are none.
    #[must_use]
    pub fn exact_version(&self) -> Option<&str> {
        match self {
            Self::Npm {
                version: Some(version),
                ..
            } if is_exact(version) => Some(version.trim_start_matches(['v', '='])),
            _ => None,
        }
    }
}

/// True for `1.2.3`, `v1.2.3-beta.1` and the like.
fn is_exact(version: &str) -> bool {
    let version = version.trim_start_matches(['v', '=']);
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = core.split('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    core.split('.').count() == 3 && numbers.all(is_number)
}

fn npm(spec: &str) -> Result<PackageSource, SourceError> {
    let (scope, rest) = match spec.strip_prefix('@') {
        Some(scoped) => scoped
            .split_once('/')
            .map(|(scope, rest)| (Some(scope), rest))
            .ok_or(SourceError::NpmName)?,
        None => (None, spec),
    };
    let (name, version) = match rest.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (rest, None),
    };
    if !scope.into_iter().chain([name]).all(is_npm_name) || scope.is_none() && name == "node_modules" {
        return Err(SourceError::NpmName);
    }
    // Colons and slashes would make it an address, a path or an alias of another package.
    let fits = |version: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-+~^<>=|* ".contains(c);
        !version.is_empty() && !version.starts_with('-') && version.chars().all(plain)
    };
    if !version.is_none_or(fits) {
        return Err(SourceError::NpmVersion);
    }
    let name = scope.map_or_else(|| name.to_owned(), |scope| format!("@{scope}/{name}"));
    Ok(PackageSource::Npm {
        name,
        version: version.map(str::to_owned),
    })
}

fn is_npm_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-~".contains(c);
    !name.is_empty() && !name.starts_with(['.', '-', '_']) && name.chars().all(plain)
}

fn has_scheme(text: &str) -> bool {
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

fn repository(address: &str) -> Result<PackageSource, SourceError> {
    let scheme = SCHEMES.iter().find(|scheme| address.starts_with(**scheme));
    let bare = scheme.map_or(address, |scheme| address.trim_start_matches(scheme));
    let is_scp = scheme.is_none() && bare.starts_with("git@");
    let (authority, rest) = bare
        .split_once(if is_scp { ':' } else { '/' })
        .ok_or(SourceError::Repository)?;
    let (path, reference) = match rest.split_once(['@', '#']) {
        Some((path, reference)) => (path, Some(reference)),
        None => (rest, None),
    };
    if reference.is_some_and(|reference| !is_reference(reference)) {
        return Err(SourceError::Reference);
    }
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let host = if is_scp {
        host
    } else {
        host.split(':').next().unwrap_or(host)
    };
    let path = path.trim_matches('/');
    let name = path.strip_suffix(".git").unwrap_or(path);
    let needs_dot = scheme.is_none() && !is_scp;
    let is_clean = |c: char| c.is_ascii_graphic() && !"\"'\\`$".contains(c);
    if authority.starts_with('-') || !authority.chars().all(is_clean) {
        return Err(SourceError::Repository);
    }
    let is_host = is_part(host) && (!needs_dot || host.contains('.') || host == "localhost");
    if !is_host || name.split('/').count() < 2 || !name.split('/').all(is_part) {
        return Err(SourceError::Repository);
    }
    let repository = match scheme {
        Some(scheme) => format!("{scheme}{authority}/{path}"),
        None if is_scp => format!("{authority}:{path}"),
        None => format!("https://{authority}/{path}"),
    };
    Ok(PackageSource::Git {
        repository,
        host: host.to_ascii_lowercase(),
        path: name.to_owned(),
        reference: reference.map(str::to_owned),
    })
}

/// A name that stays in its directory, also after percent-decoding, and is no option.
fn is_part(part: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "._-~+".contains(c);
    !part.is_empty() && part != "." && part != ".." && !part.starts_with('-') && part.chars().all(plain)
}

/// A branch, tag or commit as git allows them (git-check-ref-format), and no option.
fn is_reference(reference: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "._-+/@=".contains(c);
    !reference.is_empty()
        && !reference.starts_with(['-', '/', '.'])
        && !reference.ends_with(['/', '.'])
        && !["..", "//", "@{"].iter().any(|bad| reference.contains(bad))
        && reference.chars().all(plain)
}
