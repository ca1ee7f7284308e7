//! Files that shape a session without being code: context files, the system prompt's texts, skills and prompt templates.
//!
//! What lives here: finding, reading and understanding them, and putting the system prompt together. Each kind is read when
//! it is first asked for and kept; a reload is a new [`Resources`]. What does not: settings files (`settings`), extensions,
//! the environment, and any decision about when a prompt is sent.

mod agents;
mod changes;
mod commands;
mod context;
mod frontmatter;
mod kind;
pub mod limits;
mod package_source;
mod packages;
mod place;
mod prompt_texts;
mod rules;
mod skill_files;
mod skills;
mod system_prompt;
mod template_args;
mod templates;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use agent::ttsr::Rules;
use files::Boundaries;

use crate::diagnostic::Diagnostic;
use crate::source::ExtraPath;

pub use agents::{AgentDefinition, agent_definitions};
pub(crate) use changes::is_change;
pub use changes::{Changes, counts};
pub use commands::CommandInfo;
pub use context::{ContextFile, context_files};
pub use kind::Kind;
pub use package_source::{PackageSource, SourceError};
pub use packages::{Package, PackageSpec};
pub use prompt_texts::{PromptTexts, prompt_texts};
pub use skills::Skill;
pub use system_prompt::{PromptParts, ToolHint, system_prompt};
pub use template_args::OpenQuote;
pub use templates::{Template, TemplateOptions};

/// Where to look and what to leave out.
#[derive(Debug, Clone)]
pub struct ResourceOptions {
    /// The user's configuration directory, absolute.
    pub agent_dir: PathBuf,
    /// The session's working directory, absolute.
    pub cwd: PathBuf,
    /// The user's home directory, for `~` and `~/.agents`.
    pub home: Option<PathBuf>,
    /// False leaves out everything the working directory and its parents bring (`--no-approve`) but the context files, which
    /// have nothing to do with trust (pi 1.5 security docs).
    pub project: bool,
    /// False for `--no-context-files`.
    pub context_files: bool,
    /// False for `--no-skills`: only paths of scope `Temporary` load.
    pub skills: bool,
    /// Which templates load, and how their arguments are split.
    pub templates: TemplateOptions,
    /// False for `--no-rules`.
    pub rules: bool,
    /// Skills named by settings and flags.
    pub skill_paths: Vec<ExtraPath>,
    /// Templates named by settings and flags.
    pub template_paths: Vec<ExtraPath>,
    /// Files that settings take out of those found.
    pub changes: Vec<Changes>,
    /// Packages that are there, those of the command line first.
    pub packages: Vec<Package>,
    /// `--system-prompt`: a file or the text itself.
    pub system_prompt: Option<String>,
    /// `--append-system-prompt`, in order: files or the texts themselves.
    pub append_system_prompt: Vec<String>,
    /// Both are texts, even if files of that name exist.
    pub literal: bool,
    /// How far the links of a project lead.
    pub boundaries: Boundaries,
}

impl ResourceOptions {
    /// Everything on, nothing named.
    #[must_use]
    pub fn new(agent_dir: &Path, cwd: &Path, home: Option<&Path>) -> Self {
        Self {
            agent_dir: agent_dir.to_path_buf(),
            cwd: cwd.to_path_buf(),
            home: home.map(Path::to_path_buf),
            project: true,
            context_files: true,
            skills: true,
            templates: TemplateOptions::default(),
            rules: true,
            skill_paths: Vec::new(),
            template_paths: Vec::new(),
            changes: Vec::new(),
            packages: Vec::new(),
            system_prompt: None,
            append_system_prompt: Vec::new(),
            literal: false,
            boundaries: Boundaries::new(agent_dir, home),
        }
    }

    /// The project's directories of configuration, the first in precedence first. None if nothing of the project counts.
    pub(crate) fn project_dirs(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let names: &'static [&'static str] = match (self.project, self.templates.is_omp) {
            (false, _) => &[],
            (true, false) => &[".pi"],
            (true, true) => &[".pi", ".omp"],
        };
        names.iter().map(move |name| self.cwd.join(name))
    }
}

type Loaded<T> = OnceLock<(T, Vec<Diagnostic>)>;

/// The resources of one session. Nothing is read before it is asked for, and nothing twice.
#[derive(Debug)]
pub struct Resources {
    options: ResourceOptions,
    context: Loaded<Vec<ContextFile>>,
    texts: Loaded<PromptTexts>,
    skills: Loaded<Vec<Skill>>,
    templates: Loaded<Vec<Template>>,
    rules: Loaded<Arc<Rules>>,
    /// Set once the client knows the files that are left out.
    told: OnceLock<()>,
}

/// A user's text after skill calls and template calls were carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// The text for the model.
    pub text: String,
    /// Why a call could not be carried out; the text then stands as it was typed.
    pub problem: Option<Diagnostic>,
}

impl Resources {
    /// Reads nothing yet.
    #[must_use]
    pub fn new(options: ResourceOptions) -> Self {
        Self {
            options,
            context: OnceLock::new(),
            texts: OnceLock::new(),
            skills: OnceLock::new(),
            templates: OnceLock::new(),
            rules: OnceLock::new(),
            told: OnceLock::new(),
        }
    }

    /// The context files, outermost first.
    pub fn context_files(&self) -> &[ContextFile] {
        let load = || {
            let o = &self.options;
            let is_omp = o.templates.is_omp;
            let (mut files, mut notes) = match o.context_files {
                true => context_files(&o.agent_dir, &o.cwd, &o.boundaries, is_omp),
                false => Default::default(),
            };
            let (rules, more) = rules::always_applied(o);
            files.extend(rules);
            notes.extend(more);
            (files, notes)
        };
        &self.context.get_or_init(load).0
    }

    /// The texts that replace or follow the built-in prompt.
    pub fn prompt_texts(&self) -> &PromptTexts {
        &self.texts.get_or_init(|| prompt_texts(&self.options)).0
    }

    /// The skills in order of precedence.
    pub fn skills(&self) -> &[Skill] {
        &self.skills.get_or_init(|| skills::load(&self.options)).0
    }

    /// The prompt templates in order of precedence.
    pub fn templates(&self) -> &[Template] {
        &self.templates.get_or_init(|| templates::load(&self.options)).0
    }

    /// The rules that watch answers, ready for matching.
    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.loaded_rules().0)
    }

    /// Returns true once the rules have been read.
    #[must_use]
    pub fn has_read_rules(&self) -> bool {
        self.rules.get().is_some()
    }

    /// Complaints about the rules.
    pub fn rule_problems(&self) -> &[Diagnostic] {
        &self.loaded_rules().1
    }

    fn loaded_rules(&self) -> &(Arc<Rules>, Vec<Diagnostic>) {
        self.rules.get_or_init(|| {
            let (rules, mut notes) = rules::load(&self.options);
            let (rules, problems) = Rules::new(rules, &self.options.cwd.to_string_lossy());
            let problems = problems.into_iter();
            notes.extend(problems.map(|(path, problem)| Diagnostic::new(Path::new(&path), problem)));
            (Arc::new(rules), notes)
        })
    }

    /// What `get_commands` lists, without extensions.
    #[must_use]
    pub fn commands(&self) -> Vec<CommandInfo> {
        commands::list(self.templates(), self.skills())
    }

    /// Carries out `/skill:name args` or `/name args` (pi-core.md 1.11 step 3). All other text comes back unchanged.
    #[must_use]
    pub fn expand(&self, text: &str) -> Expanded {
        let unchanged = || Expanded {
            text: text.to_owned(),
            problem: None,
        };
        if !text.starts_with('/') {
            return unchanged();
        }
        let done = match skills::expand(self.skills(), text) {
            Some(done) => Some(done),
            None => templates::expand(self.templates(), text, self.options.templates.open_quote),
        };
        match done {
            Some(Ok(text)) => Expanded { text, problem: None },
            Some(Err(problem)) => Expanded {
                problem: Some(problem),
                ..unchanged()
            },
            None => unchanged(),
        }
    }

    /// The system prompt for these active tools. `date` is `YYYY-MM-DD`, local time; none leaves the line out. Today's pi has no such
    /// line, and lists the skills also if the model can read them with `bash` only.
    #[must_use]
    pub fn system_prompt(&self, tools: &[ToolHint<'_>], date: Option<&str>) -> String {
        let texts = self.prompt_texts();
        let reads = tools
            .iter()
            .any(|tool| tool.name == "read" || (date.is_none() && tool.name == "bash"));
        system_prompt(&PromptParts {
            custom: texts.custom.as_deref(),
            append: texts.append.as_deref(),
            tools,
            context: self.context_files(),
            skills: if reads { self.skills() } else { &[] },
            date,
            cwd: &self.options.cwd,
        })
    }

    /// The files left out of the system prompt; nothing the second time.
    pub fn take_left_out(&self) -> Vec<Diagnostic> {
        if self.told.set(()).is_err() {
            return Vec::new();
        }
        let _ = (self.context_files(), self.prompt_texts(), self.skills());
        let mut notes = self.diagnostics();
        notes.retain(|note| note.is_left_out);
        notes
    }

    /// Complaints about everything read so far.
    #[must_use]
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let lists = [
            self.texts.get().map(|loaded| &loaded.1),
            self.context.get().map(|loaded| &loaded.1),
            self.templates.get().map(|loaded| &loaded.1),
            self.skills.get().map(|loaded| &loaded.1),
            self.rules.get().map(|loaded| &loaded.1),
        ];
        lists.into_iter().flatten().flatten().cloned().collect()
    }
}
