//! The commands of a line as rules that forbid compare them.

use super::ast::Word;
use super::computed;
use super::programs;

/// Forms of a line that are compared with rules, and their bytes; a line with more is opaque.
const MAX_FORMS: usize = 4_000;
const MAX_FORM_BYTES: usize = 4 << 20;
/// Commands of which the line computes a part, and the bytes of one; a line with more is opaque.
const MAX_OPEN: usize = 200;
const MAX_OPEN_BYTES: usize = 4_096;

/// The commands that were found so far.
#[derive(Debug, Default)]
pub(super) struct Forms {
    pub(super) texts: Vec<String>,
    /// Commands of which the line computes a part: the texts between those parts.
    pub(super) open: Vec<Vec<String>>,
    /// Some are left out.
    pub(super) is_cut: bool,
    bytes: usize,
}

impl Forms {
    /// Adds a command: with and without quotes, and by the program's name alone.
    pub(super) fn command(&mut self, words: &[Word]) {
        if self.is_cut {
            return;
        }
        let shown: Vec<String> = words.iter().map(Word::shown).collect();
        let plain: Vec<String> = words.iter().map(Word::text).collect();
        let (shown, plain) = (shown.join(" "), plain.join(" "));
        if let Some(text) = words.first().map(Word::text) {
            let name = programs::base_name(&text);
            let rest = plain.strip_prefix(text.as_str()).unwrap_or_default();
            if name.len() < text.len() {
                self.push(format!("{name}{rest}"));
            }
            if let Some(command) = name.strip_prefix("git-") {
                // `/usr/lib/git-core/git-push` is `git push`.
                self.push(format!("git {command}{rest}"));
            }
        }
        if shown != plain {
            self.push(shown);
        }
        self.push(plain);
    }

    /// Adds a command if the line computes a part of it.
    pub(super) fn open(&mut self, words: &[Word]) {
        let Some(pieces) = computed::pieces(words) else {
            return;
        };
        let bytes: usize = pieces.iter().map(|piece| 1 + piece.len()).sum();
        if self.open.contains(&pieces) {
            return;
        }
        if self.open.len() >= MAX_OPEN || bytes > MAX_OPEN_BYTES {
            self.is_cut = true;
        } else {
            self.open.push(pieces);
        }
    }

    pub(super) fn push(&mut self, form: String) {
        self.bytes += form.len();
        if self.texts.len() >= MAX_FORMS || self.bytes > MAX_FORM_BYTES {
            self.is_cut = true;
        } else {
            self.texts.push(form);
        }
    }
}
