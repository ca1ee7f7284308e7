//! Which hook executables a session has: files whose names begin with an event's name, and commands in settings. Whether a
//! project may bring any is decided by [`Places`]. Running them is the caller's business.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use extensions::combining::{STREAMED, names};
use extensions::line::Generation;
use files::Root;

use crate::limits;
use crate::places::Places;
use crate::settings::{HookCommand, distance};
use crate::source::Scope;

/// Endings of names that make a file something else than a hook.
const LEFT_ALONE: [&str; 4] = ["~", ".bak", ".disabled", ".sample"];

/// A hook executable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// The event that it is run for.
    pub event: &'static str,
    /// What people know it by: its file, or the program of a setting.
    pub path: PathBuf,
    /// The program that is started.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Patterns of the tools that it wants to know about; none: all.
    pub tools: Vec<String>,
    /// How long it may run.
    pub timeout: Duration,
    /// Whose it is.
    pub scope: Scope,
}

/// A file or a setting that was to be a hook and is none, or a folder of hooks that cannot be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The file, the folder, or the program of a setting.
    pub path: PathBuf,
    /// Whose it is.
    pub scope: Scope,
    /// Why.
    pub why: String,
    /// True if it may have been meant to check calls: it was named, or its name begins with an event or almost so. Without it the
    /// session must not go on as if nothing were to be checked.
    pub is_guard: bool,
}

impl Hook {
    /// What failures call it.
    #[must_use]
    pub fn label(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct Finding {
    /// In the order in which they are asked.
    pub hooks: Vec<Hook>,
    /// Files, folders and settings that were meant for hooks and cannot be used.
    pub refused: Vec<Refused>,
}

/// The hook executables of a session: the user's, the project's where it is trusted, those of settings, those named on the
/// command line; files of a folder by name.
#[must_use]
pub fn find(places: &Places<'_>) -> Finding {
    let settings = places.settings;
    let wait = settings
        .hook_timeout_ms
        .map_or(limits::HOOK_WAIT, Duration::from_millis);
    let mut finder = Finder {
        wait,
        generation: places.choice.generation,
        seen: HashSet::new(),
        finding: Finding::default(),
    };
    if !places.choice.only_named && !places.choice.no_hooks {
        finder.folder(&Root::user(), &places.agent_dir.join("hooks"), Scope::User);
        for dir in places.project_dirs() {
            let root = places.root(Scope::Project, &dir);
            finder.folder(&root, &dir.join("hooks"), Scope::Project);
        }
        for scope in [Scope::User, Scope::Project] {
            if scope == Scope::Project && !places.is_trusted() {
                continue;
            }
            for extra in settings.hooks.iter().filter(|extra| extra.scope == scope) {
                finder.named(&places.root(scope, &extra.path), &extra.path, scope);
            }
            for command in settings
                .hook_commands
                .iter()
                .filter(|command| command.scope == scope)
            {
                finder.command(command);
            }
        }
    }
    for path in &places.choice.hooks {
        finder.named(&Root::user(), path, Scope::Temporary);
    }
    finder.finding
}

/// Returns true for a script of the TypeScript host, false for a script that runs by itself.
pub(crate) fn is_script(root: &Root, path: &Path) -> bool {
    let ends = path
        .extension()
        .is_some_and(|ending| ending == "ts" || ending == "js");
    let runs = || Event::of(path).is_some() && shebang(root, path).is_some();
    ends && !runs()
}

struct Finder {
    /// How long those may run that do not say.
    wait: Duration,
    /// The generation that the client belongs to.
    generation: Generation,
    /// One file is one hook, by whichever name it is found.
    seen: HashSet<PathBuf>,
    finding: Finding,
}

impl Finder {
    fn folder(&mut self, root: &Root, dir: &Path, scope: Scope) {
        let problem = match root.list(dir, limits::HOOK_ENTRIES) {
            Ok((paths, is_cut)) => {
                for path in paths {
                    self.file(root, path, scope, false);
                }
                is_cut.then(|| format!("It has more than {} entries", limits::HOOK_ENTRIES))
            }
            Err(error) => unlisted(dir, &error),
        };
        // Any hook may be among the entries that are missing.
        if let Some(why) = problem {
            self.refuse(dir.to_path_buf(), scope, why, true);
        }
    }

    /// A file or a folder named in settings or on the command line.
    fn named(&mut self, root: &Root, path: &Path, scope: Scope) {
        if root.is_dir(path) {
            let known = self.finding.hooks.len() + self.finding.refused.len();
            self.folder(root, path, scope);
            let is_empty = self.finding.hooks.len() + self.finding.refused.len() == known;
            let holds_nothing = || extensions::find::at(root, path, self.generation).is_empty();
            if is_empty && scope == Scope::Temporary && holds_nothing() {
                self.refuse(path.to_path_buf(), scope, "It holds no hook".to_owned(), true);
            }
        } else {
            self.file(root, path.to_path_buf(), scope, true);
        }
    }

    fn file(&mut self, root: &Root, path: PathBuf, scope: Scope, named: bool) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let left_alone = name.starts_with('.') || LEFT_ALONE.iter().any(|ending| name.ends_with(ending));
        if is_script(root, &path) || (!named && (left_alone || !root.is_readable_or_refused(&path))) {
            return;
        }
        let real = root.real(&path).unwrap_or_else(|_| path.clone());
        if !self.seen.insert(real) {
            return;
        }
        let (event, runs) = (Event::of(&path), how_to_run(root, &path));
        let why = match (event, runs) {
            (_, _) if !root.is_file(&path) => missing(root, &path),
            (Some(Event::Streamed(event, once)), _) => streamed(event, once),
            (Some(Event::Known(event)), Some((program, args))) => {
                return self.add(Hook {
                    event,
                    path,
                    program,
                    args,
                    tools: Vec::new(),
                    timeout: self.wait,
                    scope,
                });
            }
            (Some(_), None) => "It is not executable and does not begin with #!".to_owned(),
            (None, Some(_)) => "Its name does not begin with the name of an event".to_owned(),
            (None, None) if named => "Its name does not begin with the name of an event".to_owned(),
            (None, None) => return,
        };
        let is_guard = named || matches!(event, Some(Event::Known(_))) || resembles_event(&path);
        self.refuse(path, scope, why, is_guard);
    }

    fn command(&mut self, command: &HookCommand) {
        let (path, scope) = (command.program.clone(), command.scope);
        let Some(event) = names().find(|name| *name == command.event) else {
            let event = STREAMED.iter().find(|(event, _)| *event == command.event);
            let why = match event {
                Some((event, once)) => streamed(event, once),
                None => format!("There is no event {}", command.event),
            };
            return self.refuse(path, scope, why, true);
        };
        if !command.tools.is_empty() && !event.starts_with("tool_") {
            return self.refuse(
                path,
                scope,
                format!("{event} is not about a tool: leave out \"tools\""),
                true,
            );
        }
        self.add(Hook {
            event,
            program: command.program.clone().into(),
            path,
            args: command.args.iter().map(OsString::from).collect(),
            tools: command.tools.clone(),
            timeout: command.timeout.unwrap_or(self.wait),
            scope,
        });
    }

    fn add(&mut self, hook: Hook) {
        if self.finding.hooks.len() < limits::HOOKS {
            self.finding.hooks.push(hook);
        } else {
            let why = format!("There are {} hooks already", limits::HOOKS);
            self.refuse(hook.path, hook.scope, why, true);
        }
    }

    fn refuse(&mut self, path: PathBuf, scope: Scope, why: String, is_guard: bool) {
        self.finding.refused.push(Refused {
            path,
            scope,
            why,
            is_guard,
        });
    }
}

/// Why a folder cannot be listed. Returns `None` if nothing has its name: then there are no hooks.
fn unlisted(dir: &Path, error: &io::Error) -> Option<String> {
    match files::dangling_link(dir) {
        _ if !files::is_absent(error) => Some(error.to_string()),
        Some(link) if link == dir => Some("It is a link that leads nowhere".to_owned()),
        Some(link) => Some(format!(
            "It is behind a link that leads nowhere: {}",
            link.display()
        )),
        None => dir.symlink_metadata().is_ok().then(|| error.to_string()),
    }
}

/// Why a path is no hook.
fn missing(root: &Root, path: &Path) -> String {
    match root.find(path) {
        Err(error) if !files::is_absent(&error) => error.to_string(),
        Ok(_) => "It is not a regular file".to_owned(),
        Err(_) => "There is no such file".to_owned(),
    }
}

fn streamed(event: &str, once: &str) -> String {
    format!("{event} comes with every piece, and hooks are not run for it; {once} comes once")
}

/// Returns true for `tool_cal.sh` and `tol_call`: a file that is almost a hook.
fn resembles_event(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let word = name.split(['.', '-']).next().unwrap_or_default().to_lowercase();
    // Letters of the shortest names resemble too much.
    names().any(|event| event.len() > 6 && distance(&word, event) <= 2)
}

/// The event that a file name begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Known(&'static str),
    /// It comes with every piece; the second event comes once.
    Streamed(&'static str, &'static str),
}

impl Event {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let begins = |event: &&str| {
            let rest = name.strip_prefix(*event);
            rest.is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric()))
        };
        let known = names().map(Self::Known);
        let streamed = STREAMED
            .into_iter()
            .map(|(event, once)| Self::Streamed(event, once));
        let all = known.chain(streamed);
        // `session_before_compact.sh` is not about `session`.
        all.filter(|event| begins(&event.name()))
            .max_by_key(|event| event.name().len())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Known(name) | Self::Streamed(name, _) => name,
        }
    }
}

/// The program and the arguments that run a file: itself, or whom its first line names.
fn how_to_run(root: &Root, path: &Path) -> Option<(OsString, Vec<OsString>)> {
    if root.find(path).ok()?.mode & 0o111 != 0 {
        return Some((path.into(), Vec::new()));
    }
    let (program, arg) = shebang(root, path)?;
    let args = arg.into_iter().map(OsString::from).chain([path.into()]);
    Some((program.into(), args.collect()))
}

/// The program of a file's `#!` line and its argument, which is one as for the system itself.
fn shebang(root: &Root, path: &Path) -> Option<(String, Option<String>)> {
    let limit = u64::try_from(limits::SHEBANG).unwrap_or(u64::MAX);
    let (start, _) = root.read_bytes(path, limit).ok()?;
    let text = String::from_utf8_lossy(&start);
    let line = text.lines().next()?.strip_prefix("#!")?.trim();
    let (program, arg) = match line.split_once(char::is_whitespace) {
        Some((program, arg)) => (program, Some(arg.trim().to_owned())),
        None => (line, None),
    };
    (!program.is_empty() && Path::new(program).has_root()).then(|| (program.to_owned(), arg))
}
