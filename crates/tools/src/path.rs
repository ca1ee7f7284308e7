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
    /// The text for the model when there is a null byte in it, or when it is a `file:` URL of no local file.
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
            _ => match plain.strip_prefix("file://") {
                Some(rest) => of_url(rest).ok_or_else(|| format!("Not the URL of a local file: {plain}"))?,
                None => self.cwd.join(&plain),
            },
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

/// The path in a `file:` URL, of which `rest` follows the two slashes. Today's pi takes such URLs, which users copy from browsers.
/// None if it names another host, or a path that cannot be.
fn of_url(rest: &str) -> Option<PathBuf> {
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = path
        .split(['?', '#'])
        .next()
        .filter(|path| path.starts_with('/'))?;
    let (mut decoded, mut left) = (Vec::with_capacity(path.len()), path.as_bytes());
    while let Some((byte, rest)) = left.split_first() {
        left = rest;
        if *byte != b'%' {
            decoded.push(*byte);
            continue;
        }
        let (digits, rest) = left.split_at_checked(2)?;
        left = rest;
        // `from_str_radix` also accepts a sign.
        let digits = std::str::from_utf8(digits).ok()?;
        if digits.starts_with('+') {
            return None;
        }
        // An encoded slash would be part of a name.
        let byte = u8::from_str_radix(digits, 16).ok();
        decoded.push(byte.filter(|byte| !matches!(byte, 0 | b'/'))?);
    }
    String::from_utf8(decoded).ok().map(PathBuf::from)
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
            ("file:///tmp/a%20b/../%C3%A9", "/tmp/\u{e9}"),
            ("@file://localhost/x#L3", "/x"),
            ("file:x", "/w/d/file:x"),
        ] {
            assert_eq!(resolver.resolve(raw).unwrap(), Path::new(path), "{raw}");
        }
        assert_eq!(
            resolver.resolve("a\0b").unwrap_err(),
            "The path must not contain null bytes: a\\0b"
        );
        for url in [
            "file://host/x",
            "file:///a%2Fb",
            "file:///a%00",
            "file:///a%",
            "file:///a%+1",
            "file:///%ff",
        ] {
            assert_eq!(
                resolver.resolve(url).unwrap_err(),
                format!("Not the URL of a local file: {url}")
            );
        }
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
