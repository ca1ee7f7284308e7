//! One rule: `tool` or `tool(pattern)`. What rules together come to is the module's above.

use super::call::{Call, Subject};
use super::paths::{Bases, PathPattern};
use super::wild;

/// A rule, ready to be compared.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    /// As the user wrote it.
    pub(super) text: String,
    /// The tool's name, with `*` for any letters.
    tool: String,
    what: What,
}

/// The name of the tool that a rule is about, as rules compare it: with `*` for any letters. Empty if it names none.
#[must_use]
pub fn tool_of(rule: &str) -> String {
    let name = rule.split_once('(').map_or(rule, |(name, _)| name);
    name.trim().to_ascii_lowercase()
}

#[derive(Debug, Clone)]
enum What {
    /// Every call.
    Any,
    /// Calls that the pattern fits: a path where the tool takes one, else the command or the URI.
    Fitting(Box<Pattern>),
}

#[derive(Debug, Clone)]
struct Pattern {
    text: String,
    /// None when it cannot be one for paths.
    path: Option<PathPattern>,
}

impl Rule {
    /// Reads a rule.
    ///
    /// # Errors
    /// The mistake, and a rule for the whole tool, for callers that forbid too much rather than too little.
    pub(super) fn parse(text: &str, bases: Bases<'_>) -> Result<Self, (String, Self)> {
        let text = text.trim();
        let tool = tool_of(text);
        let inside = text.split_once('(').map_or("", |(_, inside)| inside);
        let whole = |tool: String| Self {
            text: text.to_owned(),
            tool,
            what: What::Any,
        };
        if tool.is_empty() {
            return Err(("it names no tool".to_owned(), whole("*".to_owned())));
        }
        if !text.contains('(') {
            return Ok(whole(tool));
        }
        let Some(inside) = inside.strip_suffix(')') else {
            return Err(("its last letter should be a parenthesis".to_owned(), whole(tool)));
        };
        // Tools read other Unicode blanks in a path as this one, but do not join several.
        let is_other = |letter: char| letter.is_whitespace() && !letter.is_ascii();
        let blank = |letter: char| if is_other(letter) { ' ' } else { letter };
        let path_text: String = inside.trim().chars().map(blank).collect();
        let inside = inside.split_whitespace().collect::<Vec<_>>().join(" ");
        if inside.is_empty() || inside == "*" || inside == "**" {
            return Ok(whole(tool));
        }
        let is_for_commands = wild::fits(&tool, "bash");
        let path = PathPattern::new(&path_text, bases).and_then(|path| {
            if !is_for_commands {
                path.compile()?;
            }
            Ok(path)
        });
        let path = match path {
            Ok(path) => Some(path),
            // Commands may look like broken globs.
            Err(_) if is_for_commands => None,
            Err(error) => return Err((error, whole(tool))),
        };
        Ok(Self {
            text: text.to_owned(),
            tool,
            what: What::Fitting(Box::new(Pattern { text: inside, path })),
        })
    }

    /// Returns the program that a rule for `bash` names alone or with any arguments (`bash(curl *)`): its name or its path.
    pub(super) fn program(&self) -> Option<&str> {
        let What::Fitting(pattern) = &self.what else {
            return None;
        };
        let word = pattern.text.strip_suffix(" *").unwrap_or(&pattern.text);
        let is_plain = |letter: char| letter.is_alphanumeric() || "/._+-".contains(letter);
        (wild::fits(&self.tool, "bash") && word.chars().all(is_plain)).then_some(word)
    }

    /// Returns true for a rule about commands, not only about the tool that runs them.
    pub(super) fn looks_into_commands(&self) -> bool {
        matches!(self.what, What::Fitting(_)) && wild::fits(&self.tool, "bash")
    }

    /// Returns true if a rule that forbids or asks means this call. If nothing is known of the arguments, a rule for the tool
    /// does.
    pub(super) fn forbids(&self, call: &Call) -> bool {
        (self.is_about(call) || self.names_full(call))
            && self.what.fits(|pattern| match &call.subject {
                Subject::Command(script) => script.forms().any(|text| pattern.means_command(text)),
                // A pattern that is invalid for paths could mean any file.
                Subject::File(place) => pattern.path.as_ref().is_none_or(|path| path.forbids(place)),
                Subject::Uri(uri) => wild::fits(&pattern.text, uri),
                // Nothing is known of what the call does; a rule for many tools is not about its arguments.
                Subject::Unknown | Subject::Nothing => !self.tool.contains('*'),
            })
    }

    /// Returns true if a rule that forbids or asks could mean a command of which the line computes a part, such as the name of a file:
    /// `cat "$(...)"` and a rule for `cat` with some file.
    pub(super) fn may_forbid(&self, call: &Call) -> bool {
        let (Subject::Command(script), What::Fitting(pattern)) = (&call.subject, &self.what) else {
            return false;
        };
        self.is_about(call) && script.open_forms().iter().any(|pieces| pattern.may_mean(pieces))
    }

    /// Returns true if a rule that allows means this call. [`Self::allows_command`] compares single commands.
    pub(super) fn allows(&self, call: &Call) -> bool {
        // The shortened name of another server's tool can fit a pattern for this server. A name without `*` has the hash in it.
        (self.is_about(call)
            && (!self.tool.contains('*') || call.full_name.is_none() || self.names_full(call)))
            && self.what.fits(|pattern| match &call.subject {
                Subject::Command(_) | Subject::Unknown | Subject::Nothing => false,
                Subject::File(place) => pattern.path.as_ref().is_some_and(|path| path.allows(place)),
                Subject::Uri(uri) => wild::fits(&pattern.text, uri),
            })
    }

    /// Returns true if a rule that allows means this one command of a shell.
    pub(super) fn allows_command(&self, call: &Call, command: &str) -> bool {
        self.is_about(call) && self.what.fits(|pattern| pattern.means_command(command))
    }

    /// Returns true if the rule means the tool by its name before it was shortened. In that name `_` stands for each character that
    /// a name of a tool cannot have; the rule may have the character itself: `mcp__dev-box__*`.
    fn names_full(&self, call: &Call) -> bool {
        let letter = |letter: char| {
            if letter.is_ascii_alphanumeric() || letter == '*' {
                letter
            } else {
                '_'
            }
        };
        let tool: String = self.tool.chars().map(letter).collect();
        let full_name = call.full_name.as_ref();
        full_name.is_some_and(|name| wild::fits(&tool, &name.to_ascii_lowercase()))
    }

    fn is_about(&self, call: &Call) -> bool {
        wild::fits(&self.tool, &call.tool.to_ascii_lowercase())
    }
}

impl What {
    fn fits(&self, fits: impl FnOnce(&Pattern) -> bool) -> bool {
        match self {
            Self::Any => true,
            Self::Fitting(pattern) => fits(pattern),
        }
    }
}

impl Pattern {
    /// A pattern for several commands, or for any program, is no pattern for arguments of one.
    fn may_mean(&self, pieces: &[String]) -> bool {
        let program = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
        let named = program(&self.text);
        !named.contains('*')
            && !self.text.contains(['|', ';', '&'])
            && pieces.first().is_some_and(|first| program(first) == named)
            && wild::may_fit(&self.text, pieces)
    }

    /// `git log *` means `git log`, too.
    fn means_command(&self, command: &str) -> bool {
        wild::fits(&self.text, command)
            || self
                .text
                .strip_suffix(" *")
                .is_some_and(|alone| wild::fits(alone, command))
    }
}
