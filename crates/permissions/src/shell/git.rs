//! `git`: its subcommands, options and settings that name commands.

use std::borrow::Cow;

use super::ast::Word;
use super::steps::{Step, Steps};

/// Subcommands of `git` behind which a command follows.
const GIT_RUNS: [[&str; 2]; 4] = [
    ["bisect", "run"],
    ["submodule", "foreach"],
    ["submodule--helper", "foreach"],
    ["hook", "run"],
];
/// Options of its subcommands whose values are commands.
const GIT_COMMANDS: [&str; 27] = [
    "--access-hook",
    "--authors-prog",
    "--header-cmd",
    "--exec",
    "-x",
    "--extcmd",
    "--upload-pack",
    "--receive-pack",
    "--upload-archive",
    "--open-files-in-pager",
    "-O",
    "--env-filter",
    "--tree-filter",
    "--index-filter",
    "--msg-filter",
    "--commit-filter",
    "--tag-name-filter",
    "--parent-filter",
    "--smtp-server",
    "--sendmail-cmd",
    "--httpd",
    "--browser",
    "--to-cmd",
    "--cc-cmd",
    "--setup",
    "--editor",
    "--trailer-command",
];
/// Options that are beginnings of those, and mean something else.
const GIT_WHOLE: [&str; 14] = [
    "--author",
    "--cc",
    "--commit",
    "--edit",
    "--env",
    "--head",
    "--header",
    "--index",
    "--parent",
    "--set",
    "--tag",
    "--to",
    "--trailer",
    "--tree",
];
/// Settings whose values are never run. A name that ends with a dot stands for all that begin so.
const GIT_QUIET: [&str; 22] = [
    "user.",
    "color.",
    "core.quotepath",
    "core.autocrlf",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "advice.",
    "commit.gpgsign",
    "init.defaultbranch",
    "log.",
    "diff.renames",
    "diff.algorithm",
    "diff.context",
    "http.",
    "safe.directory",
    "push.default",
    "pull.",
    "fetch.",
    "merge.conflictstyle",
    "rebase.",
    "tag.gpgsign",
];
/// Options of `git config` before a name, which only say which settings are meant and how they are written.
const CONFIG_FLAGS: [&str; 16] = [
    "--add",
    "--bool",
    "--bool-or-int",
    "--global",
    "--includes",
    "--int",
    "--local",
    "--name-only",
    "--null",
    "--path",
    "--replace-all",
    "--show-origin",
    "--show-scope",
    "--system",
    "--worktree",
    "-z",
];
/// Words of `git config` before a name with which it takes no value.
const CONFIG_READS: [&str; 13] = [
    "--get",
    "--get-all",
    "--get-color",
    "--get-colorbool",
    "--get-regexp",
    "--get-urlmatch",
    "--list",
    "--unset",
    "--unset-all",
    "-l",
    "get",
    "list",
    "unset",
];
/// Options of `git` itself that take the next word.
const GIT_VALUED: [&str; 9] = [
    "-C",
    "-c",
    "--attr-source",
    "--shallow-file",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
];

/// Returns true for an option of `git` itself that takes the next word.
pub(super) fn takes_value(option: &str) -> bool {
    GIT_VALUED.contains(&option)
}

/// `git [options] subcommand [arguments]`.
pub(super) fn git<'w>(steps: &mut Steps<'w>, arguments: &'w [Word]) {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let text = word.text();
        if !text.starts_with('-') {
            break;
        }
        let (option, value) = text
            .split_once('=')
            .map_or((text.as_str(), None), |(option, value)| (option, Some(value)));
        let next = arguments.get(at + 1);
        if word.changes() && !(value.is_some() && takes_value(option)) {
            // `-$x` may be `-c`, and what follows a setting.
            steps.hide();
        }
        match option {
            "-c" => next.into_iter().for_each(|setting| git_setting(steps, setting)),
            _ if option.starts_with("-c") => {
                git_setting(steps, &Word::literal_of(option.get(2..).unwrap_or_default()))
            }
            "--config-env" => steps.hide(),
            "--exec-path" if value.is_some() => steps.hide(),
            _ => {}
        }
        at += 1;
        if value.is_none() && takes_value(option) {
            at += 1;
        }
    }
    let behind = arguments.get(at..).unwrap_or_default();
    if at > 0 {
        // Rules name the subcommand.
        let mut words = vec![Word::literal_of("git")];
        words.extend_from_slice(behind);
        steps.push(Step::Form(Cow::Owned(words)));
    }
    git_subcommand(steps, behind);
}

fn git_subcommand<'w>(steps: &mut Steps<'w>, words: &'w [Word]) {
    let Some(first) = words.first() else {
        return;
    };
    let command = first.text();
    if first.is_dynamic() && command.is_empty() {
        // It may be any subcommand, with any settings.
        return steps.hide();
    }
    if GIT_RUNS
        .iter()
        .any(|run| words.iter().map(Word::text).take(8).any(|word| word == run[1]) && command == run[0])
    {
        for at in 2..words.len().min(16) {
            let behind = words.get(at..).unwrap_or_default();
            if behind.first().is_some_and(Word::changes) {
                steps.hide();
            }
            let texts: Vec<String> = behind.iter().map(Word::text).collect();
            steps.line(&texts.join(" "));
        }
    }
    if command == "for-each-repo" {
        each_repository(steps, words);
    }
    if command.starts_with("remote-") {
        // `remote-ext` runs its arguments; other transports have names of programs, too.
        let texts: Vec<String> = words.iter().skip(2).map(Word::text).collect();
        steps.line(&texts.join(" "));
    }
    if command == "merge-index" {
        // Its first argument is a program.
        words.iter().skip(1).for_each(|word| steps.guess(&word.text()));
    }
    if command == "config" && words.len() > 2 {
        git_config(steps, words);
    }
    git_options(steps, &command, words);
}

/// `git for-each-repo --config=name subcommand`.
fn each_repository<'w>(steps: &mut Steps<'w>, words: &'w [Word]) {
    let mut at = 1;
    while let Some(text) = words.get(at).map(Word::text).filter(|text| text.starts_with('-')) {
        let takes_next = text.len() > 2 && "--config".starts_with(&text);
        at += if takes_next { 2 } else { 1 };
    }
    let behind = words.get(at..).unwrap_or_default();
    let mut run = vec![Word::literal_of("git")];
    run.extend_from_slice(behind);
    steps.push(Step::Replaced(behind, run));
}

/// `git config name value`: the value may be a command.
fn git_config(steps: &mut Steps<'_>, words: &[Word]) {
    let mut at = config_name(words, 1);
    let text = |at: usize| words.get(at).map(Word::text).unwrap_or_default();
    // Only here: behind the name they are a value or a pattern for old values.
    if CONFIG_READS.contains(&text(at).as_str()) {
        return;
    }
    if text(at) == "set" {
        at = config_name(words, at + 1);
    }
    if is_quiet_setting(&text(at)) {
        return;
    }
    for (at, word) in words.iter().enumerate().skip(1) {
        steps.guess(word.text().trim_start_matches('!'));
        if word.text().to_ascii_lowercase().starts_with("alias.") {
            // The value is a subcommand with its arguments.
            steps.guess_words("git ", words.get(at + 1..).unwrap_or_default());
        }
    }
    if words
        .iter()
        .any(|word| word.changes() || word.text().starts_with('!'))
    {
        steps.hide();
    }
}

/// The position behind options that say which settings are meant.
fn config_name(words: &[Word], mut at: usize) -> usize {
    while let Some(text) = words.get(at).map(Word::text) {
        let has_value = ["--file=", "--type="]
            .iter()
            .any(|option| text.starts_with(option));
        at += match text.as_str() {
            "-f" | "--file" | "--type" => 2,
            flag if has_value || CONFIG_FLAGS.contains(&flag) => 1,
            _ => break,
        };
    }
    at
}

/// Options of subcommands that take commands.
fn git_options(steps: &mut Steps<'_>, command: &str, words: &[Word]) {
    let is_pickaxe = ["log", "diff", "show", "commit", "cherry-pick"].contains(&command);
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text();
        if text.contains("ext::") {
            steps.hide();
        }
        for option in GIT_COMMANDS {
            if is_pickaxe && option.len() == 2 {
                continue;
            }
            if text == option
                && command != "add"
                && command != "rev-list"
                && !(command == "clean" && option == "-x")
            {
                words.get(at + 1).into_iter().for_each(|value| steps.code(value));
            } else if let Some(value) = text.strip_prefix(option)
                && value.starts_with('=')
            {
                match word.literal() {
                    Some(_) => steps.line(value.trim_start_matches('=')),
                    None => steps.hide(),
                }
            }
        }
        shortened(steps, word, words.get(at + 1));
        grouped(steps, command, word, words.get(at + 1));
        if let Some(setting) = text.strip_prefix("--config=").filter(|_| command == "clone") {
            git_setting(steps, &Word::literal_of(setting));
        }
        if command == "clone" && text == "--config" {
            words
                .get(at + 1)
                .into_iter()
                .for_each(|value| git_setting(steps, value));
        }
    }
}

/// `git` takes a long option by its beginning.
fn shortened(steps: &mut Steps<'_>, word: &Word, next: Option<&Word>) {
    let text = word.text();
    let (name, value) = text
        .split_once('=')
        .map_or((text.as_str(), None), |(name, value)| (name, Some(value)));
    // Two dashes and two letters; fewer mean other options.
    let is_meant = |option: &&str| name.len() >= 4 && option.starts_with(name) && **option != *name;
    if !name.starts_with("--") || GIT_WHOLE.contains(&name) || !GIT_COMMANDS.iter().any(is_meant) {
        return;
    }
    match value {
        Some(_) if word.changes() => steps.hide(),
        Some(value) => steps.line(value),
        None => next.into_iter().for_each(|next| steps.code(next)),
    }
}

/// Letters of options in one word, such as `rebase -ix program` and `grep -nOprogram`.
fn grouped(steps: &mut Steps<'_>, command: &str, word: &Word, next: Option<&Word>) {
    // Letters that name commands, and letters that take another value.
    let (commands, valued) = match command {
        "rebase" => ("x", "XsCS"),
        "difftool" => ("x", "t"),
        "grep" => ("O", "efmABC"),
        "clone" => ("uc", "obj"),
        _ => return,
    };
    let text = word.text();
    let group = text.strip_prefix('-').filter(|group| !group.starts_with('-'));
    let first = group
        .into_iter()
        .flat_map(str::char_indices)
        .find(|(_, letter)| commands.contains(*letter) || valued.contains(*letter));
    let Some((at, letter)) = first.filter(|(_, letter)| commands.contains(*letter)) else {
        return;
    };
    let value = match group.and_then(|group| group.get(at + 1..)) {
        None | Some("") if letter == 'O' => return,
        None | Some("") => next.cloned(),
        Some(_) if word.changes() => return steps.hide(),
        Some(value) => Some(Word::literal_of(value)),
    };
    match value {
        Some(value) if letter == 'c' => git_setting(steps, &value),
        Some(value) => steps.code(&value),
        None => {}
    }
}

/// `name=value` behind `-c`.
fn git_setting(steps: &mut Steps<'_>, word: &Word) {
    let text = word.text();
    let (name, value) = text.split_once('=').unwrap_or((&text, ""));
    if text.contains("ext::") {
        steps.hide();
    }
    if is_quiet_setting(name) {
        return;
    }
    if word.changes() || name.is_empty() {
        return steps.hide();
    }
    let name = name.to_ascii_lowercase();
    let is_path = name.contains("path")
        || name.contains("include")
        || name.contains("template")
        || name.starts_with("protocol.");
    if is_path && name != "core.hookspath" || name == "core.hookspath" && value != "/dev/null" {
        steps.hide();
    } else if name.starts_with("alias.") && !value.starts_with('!') {
        steps.line(&format!("git {value}"));
    } else {
        steps.line(value.trim_start_matches('!'));
    }
}

fn is_quiet_setting(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // The name of a driver may be that of a setting: `diff.context.textconv`.
    let is_known = |quiet: &&str| name == **quiet || quiet.ends_with('.') && name.starts_with(*quiet);
    GIT_QUIET.iter().any(is_known) && !name.ends_with("cmd") && !name.ends_with("command")
}
