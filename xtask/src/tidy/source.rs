//! Rules for one Rust file, and the rule on machine paths for any file.

use super::files::{SourceFile, package};
use super::{Figures, Finding, LONG_FILES, MAX_FILE, MAX_FUNCTION, finding};

/// Packages that may read the environment.
const MAY_READ_ENVIRONMENT: [&str; 3] = ["pinion", "xtask", "testkit"];
/// How the environment is read or the process changed. `split_paths` and its like only work on values.
const ENVIRONMENT: [&str; 8] = [
    "env::var",
    "env::args",
    "env::current_dir",
    "env::current_exe",
    "env::temp_dir",
    "env::home_dir",
    "set_current_dir",
    "env::set_var",
];
/// What writes to stdout.
const PRINTS: [&str; 3] = ["println!", "print!", "io::stdout()"];
/// Packages that may write to stdout.
const MAY_PRINT: [&str; 3] = ["serve", "pinion", "xtask"];
/// Packages without an async runtime.
const WITHOUT_RUNTIME: [&str; 2] = ["wire", "core"];
/// Beginnings of paths that exist on one machine only. In two parts, so that this file keeps its own rule.
const MACHINE_PATHS: [(&str, &str); 2] = [("/wo", "rk/"), ("/ro", "ot/")];

/// Runs all rules on a file and adds it to the figures.
pub(super) fn check(file: &SourceFile, findings: &mut Vec<Finding>, figures: &mut Figures) {
    if !has_module_comment(&file.text) {
        findings.push(finding(
            &file.path,
            1,
            "no `//!` comment that says what lives here and what does not",
        ));
    }
    findings.extend(words(
        file,
        &["#[allow", "#![allow"],
        "use #[expect(lint, reason = \"...\")]",
        |_| true,
    ));
    if file.is_test {
        return;
    }
    let tests = test_regions(&file.code);
    let outside = |line: usize| !tests.iter().any(|(first, last)| (*first..=*last).contains(&line));
    let length =
        file.text.lines().count() - tests.iter().map(|(first, last)| last + 1 - first).sum::<usize>();
    if length > MAX_FILE && !LONG_FILES.contains(&file.path.as_str()) {
        findings.push(finding(
            &file.path,
            1,
            &format!("{length} lines, more than {MAX_FILE}"),
        ));
    }
    for (line, name, length) in functions(&file.code) {
        if length > MAX_FUNCTION && outside(line) {
            let message = format!("{name} has {length} lines, more than {MAX_FUNCTION}");
            findings.push(finding(&file.path, line, &message));
        }
    }
    let package = package(&file.path);
    // Cargo passes everything to a build script in its environment, and reads its output.
    let builds = file.path.ends_with("/build.rs");
    if !builds && !MAY_READ_ENVIRONMENT.contains(&package) {
        let message = "the environment is read in the binary only; pass the value in";
        findings.extend(words(file, &ENVIRONMENT, message, outside));
    }
    if !builds && !MAY_PRINT.contains(&package) {
        let message = "only `serve` writes to stdout";
        findings.extend(words(file, &PRINTS, message, outside));
    }
    if WITHOUT_RUNTIME.contains(&package) {
        findings.extend(words(
            file,
            &["tokio::"],
            "no async runtime in this package",
            outside,
        ));
    }
    figures.lengths.push(length);
    for (index, line) in file
        .text
        .lines()
        .enumerate()
        .filter(|(index, _)| outside(index + 1))
    {
        let line = line.trim_start();
        figures.doc += usize::from(line.starts_with("///") || line.starts_with("//!"));
        let code = file.code.lines().nth(index).unwrap_or("");
        figures.code += usize::from(!code.trim().is_empty());
    }
}

fn has_module_comment(text: &str) -> bool {
    let mut lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("#!"));
    lines.next().is_some_and(|line| line.starts_with("//!"))
}

/// Places where code has one of the words, not as a part of a longer one.
fn words(file: &SourceFile, words: &[&str], message: &str, wanted: impl Fn(usize) -> bool) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, line) in file
        .code
        .lines()
        .enumerate()
        .filter(|(index, _)| wanted(index + 1))
    {
        if let Some(word) = words.iter().find(|word| has_word(line, word)) {
            found.push(finding(&file.path, index + 1, &format!("{word}: {message}")));
        }
    }
    found
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|head| head.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|tail| tail.chars().next());
        let joins =
            |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
        // A word that ends in punctuation needs no boundary behind it; `env::var_os` is meant by `env::var`, and so on.
        let ends_open = word.starts_with("env::") || !word.ends_with(char::is_alphanumeric);
        !joins(before) && (ends_open || !joins(after))
    })
}

/// Lines, 1-based, of items behind `#[cfg(test)]` that have a body.
fn test_regions(code: &str) -> Vec<(usize, usize)> {
    let mut regions = Vec::new();
    for (at, _) in code.match_indices("#[cfg(test)]") {
        let first = line_of(code, at);
        if let Some(last) = body_end(code, at) {
            regions.push((first, last));
        }
    }
    regions
}

/// Functions with a body: first line, name, number of lines.
fn functions(code: &str) -> Vec<(usize, String, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let before = code.get(..at).and_then(|head| head.chars().next_back());
        if before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
            continue;
        }
        let tail = code.get(at + 3..).unwrap_or("");
        let name: String = tail
            .chars()
            .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
            .collect();
        let first = line_of(code, at);
        if let Some(last) = body_end(code, at).filter(|_| !name.is_empty()) {
            found.push((first, name, last + 1 - first));
        }
    }
    found
}

/// Line of the brace that closes the first body after `from`; nothing when a `;` comes before it.
fn body_end(code: &str, from: usize) -> Option<usize> {
    let mut braces = 0_usize;
    let mut brackets = 0_usize;
    for (at, letter) in code.get(from..)?.char_indices() {
        match letter {
            '(' | '[' if braces == 0 => brackets += 1,
            ')' | ']' if braces == 0 => brackets = brackets.saturating_sub(1),
            ';' if braces == 0 && brackets == 0 => return None,
            '{' => braces += 1,
            '}' if braces <= 1 => return (braces == 1).then(|| line_of(code, from + at)),
            '}' => braces -= 1,
            _ => {}
        }
    }
    None
}

fn line_of(code: &str, at: usize) -> usize {
    1 + code.get(..at).map_or(0, |head| head.matches('\n').count())
}

/// Paths of the machine that the file was written on.
pub(super) fn machine_paths(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (head, tail) in MACHINE_PATHS {
        let word = format!("{head}{tail}");
        for (index, line) in text.lines().enumerate() {
            let begins = |at: usize| {
                let before = line.get(..at).and_then(|head| head.chars().next_back());
                !before.is_some_and(|letter| letter.is_alphanumeric() || "._-~}/".contains(letter))
            };
            if line.match_indices(&word).any(|(at, _)| begins(at)) {
                found.push(finding(
                    path,
                    index + 1,
                    &format!("{word} is a path of one machine"),
                ));
            }
        }
    }
    found
}
