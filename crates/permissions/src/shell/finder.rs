//! `find` and `fd`: options behind which a program follows.

use super::ast::{Part, Word};
use super::runs::MAX_BEHIND;
use super::steps::{Step, Steps};

/// Options of `find` and `fd` behind which a program follows.
const EXECUTING: [&str; 8] = [
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-x",
    "-X",
    "--exec",
    "--exec-batch",
];
/// Letters of options of `fd` that take a value.
const FD_VALUED: &str = "deEScjoCt";

/// The program in a group of letters of `fd`, such as `-Hx` or `-xprogram`: what stands behind the letter, or nothing if the program is
/// the next word.
fn grouped_exec(text: &str) -> Option<&str> {
    let letters = text
        .strip_prefix('-')
        .filter(|letters| !letters.starts_with('-'))?;
    let (at, letter) = letters
        .char_indices()
        .find(|(_, letter)| FD_VALUED.contains(*letter) || "xX".contains(*letter))?;
    "xX".contains(letter)
        .then(|| letters.get(at + 1..).unwrap_or_default())
}

/// A program that runs others with the files that it finds.
pub(super) fn finder<'w>(steps: &mut Steps<'w>, name: &str, arguments: &'w [Word]) {
    let mut found = 0;
    for (at, word) in arguments.iter().enumerate() {
        let text = word.text();
        if let Some((option, value)) = text.split_once('=')
            && EXECUTING.contains(&option)
        {
            steps.line(value);
        }
        let glued = if name.starts_with("fd") {
            grouped_exec(&text)
        } else {
            None
        };
        if let Some(program) = glued.filter(|program| !program.is_empty()) {
            let behind = arguments.get(at + 1..).unwrap_or_default();
            let words: Vec<Word> = std::iter::once(Word::literal_of(program))
                .chain(behind.iter().map(|word| word.replaced("{}", &Part::Unknown)))
                .collect();
            steps.push(Step::Replaced(arguments.get(at..).unwrap_or_default(), words));
            continue;
        }
        if glued.is_none() && !EXECUTING.contains(&text.as_str()) {
            continue;
        }
        found += 1;
        let behind = arguments.get(at + 1..).unwrap_or_default();
        // A plus is an argument unless the files stand before it: `-exec env -u + program \;`.
        let is_end = |(at, word): (usize, &Word)| {
            let before = at.checked_sub(1).and_then(|before| behind.get(before));
            let has_files = before.is_some_and(|before| before.text() == "{}");
            let text = word.text();
            text == ";" || text == "+" && has_files
        };
        let end = behind.iter().enumerate().position(is_end);
        let command = behind.get(..end.unwrap_or(behind.len())).unwrap_or_default();
        // It runs the files that it finds.
        let runs_found = command
            .first()
            .is_none_or(|program| program.text().contains("{}"));
        if found > MAX_BEHIND || runs_found {
            steps.hide();
        }
        let replaced = command
            .iter()
            .map(|word| word.replaced("{}", &Part::Unknown))
            .collect();
        steps.push(Step::Replaced(command, replaced));
    }
}
