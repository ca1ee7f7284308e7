//! Values of variables: what in them may be a command. The commands are compared with rules in `judge`.

/// Bytes of a value that are read.
const BYTES: usize = 4_096;
/// Options in a value that are read, each with the words after it.
const OPTIONS: usize = 64;

/// Possible commands in a value.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Candidates {
    /// Texts that a program may run.
    pub(super) commands: Vec<String>,
    /// The value has more, which could name any program.
    pub(super) is_cut: bool,
}

/// Reads the value of a variable.
pub(super) fn candidates(name: &str, value: &str) -> Candidates {
    let mut found = Candidates::default();
    // Programs read variables with such names, and no list knows all that name programs.
    let is_for_programs = !name.contains(|letter: char| letter.is_ascii_lowercase());
    if !is_for_programs && !value.contains('-') {
        return found;
    }
    found.is_cut = value.len() > BYTES;
    let words: Vec<&str> = value
        .get(..value.floor_char_boundary(BYTES))
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    options(&words, &mut found);
    if is_for_programs {
        for word in words {
            found
                .commands
                .push(word.trim_start_matches(['!', '|']).to_owned());
            found.commands.extend(word.get(2..).map(str::to_owned));
        }
    }
    found
}

/// A value may become the options of a program: what follows them may be a command.
fn options(words: &[&str], found: &mut Candidates) {
    let mut options = words.iter().enumerate().filter(|(_, word)| word.starts_with('-'));
    for (at, word) in options.by_ref().take(OPTIONS) {
        let after = words.get(at + 1..).unwrap_or_default();
        // `-wrapper program,argument` and `-C linker=program` as well.
        let pieces = [word].into_iter().chain(after.first());
        let pieces = pieces.filter(|word| word.contains(['=', ',']));
        let pieces = pieces.flat_map(|word| word.split(['=', ',']));
        found.commands.extend(pieces.map(str::to_owned));
        if !after.is_empty() {
            found.commands.push(after.join(" "));
        }
    }
    found.is_cut |= options.next().is_some();
}
