//! Walks over the tree of a line and collects what it runs. What each program does with its arguments is in `runs`,
//! `builtins` and `options`, as [`Step`]s that are taken here.

use std::collections::BTreeMap;

use super::ast::{
    Assignment, Compound, List, Node, Parameter, Part, Redirect, RedirectKind, Simple, Value, Word,
};
use super::bindings::Bindings;
use super::computed;
use super::cursor::{Cursor, Shared};
use super::forms::Forms;
use super::grammar::CommandParser;
use super::planted::Planted;
use super::programs::{self, Class};
use super::simple::DECLARING;
use super::steps::{Input, Language, MAX_GUESSED_BYTES, Step, Steps};
use super::variables::Variables;
use super::{builtins, runs, values};

/// How deep lines may stand in the arguments of commands.
const MAX_DEPTH: usize = 16;
/// How often commands are judged with values that commands before gave to variables; a line that needs more is opaque.
const VALUE_ROUNDS: usize = 6;

/// What a line does, as far as it has been walked over.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) commands: Vec<String>,
    pub(super) forms: Forms,
    pub(super) plain: bool,
    pub(super) opaque: bool,
    variables: Variables,
    bindings: Bindings,
    guessed_bytes: usize,
    depth: usize,
    /// Depth of guesses: texts that may be lines. A part of them that is not understood does not make the line opaque.
    guesses: usize,
    /// Names of files that the line makes, and of programs and scripts that it runs.
    made: BTreeMap<String, Vec<Option<String>>>,
    run: BTreeMap<String, Language>,
    /// Files that the line makes and that programs read by themselves.
    planted: Planted,
    /// `exec` has changed where commands read.
    is_redirected: bool,
    /// The program that runs the line at hand reads something, and so do the commands of the line.
    is_fed: bool,
    /// The line at hand is run by `sh`, which may be another shell than bash.
    is_sh: bool,
}

/// Where a list stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    documents: &'a [Word],
    /// It is the line itself, whose commands must be allowed.
    is_line: bool,
    /// What comes into the list may come from another command.
    is_fed: bool,
    /// That command only lists files.
    is_listed: bool,
}

impl Judge {
    pub(super) fn new() -> Self {
        Self {
            commands: Vec::new(),
            forms: Forms::default(),
            plain: true,
            opaque: false,
            variables: Variables::default(),
            bindings: Bindings::default(),
            guessed_bytes: 0,
            depth: 0,
            guesses: 0,
            made: BTreeMap::new(),
            run: BTreeMap::new(),
            planted: Planted::default(),
            is_redirected: false,
            is_fed: false,
            is_sh: false,
        }
    }

    /// The line itself.
    pub(super) fn whole(&mut self, text: &str) {
        self.text(text, true);
        self.with_values();
        self.opaque |= self.made.keys().any(|made| self.variables.calculates(made));
        for (name, texts) in std::mem::take(&mut self.made) {
            // `fish` runs every such file in its folder of settings.
            let run = if name.ends_with(".fish") {
                "config.fish"
            } else {
                &name
            };
            if let Some(language) = self.run.get(run).copied() {
                self.opaque |= computed::is_trusted(&name);
                let steps = texts.into_iter().map(|text| runs::made_script(language, text));
                steps.flatten().for_each(|step| self.take(step));
            }
        }
        self.read_planted();
        self.opaque |= self.variables.are_unsafe() || self.bindings.are_unclear() || self.forms.is_cut;
    }

    /// Judges commands with the values that the line gives to their variables. A command can give others. A line that is opaque already
    /// needs no more work.
    fn with_values(&mut self) {
        let mut judged = 0;
        for _ in 0..VALUE_ROUNDS {
            for (name, value) in self.bindings.assigned_again() {
                self.assigned(&name, &value);
            }
            if judged == self.bindings.count() {
                return;
            }
            judged = self.bindings.count();
            let Some(commands) = self.bindings.resolved_commands() else {
                break;
            };
            for (words, input) in &commands {
                if self.opaque || self.forms.is_cut {
                    return;
                }
                self.program(words, input);
            }
        }
        self.hide();
    }

    /// Programs may run what files say that the line makes.
    fn read_planted(&mut self) {
        let found = self.planted.commands();
        self.opaque |= found.is_cut;
        found.commands.into_iter().for_each(|form| self.forms.push(form));
    }

    /// A file with this name is run.
    fn runs(&mut self, path: &str, language: Language) {
        let known = self
            .run
            .entry(programs::base_name(path).to_owned())
            .or_insert(language);
        if language == Language::Other {
            *known = language;
        }
    }

    fn text(&mut self, text: &str, is_line: bool) {
        let mut shared = Shared::default();
        let parsed = CommandParser::new(&mut Cursor::new(text, &mut shared)).whole_list();
        let Ok(list) = parsed else {
            self.hide();
            self.plain &= !is_line;
            return;
        };
        if self.is_sh && shared.is_bash_only {
            self.hide();
        }
        let scope = Scope {
            documents: &shared.documents,
            is_line,
            is_fed: self.is_fed,
            is_listed: false,
        };
        self.list(&list, scope);
    }

    /// The line may run something that does not show.
    fn hide(&mut self) {
        if self.guesses == 0 {
            self.opaque = true;
        }
    }

    /// A line in another one, such as the argument of `sh -c`.
    fn line(&mut self, text: &str) {
        if self.depth >= MAX_DEPTH {
            self.opaque = true;
            return;
        }
        self.depth += 1;
        self.text(text, false);
        self.depth -= 1;
    }

    /// A text that may be a line: only the parts that are understood count.
    fn guess(&mut self, text: &str) {
        self.guessed_bytes += text.len();
        if self.guessed_bytes > MAX_GUESSED_BYTES {
            self.opaque = true;
            return;
        }
        self.guesses += 1;
        self.line(text);
        self.guesses -= 1;
    }

    fn list(&mut self, list: &List, scope: Scope<'_>) {
        self.plain &= !(scope.is_line && list.has_prefix);
        for (at, node) in list.nodes.iter().enumerate() {
            let is_fed = list.fed.get(at).copied().unwrap_or(true);
            let scope = Scope {
                is_fed: scope.is_fed || is_fed,
                is_listed: if is_fed {
                    programs::is_listed(list, at)
                } else {
                    scope.is_listed
                },
                ..scope
            };
            match node {
                Node::Simple(simple) => self.simple(simple, scope),
                Node::Compound(compound) => self.compound(compound, scope),
            }
        }
    }

    fn nested(&mut self, list: &List, scope: Scope<'_>) {
        let scope = Scope {
            is_line: false,
            ..scope
        };
        self.list(list, scope);
    }

    fn compound(&mut self, compound: &Compound, scope: Scope<'_>) {
        self.plain &= !scope.is_line;
        let mut inner = scope;
        inner.is_line = false;
        inner.is_fed |= !compound.redirects.is_empty() || compound.is_function;
        for word in &compound.words {
            self.word(word, inner);
        }
        for word in &compound.arithmetic {
            self.word(word, inner);
            self.arithmetic(word);
        }
        if let Some((name, words)) = &compound.variable {
            for word in words.iter().flatten() {
                self.word(word, inner);
                self.assigned(name, word);
            }
            if words.is_none() {
                self.variables.assign(name, false);
                // A coprocess makes a list.
                self.variables.list(name);
                self.bindings.assign(name, &computed::word());
            }
        }
        self.redirects(&compound.redirects, inner);
        let said = self.planted.said();
        for list in &compound.lists {
            self.list(list, inner);
        }
        let outputs = compound.redirects.iter();
        for redirect in outputs.filter(|redirect| redirect.kind == RedirectKind::Output) {
            for target in self.bindings.resolved(&redirect.target) {
                self.makes(&target.text(), None);
                self.planted.group_writes(&target, said);
            }
        }
    }

    fn simple(&mut self, simple: &Simple, scope: Scope<'_>) {
        let inner = Scope {
            is_line: false,
            ..scope
        };
        for assignment in &simple.assignments {
            self.assignment(assignment, inner);
        }
        for word in &simple.words {
            self.word(word, inner);
        }
        let opens = self.redirects(&simple.redirects, inner);
        let program = simple.words.first().map(Word::text).unwrap_or_default();
        let copies = programs::copies_into(&simple.words);
        self.writes(simple, copies, inner);
        self.is_redirected |= program == "exec" && !simple.redirects.is_empty();
        if scope.is_line {
            self.plain &= simple.assignments.is_empty()
                && !opens
                && !simple.words.iter().any(Word::is_odd)
                && simple.words.first().is_some_and(|first| !first.hides());
            let shown: Vec<String> = simple.words.iter().map(Word::shown).collect();
            if !shown.is_empty() {
                self.commands.push(shown.join(" "));
            }
        }
        let outer = match scope.is_fed || self.is_redirected {
            _ if scope.is_listed => Input::Names,
            true => Input::Unknown,
            false => Input::Session,
        };
        let input = Input::of(&simple.redirects, scope.documents, outer);
        self.program(&simple.words, &input);
        // A builtin could give its variable a longer value each time, as `export PATH=$PATH:bin` does.
        let is_builtin = programs::class(programs::base_name(&program)) == Class::Builtin;
        let names_variable =
            DECLARING.contains(&program.as_str()) && simple.words.iter().any(Word::begins_dynamic);
        if self.guesses == 0 && (!is_builtin || names_variable) {
            self.bindings.note_command(&simple.words, &input);
        }
    }

    fn assignment(&mut self, assignment: &Assignment, scope: Scope<'_>) {
        if let Some(subscript) = &assignment.subscript {
            self.word(subscript, scope);
            self.arithmetic(subscript);
        }
        if assignment.subscript.is_some() || matches!(assignment.value, Value::Array(_)) {
            self.variables.list(&assignment.name);
        }
        match &assignment.value {
            Value::Scalar(word) => {
                self.word(word, scope);
                let value = word.unsplit();
                self.assigned(&assignment.name, &value);
                if assignment.appends {
                    if programs::variable(&assignment.name) != programs::Variable::Other {
                        self.hide();
                    }
                    self.bindings.append(&assignment.name, &value);
                }
            }
            Value::Array(values) => {
                for (subscript, word) in values {
                    self.word(word, scope);
                    if let Some(subscript) = subscript {
                        self.word(subscript, scope);
                        self.arithmetic(subscript);
                    }
                    self.assigned(&assignment.name, word);
                }
                let texts: Vec<String> = values.iter().map(|(_, word)| word.text()).collect();
                if texts.iter().any(|text| text.starts_with('-')) {
                    // All together they may be the options of a program.
                    self.assigned(&assignment.name, &Word::literal_of(&texts.join(" ")));
                }
            }
        }
    }

    /// A variable takes a value.
    fn assigned(&mut self, name: &str, value: &Word) {
        self.variables.take(name, value);
        self.bindings.assign(name, value);
        let candidates = values::candidates(name, &value.text());
        if candidates.is_cut {
            self.hide();
        }
        for command in &candidates.commands {
            self.guess(command);
        }
        match programs::variable(name) {
            programs::Variable::Other => {}
            programs::Variable::Command => {
                let text = value.literal();
                if text.as_deref().is_none_or(|text| text.contains(['$', '`'])) {
                    self.hide();
                } else if let Some(text) = text.filter(|text| !text.is_empty()) {
                    let was_sh = std::mem::replace(&mut self.is_sh, true);
                    self.line(text.trim_start_matches(['!', '|']));
                    self.is_sh = was_sh;
                }
            }
            programs::Variable::Prompt => {
                if value.is_dynamic() || value.text().contains(['$', '`', '\\']) {
                    self.hide();
                }
            }
            programs::Variable::Keys => {
                if value.is_dynamic() || value.text().contains(['+', '!', '|']) {
                    self.hide();
                }
            }
            programs::Variable::Integer => self.arithmetic(value),
            programs::Variable::Loader => self.hide(),
        }
    }

    /// True if files are opened, or texts are given.
    fn redirects(&mut self, redirects: &[Redirect], scope: Scope<'_>) -> bool {
        let mut opens = false;
        for redirect in redirects {
            self.word(&redirect.target, scope);
            let is_null = redirect
                .target
                .literal()
                .is_some_and(|target| target == "/dev/null");
            match redirect.kind {
                RedirectKind::Duplicate => {}
                RedirectKind::Output => opens |= !is_null,
                RedirectKind::Input | RedirectKind::HereString => opens = true,
                RedirectKind::Document(index) => {
                    opens = true;
                    if let Some(document) = scope.documents.get(index) {
                        self.word(document, scope);
                    }
                }
            }
        }
        opens
    }

    /// Files that a command writes. The text is known if a here-document is copied into them.
    fn writes(&mut self, simple: &Simple, copies: Option<&[Word]>, scope: Scope<'_>) {
        let document = simple.redirects.iter().find_map(|redirect| match redirect.kind {
            RedirectKind::Document(index) => scope.documents.get(index).and_then(Word::literal),
            _ => None,
        });
        let text = document.clone().filter(|_| copies.is_some());
        let outputs = simple
            .redirects
            .iter()
            .filter(|redirect| redirect.kind == RedirectKind::Output);
        let named = outputs
            .map(|redirect| &redirect.target)
            .chain(copies.into_iter().flatten());
        let targets: Vec<Word> = named.flat_map(|word| self.bindings.resolved(word)).collect();
        for target in &targets {
            self.makes(&target.text(), text.clone());
        }
        self.planted.writes(simple, &targets, document, scope.is_fed);
    }

    /// A file with this name is made.
    fn makes(&mut self, text: &str, content: Option<String>) {
        let name = programs::base_name(text);
        if name.starts_with('-') {
            // Another program may get it by a pattern and take it for an option.
            name.split('=').for_each(|piece| self.guess(piece));
        }
        if !name.is_empty() && !text.starts_with("/dev/") && self.guesses == 0 {
            self.made.entry(name.to_owned()).or_default().push(content);
        }
    }

    /// Everything in a word that runs.
    fn word(&mut self, word: &Word, scope: Scope<'_>) {
        for part in &word.parts {
            match part {
                Part::Text { .. } | Part::Unknown => {}
                Part::Parameter(parameter) => self.parameter(parameter, scope),
                Part::Commands(list) => self.nested(list, scope),
                Part::Process(list) => {
                    let scope = Scope {
                        is_fed: true,
                        ..scope
                    };
                    self.nested(list, scope);
                }
                Part::Arithmetic(inner) => {
                    self.word(inner, scope);
                    self.arithmetic(inner);
                }
            }
        }
    }

    fn parameter(&mut self, parameter: &Parameter, scope: Scope<'_>) {
        let all = |word: &Word| ["@", "*"].contains(&word.text().as_str());
        let takes_all = parameter.subscript.as_ref().is_some_and(all);
        if let Some(subscript) = &parameter.subscript
            && !takes_all
        {
            self.word(subscript, scope);
            self.arithmetic(subscript);
        }
        self.word(&parameter.operand, scope);
        let operator = parameter.operator.as_str();
        // `${!name@}` and `${!name[@]}` are names and subscripts; any other `!` reads a name from a variable.
        let lists_names = ["@", "*"].contains(&operator) || takes_all && operator.is_empty();
        if parameter.indirect && !lists_names || operator == "@P" {
            self.hide();
        }
        match operator {
            ":" => {
                self.arithmetic(&parameter.operand);
            }
            "=" | ":=" => {
                if parameter.subscript.is_some() {
                    self.variables.list(&parameter.name);
                }
                self.assigned(&parameter.name, &parameter.operand);
            }
            _ => {}
        }
    }

    /// A text that bash calculates. Names in it are variables, whose values are calculated as well.
    fn arithmetic(&mut self, word: &Word) {
        if !self.variables.calculate(word) {
            self.hide();
        }
    }

    /// A program or a builtin with its arguments.
    fn program(&mut self, words: &[Word], input: &Input) {
        let Some(first) = words.first() else {
            return;
        };
        self.forms.command(words);
        if self.guesses == 0 {
            self.forms.open(words);
        }
        if first.hides() {
            self.hide();
            return;
        }
        let text = first.text();
        let name = programs::base_name(&text);
        self.runs(name, Language::Shell);
        // A descriptor is a file that does not show.
        if name == "run-parts" || text.starts_with("/proc/") || text.starts_with("/dev/") {
            self.hide();
        }
        // Also in a guess, whose end is not read: a command too deep to be read must be refused.
        if self.depth >= MAX_DEPTH {
            self.opaque = true;
            return;
        }
        self.depth += 1;
        let mut steps = Steps::new(self.guesses > 0);
        let class = programs::class(name);
        self.planted.starts(class, words);
        match class {
            Class::Quiet => builtins::quiet(&mut steps, name, words),
            Class::Builtin if DECLARING.contains(&name) => builtins::declaring(&mut steps, name, words),
            Class::Builtin => builtins::builtin(&mut steps, name, words, input),
            Class::Other => runs::unlisted(&mut steps, words, input),
            class => runs::runner(&mut steps, class, name, words, input),
        }
        let is_of_line = self.depth == 1;
        let was_fed = std::mem::replace(&mut self.is_fed, !matches!(input, Input::Session));
        let runs_sh = class.runs_sh(name, words, self.is_sh);
        let was_sh = std::mem::replace(&mut self.is_sh, runs_sh);
        for step in steps.into_steps() {
            if is_of_line && class.runs_in_passing() {
                self.require_rule(&step);
            }
            self.take(step);
        }
        self.is_fed = was_fed;
        self.is_sh = was_sh;
        self.depth -= 1;
    }

    /// Requires an allow rule for the command of a step: a rule that allows `find *` does not allow the command that `find` runs.
    fn require_rule(&mut self, step: &Step<'_>) {
        let mut require = |words: &[Word]| {
            let shown: Vec<String> = words.iter().map(Word::shown).collect();
            self.commands.push(shown.join(" "));
        };
        match step {
            Step::Program(words, _) | Step::Replaced(words, _) => require(words),
            // These words may be the value of an option or already the command, as `rm` in `sudo -E rm x`.
            Step::Form(words) if !words.first().is_some_and(Word::is_duration) => require(words),
            Step::Line(_) => self.plain = false,
            _ => {}
        }
    }

    /// Takes a step of a program.
    fn take(&mut self, step: Step<'_>) {
        match step {
            Step::Hide => self.hide(),
            Step::Line(text) => self.line(&text),
            Step::Guess(text) => self.guess(&text),
            Step::Program(words, input) => self.program(words, input),
            Step::Replaced(shown, words) => {
                self.forms.command(shown);
                self.program(&words, &super::steps::UNKNOWN);
            }
            Step::Form(words) => self.forms.command(&words),
            Step::Runs(path, language) => self.runs(&path, language),
            Step::Makes(name) => self.makes(&name, None),
            Step::Assigned(name, value) => self.assigned(&name, &value),
            Step::AssignedText(name) => self.variables.assign(&name, false),
            Step::Computed(name) => self.bindings.assign(&name, &computed::word()),
            Step::AssignedUnknown => self.variables.assign_unknown(),
            Step::Arithmetic(word) => self.arithmetic(&word),
            Step::Calculated(name) => self.variables.calculate_name(&name),
            Step::Listed(name) => self.variables.list(&name),
            Step::Declared(name) => self.variables.declare(&name),
        }
    }
}
