//! Paths and the patterns they fit. Two names of a file are looked at: the one a call uses, made absolute and without `..`, and
//! the one it really has, with every link followed. A rule that forbids holds when either fits; a rule that allows must fit
//! the real one, so a link that points elsewhere loosens nothing.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// Where path patterns begin, and how their links are followed.
#[derive(Debug, Clone, Copy)]
pub struct Bases<'a> {
    /// The session's working directory, for patterns that do not say where they begin.
    pub cwd: &'a Path,
    /// The user's home directory, for `~`.
    pub home: Option<&'a Path>,
    /// Returns a path with every link followed, also where the path does not exist. It reads the disk.
    pub real_path: fn(&Path) -> PathBuf,
}

/// Both names of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The name in the call, absolute, without `..`.
    pub(super) named: PathBuf,
    /// The name with every link followed.
    pub(super) real: PathBuf,
}

/// A pattern whose links have been followed. Its globs are compiled at the first comparison, or by [`PathPattern::compile`].
#[derive(Debug, Clone)]
pub(super) struct PathPattern {
    allows: Globs,
    forbids: Globs,
}

impl PathPattern {
    /// Reads a pattern. It means everything below what it names, too. Without a slash it means names at any depth.
    ///
    /// # Errors
    /// A sentence that names the mistake in the pattern.
    pub(super) fn new(text: &str, bases: Bases<'_>) -> Result<Self, String> {
        let real_path = bases.real_path;
        let (base, rest) = split(text, bases);
        let anywhere = base.is_none() && !rest.trim_end_matches('/').contains('/');
        // As in a path, these mean nothing: `//etc` is `/etc`.
        let parts = rest.split('/').filter(|part| !part.is_empty() && *part != ".");
        let parts: Vec<&str> = parts.collect();
        if parts.contains(&"..") {
            return Err("\"..\" may only stand at its beginning".to_owned());
        }
        let rest = parts.join("/");
        let rest = rest.as_str();
        let base = base.unwrap_or_else(|| bases.cwd.to_path_buf());
        let mut allows = Globs::new(false);
        let mut forbids = Globs::new(true);
        for base in [real_path(&base), base] {
            let below = if anywhere {
                format!("**/{rest}")
            } else {
                rest.to_owned()
            };
            allows.add(&base, &below)?;
            forbids.add(&base, &below)?;
        }
        let whole = match rest {
            "**" if !anywhere => Some(""),
            _ => rest.strip_suffix("/**").filter(|whole| !whole.is_empty()),
        };
        if let Some(whole) = whole {
            // A rule that forbids everything in a directory forbids searching the directory, too.
            forbids.add(&base_of(text, bases), whole)?;
            forbids.add(&real_path(&base_of(text, bases)), whole)?;
        }
        if anywhere {
            forbids.add(Path::new("/"), &format!("**/{rest}"))?;
        }
        // The pattern may name a link, or pass through one.
        let (fixed, open) = fixed_part(rest);
        let named = base_of(text, bases).join(&fixed);
        let real = real_path(&named);
        if real != named {
            forbids.add(&real, open)?;
            if !anywhere && !named.starts_with(bases.cwd) {
                // What lies in the working directory the agent could have put there itself.
                allows.add(&real, open)?;
            }
        }
        Ok(Self { allows, forbids })
    }

    /// Compiles the globs.
    ///
    /// # Errors
    /// A sentence that names the mistake in the pattern.
    pub(super) fn compile(&self) -> Result<(), String> {
        self.allows.set().as_ref().map_err(String::clone)?;
        self.forbids.set().as_ref().map_err(String::clone)?;
        Ok(())
    }

    /// Returns true if a rule that allows means this file.
    pub(super) fn allows(&self, place: &Place) -> bool {
        let set = self.allows.set();
        set.as_ref().is_ok_and(|set| set.is_match(&place.real))
    }

    /// Returns true if a rule that forbids means this file. A pattern that cannot be compiled forbids every file.
    pub(super) fn forbids(&self, place: &Place) -> bool {
        let Ok(set) = self.forbids.set() else {
            return true;
        };
        set.is_match(&place.named) || set.is_match(&place.real)
    }
}

/// Where a pattern begins, none when it does not say; and the rest of it.
fn split<'a>(text: &'a str, bases: Bases<'_>) -> (Option<PathBuf>, &'a str) {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix('/') {
        return (Some(PathBuf::from("/")), rest);
    }
    if let (Some(rest), Some(home)) = (text.strip_prefix('~'), bases.home)
        && (rest.is_empty() || rest.starts_with('/'))
    {
        return (Some(home.to_path_buf()), rest.trim_start_matches('/'));
    }
    let mut rest = text;
    let mut base = None;
    loop {
        if let Some(after) = rest.strip_prefix("./") {
            base.get_or_insert_with(|| bases.cwd.to_path_buf());
            rest = after;
        } else if let Some(after) = rest.strip_prefix("../") {
            base.get_or_insert_with(|| bases.cwd.to_path_buf()).pop();
            rest = after;
        } else {
            break;
        }
    }
    if rest == "." {
        return (Some(base.unwrap_or_else(|| bases.cwd.to_path_buf())), "");
    }
    if rest == ".." {
        let mut up = base.unwrap_or_else(|| bases.cwd.to_path_buf());
        up.pop();
        return (Some(up), "");
    }
    (base, rest)
}

fn base_of(text: &str, bases: Bases<'_>) -> PathBuf {
    split(text, bases).0.unwrap_or_else(|| bases.cwd.to_path_buf())
}

/// The part of a pattern before its first part with a wild card, and the rest.
fn fixed_part(rest: &str) -> (PathBuf, &str) {
    let mut fixed = PathBuf::new();
    let mut open = rest;
    while !open.is_empty() {
        let (part, after) = open.split_once('/').unwrap_or((open, ""));
        if part.contains(['*', '?', '[', '{', '\\']) {
            break;
        }
        fixed.push(part);
        open = after;
    }
    (fixed, open)
}

/// Globs of a pattern. Compiling them costs two million instructions, and most patterns of a session are for commands and are
/// never compared with a path.
#[derive(Debug, Clone)]
struct Globs {
    globs: Vec<Glob>,
    set: OnceLock<Result<GlobSet, String>>,
    /// Where letters may be capital or small for one and the same file, what forbids does not look at that.
    ignores_case: bool,
}

impl Globs {
    fn new(forbids: bool) -> Self {
        Self {
            globs: Vec::new(),
            set: OnceLock::new(),
            ignores_case: forbids && !cfg!(target_os = "linux"),
        }
    }

    /// Adds a pattern below a directory, and everything below its matches.
    fn add(&mut self, base: &Path, rest: &str) -> Result<(), String> {
        let base = globset::escape(&base.to_string_lossy());
        let base = base.trim_end_matches('/');
        let whole = if rest.is_empty() {
            base.to_owned()
        } else {
            format!("{base}/{rest}")
        };
        let below = format!("{whole}/**");
        for glob in [if whole.is_empty() { "/" } else { &whole }, &below] {
            let glob = GlobBuilder::new(glob)
                .literal_separator(true)
                .backslash_escape(true)
                .case_insensitive(self.ignores_case)
                .build();
            self.globs.push(glob.map_err(|error| error.kind().to_string())?);
        }
        Ok(())
    }

    /// The compiled globs, or the mistake in them.
    fn set(&self) -> &Result<GlobSet, String> {
        self.set.get_or_init(|| {
            let mut builder = GlobSetBuilder::new();
            for glob in &self.globs {
                builder.add(glob.clone());
            }
            builder.build().map_err(|error| error.kind().to_string())
        })
    }
}
