//! Prompt templates: loading them and carrying out `/name args` (pi-core.md 6.4). The placeholder language lives in
//! `template_args`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use files::Root;
use wire::Dialect;

use crate::diagnostic::Diagnostic;
use crate::resources::ResourceOptions;
use crate::resources::changes::counts;
use crate::resources::frontmatter;
use crate::resources::kind::Kind;
use crate::resources::limits;
use crate::resources::place::Place;
use crate::resources::template_args::{OpenQuote, split, substitute};
use crate::source::{Origin, Scope, SourceInfo};

/// A prompt template: a Markdown file with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// The file's name without `.md`.
    pub name: String,
    /// From the front matter, else the beginning of the first line with text; empty if there is none.
    pub description: String,
    /// What arguments it takes, for people.
    pub argument_hint: Option<String>,
    /// The text with placeholders.
    pub content: String,
    /// The file.
    pub path: PathBuf,
    /// Where it was found.
    pub source: SourceInfo,
}

/// All templates in order of precedence; of two with the same name the first wins.
pub(crate) fn load(options: &ResourceOptions) -> (Vec<Template>, Vec<Diagnostic>) {
    let mut templates: Vec<Template> = Vec::new();
    let mut notes = Vec::new();
    let mut seen = HashSet::new();
    for place in places(options) {
        for path in files(&place, &mut notes) {
            if place.package.is_none() && !counts(&options.changes, Kind::Prompts, place.scope, &path) {
                continue;
            }
            // What must not be read is not known by its real path; reading says why.
            if let Ok(real) = place.root.real(&path)
                && !seen.insert(real)
            {
                continue;
            }
            let Some(template) = read(path, &place, &mut notes) else {
                continue;
            };
            match templates.iter().find(|known| known.name == template.name) {
                Some(winner) => {
                    let message = format!("name \"{}\" is taken by {}", template.name, winner.path.display());
                    notes.push(Diagnostic::new(&template.path, message));
                }
                None => templates.push(template),
            }
        }
    }
    (templates, notes)
}

fn places(options: &ResourceOptions) -> Vec<Place> {
    let named = |scope: Scope| {
        options
            .template_paths
            .iter()
            .filter(move |e| e.scope == scope)
            .map(|extra| Place::named(extra, options))
    };
    let of_packages = |is_flag: bool| {
        let packages = options.packages.iter();
        let wanted = packages.filter(move |one| (one.scope == Scope::Temporary) == is_flag);
        wanted.flat_map(|package| package.places(Kind::Prompts))
    };
    let mut out: Vec<Place> = of_packages(true).collect();
    if options.templates.load && options.project {
        out.extend(named(Scope::Project));
        let root = options.boundaries.project(&options.cwd);
        for dir in options.project_dirs() {
            let places =
                folders(options).map(|name| Place::auto(root.clone(), dir.join(name), &dir, Scope::Project));
            out.extend(places);
        }
    }
    if options.templates.load {
        out.extend(named(Scope::User));
        out.extend(folders(options).map(|name| {
            let dir = &options.agent_dir;
            Place::auto(Root::user(), dir.join(name), dir, Scope::User)
        }));
        out.extend(of_packages(false));
    }
    out.extend(named(Scope::Temporary));
    out
}

/// The names of directories of templates. oh-my-pi calls most of them commands.
fn folders(options: &ResourceOptions) -> impl Iterator<Item = &'static str> {
    let commands = options.templates.is_omp.then_some("commands");
    ["prompts"].into_iter().chain(commands)
}

/// The place itself if it is a file, else the `*.md` files directly in it, by name. Directories that packages and settings name are
/// searched at every depth (pi 1.5.2).
fn files(place: &Place, notes: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
    if place.root.is_file(&place.path) {
        return vec![place.path.clone()];
    }
    let is_of_flag = place.scope == Scope::Temporary && place.package.is_none();
    let is_deep = place.package.is_some() || (place.source == Origin::Local && !is_of_flag);
    let mut left = limits::TEMPLATE_ENTRIES;
    let mut out = Vec::new();
    let mut open = vec![(place.path.clone(), 0)];
    while let Some((directory, depth)) = open.pop() {
        let Ok((entries, is_cut)) = place.root.list(&directory, left) else {
            if place.scope == Scope::Temporary && depth == 0 {
                notes.push(Diagnostic::new(
                    &place.path,
                    "prompt template path does not exist",
                ));
            }
            continue;
        };
        if is_cut {
            let message = format!(
                "more than {} entries; the rest was not searched for prompt templates",
                limits::TEMPLATE_ENTRIES
            );
            notes.push(Diagnostic::new(&place.path, message));
            open.clear();
        }
        left -= entries.len();
        let mut below = Vec::new();
        for path in entries {
            if !is_of_flag && is_passed_over(&path) {
                continue;
            }
            if path.extension().is_some_and(|ext| ext == "md") && place.root.is_readable_or_refused(&path) {
                out.push(path);
            } else if is_deep && !is_cut && depth < limits::SKILL_DEPTH && place.root.is_dir(&path) {
                below.push((path, depth + 1));
            }
        }
        open.extend(below.into_iter().rev());
    }
    out
}

/// Returns true for hidden files and for installed dependencies.
fn is_passed_over(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || name == "node_modules"
}

fn read(path: PathBuf, place: &Place, notes: &mut Vec<Diagnostic>) -> Option<Template> {
    let text = match place.root.read(&path, limits::TEMPLATE_BYTES) {
        Ok(text) if text.cut => {
            let kib = limits::TEMPLATE_BYTES / 1024;
            notes.push(Diagnostic::new(
                &path,
                format!("prompt template is longer than {kib} KiB; left out"),
            ));
            return None;
        }
        Ok(text) => text.text,
        Err(error) => {
            notes.push(Diagnostic::new(
                &path,
                format!("could not read prompt template: {error}"),
            ));
            return None;
        }
    };
    let document = frontmatter::parse(&text);
    if let Some(problem) = &document.problem {
        notes.push(Diagnostic::new(&path, problem.clone()));
    }
    Some(Template {
        name: path.file_stem()?.to_string_lossy().into_owned(),
        description: document
            .text("description")
            .unwrap_or_else(|| first_line(&document.body)),
        argument_hint: document.text("argument-hint"),
        source: place.info(&path),
        content: document.body,
        path,
    })
}

fn first_line(body: &str) -> String {
    let line = body
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    match line.char_indices().nth(limits::TEMPLATE_DESCRIPTION_CHARS) {
        Some((at, _)) => format!("{}...", line.get(..at).unwrap_or(line)),
        None => line.to_owned(),
    }
}

/// Which templates load, and how their arguments are split.
#[derive(Debug, Clone, Copy)]
pub struct TemplateOptions {
    /// False for `--no-prompt-templates`: only paths of scope `Temporary` load.
    pub load: bool,
    /// What a double quote does that is never closed.
    pub open_quote: OpenQuote,
    /// True in the dialect of today's oh-my-pi, where `.omp` of a project has the kinds of files that `.pi` has, and `commands` those
    /// that `prompts` has.
    pub is_omp: bool,
}

impl TemplateOptions {
    /// The options for a dialect: pi changed the split after 0.74.
    #[must_use]
    pub fn new(load: bool, dialect: Dialect) -> Self {
        let open_quote = match dialect.is_newest_pi() {
            true => OpenQuote::IsText,
            false => OpenQuote::Groups,
        };
        Self {
            load,
            open_quote,
            is_omp: dialect.is_newest_omp(),
        }
    }
}

impl Default for TemplateOptions {
    fn default() -> Self {
        Self::new(true, Dialect::default())
    }
}

/// Carries out `/name args`. `None` when the text calls no known template and stays as it is.
pub(crate) fn expand(
    templates: &[Template],
    text: &str,
    open: OpenQuote,
) -> Option<Result<String, Diagnostic>> {
    let call = text.strip_prefix('/')?;
    let (name, args) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
    let template = templates.iter().find(|template| template.name == name)?;
    Some(substitute(&template.content, &split(args, open)).ok_or_else(|| {
        let mib = limits::EXPANSION_BYTES / (1024 * 1024);
        Diagnostic::new(
            &template.path,
            format!("prompt template grows beyond {mib} MiB with these arguments"),
        )
    }))
}
