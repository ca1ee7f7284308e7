//! Blocks of commands with their output, as a terminal shows them: a line that starts with `$ ` is a command, the lines up to the next
//! one are what it prints. A number stands for any number, a line `...` for any lines.

/// The commands of a block, each with the lines that it prints. Pages run the program of a clone; here it is built already.
pub(super) fn commands(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut out: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            out.push((command.replacen("cargo run -- ", "pinion ", 1), Vec::new()));
        } else if let Some((_, lines)) = out.last_mut() {
            lines.push(line);
        }
    }
    out
}

/// The first line that is missing or that the page does not show; empty lines at the end do not count.
pub(super) fn differs(wanted: &[&str], output: &str) -> Option<String> {
    let wanted: Vec<String> = wanted.iter().map(|line| numbers(line.trim_end())).collect();
    let printed: Vec<&str> = output.trim_end().lines().map(str::trim_end).collect();
    let wanted = match wanted.iter().rposition(|line| !line.is_empty()) {
        Some(last) => wanted.get(..=last).unwrap_or_default(),
        None => &[],
    };
    let mut at = 0;
    let mut may_skip = false;
    for line in wanted {
        if line.trim() == "..." {
            may_skip = true;
            continue;
        }
        let rest = printed.get(at..).unwrap_or_default();
        let found = rest.iter().position(|printed| numbers(printed) == *line);
        match found {
            Some(0) => at += 1,
            Some(skipped) if may_skip => at += skipped + 1,
            _ => {
                return Some(rest.first().map_or_else(
                    || format!("nothing instead of `{line}`"),
                    |line| format!("`{line}`"),
                ));
            }
        }
        may_skip = false;
    }
    let more = printed.get(at).filter(|_| !may_skip);
    more.map(|line| format!("`{line}`"))
}

/// The line with one digit in place of each number.
fn numbers(line: &str) -> String {
    let mut out = String::new();
    for letter in line.chars() {
        if !letter.is_ascii_digit() {
            out.push(letter);
        } else if !out.ends_with('0') {
            out.push('0');
        }
    }
    out
}
