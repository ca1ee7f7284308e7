//! Code for `node`: whether it only reads, writes and prints.

use super::code::words;
use super::programs::has;

/// Words of code that runs programs or texts, or gets at functions that do.
const RUNS: &str = " child_process constructor eval Function globalThis global mainModule binding import module vm spawn \
    exec execSync spawnSync fork this Reflect Proxy worker_threads repl inspector dlopen __proto__ prototype getOwnPropertyDescriptor \
    getOwnPropertyDescriptors getPrototypeOf _load createRequire runInThisContext compile ";
/// Modules that run nothing.
const MODULES: [&str; 12] = [
    "fs",
    "path",
    "os",
    "util",
    "url",
    "crypto",
    "http",
    "https",
    "assert",
    "zlib",
    "querystring",
    "events",
];
/// Members of `process` that run nothing. Others load modules.
const PROCESS: &str = " arch argv argv0 chdir config cpuUsage cwd env execArgv execPath exit exitCode features getgid getuid hrtime \
    memoryUsage nextTick off on once pid platform ppid release resourceUsage stderr stdin stdout title umask uptime version versions ";
/// Reserved words behind which a bracket begins a list or a pattern.
const BEFORE_LIST: &str =
    " case const delete do else extends in instanceof new return throw typeof var void ";

/// JavaScript that reads files and prints, and calls nothing by a computed name.
pub(super) fn is_quiet(code: &str) -> bool {
    let requires = code.match_indices("require").all(|(at, _)| {
        let rest = code.get(at + "require".len()..).unwrap_or_default();
        let inner = rest
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'))
            .map(|(inner, _)| inner)
            .unwrap_or_default();
        let name = inner.trim_matches(['\'', '"']);
        let is_file = (name.starts_with("./") || name.starts_with("../")) && name.ends_with(".json");
        inner.len() == name.len() + 2 && (MODULES.contains(&name.trim_start_matches("node:")) || is_file)
    });
    requires
        && !code.match_indices('[').any(|(at, _)| computes(code, at))
        && code
            .match_indices("process")
            .all(|(at, _)| is_quiet_process(code, at))
        && !code.contains(['\\', '`'])
        && code.is_ascii()
        && !words(code).any(|word| has(RUNS, word))
}

/// Returns true if the bracket at this position computes the name of a member: `x[a + b]`, `x?.[a + b]` and `{[a + b]: x}`.
fn computes(code: &str, at: usize) -> bool {
    let (before, rest) = code.split_at_checked(at).unwrap_or_default();
    let (inner, after) = rest
        .get(1..)
        .and_then(|rest| rest.split_once(']'))
        .unwrap_or_default();
    let line = before.trim_end_matches([' ', '\t']);
    let before = line.trim_end();
    let is_line = before.len() == line.len();
    // Comments may stand between a value and its bracket.
    let has_comment = !is_line && before.rsplit('\n').next().is_some_and(|last| last.contains("//"));
    let is_value = |letter: char| letter.is_alphanumeric() || "_$)]}/.".contains(letter);
    let is_access = before.ends_with(is_value)
        && !before.ends_with("...")
        && !(is_line && begins_list(before, inner, after));
    let is_key = before.ends_with('{') || before.ends_with(',') && after.trim_start().starts_with([':', '(']);
    (has_comment || is_access || is_key) && !inner.split(',').all(is_literal)
}

/// Returns true if a word stands before the bracket behind which a list or a pattern begins: `return [a]`, `const [a] = b`.
fn begins_list(before: &str, inner: &str, after: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let outer = before.trim_end_matches(is_part);
    let word = before.get(outer.len()..).unwrap_or_default();
    if outer.ends_with(['$', '#']) || outer.trim_end().ends_with('.') {
        // The end of a name, or a member.
        return false;
    }
    let is_pattern = |text: &str| {
        text.chars()
            .all(|letter| is_part(letter) || "$,[]{}: ".contains(letter))
    };
    match word {
        // Both may be names of variables, too.
        "let" => {
            let is_assigned = after.trim_start().starts_with('=') || after.starts_with(" of ");
            is_assigned && !inner.contains('[') && is_pattern(inner)
        }
        "of" => {
            let header = outer.rsplit_once('(').map_or("", |(_, header)| header);
            let declares = ["const ", "let ", "var "]
                .iter()
                .any(|word| header.starts_with(word));
            declares && is_pattern(header)
        }
        word => has(BEFORE_LIST, word),
    }
}

/// Returns true if the word at this position is not `process`, or if a harmless member of it follows.
fn is_quiet_process(code: &str, at: usize) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || "_$".contains(letter);
    let before = code.get(..at).unwrap_or_default();
    let after = code.get(at + "process".len()..).unwrap_or_default();
    if before.ends_with(is_part) || after.starts_with(is_part) {
        return true;
    }
    let member = after.strip_prefix('.').and_then(|rest| words(rest).next());
    member.is_some_and(|member| {
        after.get(1..).is_some_and(|rest| rest.starts_with(member)) && has(PROCESS, member)
    })
}

/// Returns true for a number or a text. The words of texts are compared with [`RUNS`], too.
fn is_literal(text: &str) -> bool {
    let text = text.trim();
    let mut quotes = ['\'', '"'].into_iter();
    let quoted = quotes.find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
    match quoted {
        Some(inner) => !inner.contains(['\'', '"']),
        None => text.chars().all(|letter| letter.is_ascii_digit()),
    }
}
