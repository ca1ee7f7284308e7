//! From what a model writes as a path to an absolute one (pi-core.md 5.1). What a sandbox says of it is not known here.

use std::path::{Component, Path, PathBuf};

use unicode_normalization::UnicodeNormalization as _;

/// How paths are resolved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resolver<'a> {
    /// Base of relative paths, absolute.
    pub(crate) cwd: &'a Path,
    /// What `~` stands for.
    pub(crate) home: Option<&'a Path>,
}

impl Resolver<'_> {
    /// The absolute path, without `.` and `..`.
    ///
    /// # Errors
    /// The text for the model when there is a null byte in it.
    pub(crate) fn resolve(&self, raw: &str) -> Result<PathBuf, String> {
        if raw.contains('\0') {
            return Err(format!(
                "The path must not contain null bytes: {}",
                raw.escape_debug()
            ));
        }
        let raw = raw.strip_prefix('@').unwrap_or(raw);
        let plain: String = raw
            .chars()
            .map(|c| if is_unicode_space(c) { ' ' } else { c })
            .collect();
        let path = match (plain.strip_prefix('~'), self.home) {
            (Some(""), Some(home)) => home.to_path_buf(),
            (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => self.cwd.join(&plain),
        };
        Ok(normalize(&path))
    }

    /// As [`Self::resolve`]; when nothing is there, the ways file managers and screenshots spell such a name are tried.
    pub(crate) fn resolve_existing(&self, raw: &str) -> Result<PathBuf, String> {
        let path = self.resolve(raw)?;
        if path.symlink_metadata().is_ok() {
            return Ok(path);
        }
        let Some(text) = path.to_str() else {
            return Ok(path);
        };
        let narrow = narrow_before_meridiem(text);
        let nfd: String = text.nfd().collect();
        let curly = text.replace('\'', "\u{2019}");
        let both: String = nfd.replace('\'', "\u{2019}");
        let found = [narrow, nfd, curly, both]
            .into_iter()
            .map(PathBuf::from)
            .find(|path| path.exists());
        Ok(found.unwrap_or(path))
    }
}

/// Spaces that models copy from elsewhere and mean as a plain one.
pub(crate) fn is_unicode_space(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// macOS puts a narrow no-break space before AM and PM in the names of screenshots.
fn narrow_before_meridiem(text: &str) -> String {
    ["AM.", "PM.", "am.", "pm."]
        .iter()
        .fold(text.to_owned(), |text, mark| {
            text.replace(&format!(" {mark}"), &format!("\u{202f}{mark}"))
        })
}

/// Takes out `.` and `..` without looking at the disk.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// `path` as seen from `base`, with `/`; the path itself when it is elsewhere.
pub(crate) fn relative(path: &Path, base: &Path) -> String {
    path.strip_prefix(base)
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_paths_are_resolved() {
        let resolver = Resolver {
            cwd: Path::new("/w/d"),
            home: Some(Path::new("/home/u")),
        };
        for (raw, path) in [
            ("a.txt", "/w/d/a.txt"),
            ("@a.txt", "/w/d/a.txt"),
            ("@@a", "/w/d/@a"),
            ("./x/../y", "/w/d/y"),
            ("../../../../etc", "/etc"),
            ("/abs", "/abs"),
            ("~", "/home/u"),
            ("~/x", "/home/u/x"),
            ("~//x", "/home/u/x"),
            ("~user/x", "/w/d/~user/x"),
            ("a\u{a0}b\u{3000}c", "/w/d/a b c"),
            ("", "/w/d"),
        ] {
            assert_eq!(resolver.resolve(raw).unwrap(), Path::new(path), "{raw}");
        }
        assert_eq!(
            resolver.resolve("a\0b").unwrap_err(),
            "The path must not contain null bytes: a\\0b"
        );
    }

    #[test]
    fn file_name_variants_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let resolver = Resolver {
            cwd: dir.path(),
            home: None,
        };
        for (asked, there) in [
            ("Shot 1.00 PM.png", "Shot 1.00\u{202f}PM.png"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("it's", "it\u{2019}s"),
            ("caf\u{e9}'s", "cafe\u{301}\u{2019}s"),
        ] {
            std::fs::write(dir.path().join(there), "x").unwrap();
            assert_eq!(resolver.resolve_existing(asked).unwrap(), dir.path().join(there));
        }
        assert_eq!(
            resolver.resolve_existing("none").unwrap(),
            dir.path().join("none")
        );
    }
}
