//! Skills: what they are, how they are loaded, shown to the model and called by name (pi-core.md 6.3). Finding their files
//! is `skill_files`' business.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use files::Root;

use crate::diagnostic::Diagnostic;
use crate::resources::ResourceOptions;
use crate::resources::changes::{Changes, counts_from};
use crate::resources::frontmatter::{self, Document};
use crate::resources::kind::Kind;
use crate::resources::limits;
use crate::resources::place::Place;
use crate::resources::skill_files::{self, Budget, Candidate};
use crate::source::{Scope, SourceInfo};

/// A skill: instructions the model reads when it needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// From the front matter, else the directory's name.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// The file with the instructions.
    pub path: PathBuf,
    /// What relative paths in the instructions start from.
    pub base_dir: PathBuf,
    /// True when only the user may call it (`disable-model-invocation`).
    pub hidden: bool,
    /// Where it was found.
    pub source: SourceInfo,
    /// Whose file it is.
    pub(crate) root: Root,
}

/// All skills in order of precedence; of two with the same name the first wins.
pub(crate) fn load(options: &ResourceOptions) -> (Vec<Skill>, Vec<Diagnostic>) {
    let mut loader = Loader {
        changes: options.changes.clone(),
        is_omp: options.templates.is_omp,
        skills: Vec::new(),
        notes: Vec::new(),
        seen: HashSet::new(),
        project: Budget::project(),
        of_project: 0,
    };
    for place in places(options) {
        loader.place(&place);
    }
    loader.note_excess(&options.cwd);
    (loader.skills, loader.notes)
}

/// Packages of the command line, project settings, project directories, user settings, user directories, packages, flags.
fn places(options: &ResourceOptions) -> Vec<Place> {
    let named = |scope: Scope| {
        options
            .skill_paths
            .iter()
            .filter(move |e| e.scope == scope)
            .map(|extra| Place::named(extra, options))
    };
    let of_packages = |is_flag: bool| {
        let packages = options.packages.iter();
        let wanted = packages.filter(move |one| (one.scope == Scope::Temporary) == is_flag);
        wanted.flat_map(|package| package.places(Kind::Skills))
    };
    let mut out: Vec<Place> = of_packages(true).collect();
    if options.skills && options.project {
        out.extend(named(Scope::Project));
        let root = options.boundaries.project(&options.cwd);
        let dirs = options.project_dirs();
        out.extend(dirs.map(|dir| Place::auto(root.clone(), dir.join("skills"), &dir, Scope::Project)));
        let users = options.home.as_ref().map(|home| home.join(".agents"));
        for ancestor in up_to_git_root(&options.cwd) {
            let dir = ancestor.join(".agents");
            let root = if users.as_ref() == Some(&dir) {
                Root::user()
            } else {
                options.boundaries.project(ancestor)
            };
            out.push(agents(root, &dir, Scope::Project));
        }
    }
    if options.skills {
        out.extend(named(Scope::User));
        out.push(Place::auto(
            Root::user(),
            options.agent_dir.join("skills"),
            &options.agent_dir,
            Scope::User,
        ));
        out.extend(
            options
                .home
                .iter()
                .map(|home| agents(Root::user(), &home.join(".agents"), Scope::User)),
        );
        out.extend(of_packages(false));
    }
    out.extend(named(Scope::Temporary));
    out
}

fn agents(root: Root, directory: &Path, scope: Scope) -> Place {
    Place {
        loose_files: false,
        ..Place::auto(root, directory.join("skills"), directory, scope)
    }
}

/// `cwd` and its parents up to the directory with `.git`, or up to the root of the file system.
fn up_to_git_root(cwd: &Path) -> Vec<&Path> {
    let mut out = Vec::new();
    for directory in cwd.ancestors().take(limits::ANCESTORS) {
        out.push(directory);
        if directory.join(".git").exists() {
            break;
        }
    }
    out
}

struct Loader {
    changes: Vec<Changes>,
    is_omp: bool,
    skills: Vec<Skill>,
    notes: Vec<Diagnostic>,
    /// Real paths of the files seen, since links may lead to one file twice.
    seen: HashSet<PathBuf>,
    /// What searching the project may still cost.
    project: Budget,
    /// Candidates that the project brought.
    of_project: usize,
}

impl Loader {
    fn place(&mut self, place: &Place) {
        if place.root.is_file(&place.path) {
            self.candidate(
                &Candidate {
                    path: place.path.clone(),
                    loose: false,
                },
                place,
            );
            return;
        }
        if place.scope == Scope::Temporary && !place.root.is_dir(&place.path) {
            self.notes
                .push(Diagnostic::new(&place.path, "skill path does not exist"));
        }
        let mut of_user = Budget::user();
        let budget = match place.scope {
            Scope::Project => &mut self.project,
            Scope::User | Scope::Temporary => &mut of_user,
        };
        for candidate in skill_files::find(place, budget, &mut self.notes) {
            self.candidate(&candidate, place);
        }
    }

    fn note_excess(&mut self, cwd: &Path) {
        if self.of_project > limits::PROJECT_SKILLS {
            let left_out = self.of_project - limits::PROJECT_SKILLS;
            let message = format!(
                "the project has more than {} skills; {left_out} are left out",
                limits::PROJECT_SKILLS
            );
            self.notes.push(Diagnostic::left_out(cwd, message));
        }
        let hidden = in_prompt(&self.skills).1;
        if hidden > 0 {
            let message = format!(
                "the skills of the project take more than {} KiB in the system prompt; {hidden} are left out of it",
                limits::PROJECT_SKILL_PROMPT_BYTES / 1024
            );
            self.notes.push(Diagnostic::left_out(cwd, message));
        }
    }

    fn candidate(&mut self, candidate: &Candidate, place: &Place) {
        let agents = (!place.loose_files).then_some(place.base.as_path());
        if place.package.is_none()
            && !counts_from(&self.changes, Kind::Skills, place.scope, agents, &candidate.path)
        {
            return;
        }
        if place.scope == Scope::Project {
            self.of_project += 1;
            if self.of_project > limits::PROJECT_SKILLS {
                return;
            }
        }
        // What must not be read is not known by its real path; reading says why.
        if let Ok(real) = place.root.real(&candidate.path)
            && !self.seen.insert(real)
        {
            return;
        }
        let text = match place.root.read(&candidate.path, limits::SKILL_HEAD_BYTES) {
            Ok(text) => text.text,
            Err(error) => {
                self.notes.push(Diagnostic::left_out(
                    &candidate.path,
                    format!("could not read skill: {error}"),
                ));
                return;
            }
        };
        let Some(skill) = self.understand(candidate, place, &frontmatter::parse(&text)) else {
            return;
        };
        if let Some(winner) = self.skills.iter().find(|known| known.name == skill.name) {
            let message = format!("name \"{}\" is taken by {}", skill.name, winner.path.display());
            self.notes.push(Diagnostic::new(&skill.path, message));
        } else {
            self.skills.push(skill);
        }
    }

    fn understand(&mut self, candidate: &Candidate, place: &Place, document: &Document) -> Option<Skill> {
        let path = &candidate.path;
        if self.is_omp && document.text("enabled").is_some_and(|word| word == "false") {
            return None;
        }
        let description = document.text("description");
        // A loose file without front matter is a README or the like (pi-1.5-delta.md 6).
        if candidate.loose && (description.is_none() || document.problem.is_some()) {
            return None;
        }
        if let Some(problem) = &document.problem {
            self.notes.push(Diagnostic::new(path, problem.clone()));
        }
        let Some(description) = description else {
            self.notes.push(Diagnostic::new(path, "description is required"));
            return None;
        };
        let base_dir = path.parent()?.to_path_buf();
        let fallback = if candidate.loose {
            path.file_stem()
        } else {
            base_dir.file_name()
        };
        let name = match document.text("name") {
            Some(name) => name,
            None => fallback?.to_string_lossy().into_owned(),
        };
        for message in complaints(&name, &description) {
            self.notes.push(Diagnostic::new(path, message));
        }
        let hidden = document.flag("disable-model-invocation");
        Some(Skill {
            name,
            description,
            path: path.clone(),
            base_dir,
            hidden,
            source: place.info(path),
            root: place.root.clone(),
        })
    }
}

/// Rules of the skill format that are worth a word but keep no skill from loading.
fn complaints(name: &str, description: &str) -> Vec<String> {
    let mut out = Vec::new();
    if name.chars().count() > limits::SKILL_NAME_CHARS {
        out.push(format!(
            "name is longer than {} characters",
            limits::SKILL_NAME_CHARS
        ));
    }
    if !name
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    {
        out.push("name has characters other than a-z, 0-9 and hyphen".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        out.push("name has a hyphen at an end or two in a row".to_owned());
    }
    if description.chars().count() > limits::SKILL_DESCRIPTION_CHARS {
        out.push(format!(
            "description is longer than {} characters",
            limits::SKILL_DESCRIPTION_CHARS
        ));
    }
    out
}

/// The part of the system prompt that lists the skills; empty when the model may call none.
pub(crate) fn prompt_block(skills: &[Skill]) -> String {
    let items = in_prompt(skills).0;
    if items.is_empty() {
        return items;
    }
    format!(
        "\n\nThe skills below hold instructions for particular tasks.\n\
         When a task fits a description, read the file at its location first and follow it.\n\
         Relative paths in a skill start at the directory of its file.\n\n\
         <available_skills>{items}\n</available_skills>"
    )
}

/// The entries of the system prompt, and how many skills of the project found no room there.
fn in_prompt(skills: &[Skill]) -> (String, usize) {
    let (mut items, mut of_project, mut left_out) = (String::new(), 0, 0);
    for skill in skills.iter().filter(|skill| !skill.hidden) {
        let start = items.len();
        let _ = write!(
            items,
            "\n  <skill>\n    <name>{}</name>\n    <description>{}</description>\n    <location>{}</location>\n  </skill>",
            escape(&skill.name),
            escape(&skill.description),
            escape(&skill.path.display().to_string()),
        );
        if skill.source.scope == Scope::Project {
            let size = items.len() - start;
            if of_project + size > limits::PROJECT_SKILL_PROMPT_BYTES {
                items.truncate(start);
                left_out += 1;
            } else {
                of_project += size;
            }
        }
    }
    (items, left_out)
}

/// Carries out `/skill:name args`. `None` when the text calls no known skill and stays as it is.
pub(crate) fn expand(skills: &[Skill], text: &str) -> Option<Result<String, Diagnostic>> {
    let call = text.strip_prefix("/skill:")?;
    let (name, args) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
    let skill = skills.iter().find(|skill| skill.name == name)?;
    let file = match skill.root.read(&skill.path, limits::SKILL_BYTES) {
        Ok(file) => file,
        Err(error) => {
            return Some(Err(Diagnostic::new(
                &skill.path,
                format!("could not read skill: {error}"),
            )));
        }
    };
    if file.cut {
        let message = format!("skill is longer than {} KiB", limits::SKILL_BYTES / 1024);
        return Some(Err(Diagnostic::new(&skill.path, message)));
    }
    let mut out = format!(
        "<skill name=\"{}\" location=\"{}\">\nReferences are relative to {}.\n\n{}\n</skill>",
        escape(&skill.name),
        escape(&skill.path.display().to_string()),
        skill.base_dir.display(),
        frontmatter::parse(&file.text).body,
    );
    let args = args.trim();
    if !args.is_empty() {
        let _ = write!(out, "\n\n{args}");
    }
    Some(Ok(out))
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            other => out.push(other),
        }
    }
    out
}
