//! Modules of a crate that import each other in a circle. Two or three may belong together; more are one module that only
//! looks like many.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::files::{SourceFile, package};
use super::source::{attributes, is_for_tests};
use super::{Finding, finding};

/// Most modules in a circle.
const MAX_CIRCLE: usize = 3;

/// A module, by its path in the crate.
type Module = Vec<String>;

/// Checks all files together.
pub(super) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, BTreeMap<Module, &SourceFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_test) {
        if let Some(module) = module_of(&file.path) {
            crates
                .entry(package(&file.path))
                .or_default()
                .insert(module, file);
        }
    }
    let mut found = Vec::new();
    for modules in crates.values() {
        for circle in circles(&imports(modules)) {
            let Some(first) = circle.first().and_then(|module| modules.get(module)) else {
                continue;
            };
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            let message = format!(
                "{} modules import each other in a circle, more than {MAX_CIRCLE}: {}",
                names.len(),
                names.join(", ")
            );
            found.push(finding(&first.path, 1, &message));
        }
    }
    found
}

/// The module that a file is: `a::b` for `crates/x/src/a/b.rs` and `crates/x/src/a/b/mod.rs`.
fn module_of(path: &str) -> Option<Module> {
    let (_, inside) = path.split_once("/src/")?;
    let mut parts: Module = inside
        .strip_suffix(".rs")?
        .split('/')
        .map(str::to_owned)
        .collect();
    if parts
        .last()
        .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
    {
        parts.pop();
    }
    Some(parts)
}

/// Which modules each module names. The root of the crate names all and is left out.
fn imports(modules: &BTreeMap<Module, &SourceFile>) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut edges = BTreeMap::new();
    for (module, file) in modules {
        let mut paths = Paths::default();
        paths.visit_file(&file.syntax);
        let mut targets = BTreeSet::new();
        for path in paths.found {
            let mut target = absolute(module, &path);
            while !target.is_empty() && !modules.contains_key(&target) {
                target.pop();
            }
            if !target.is_empty() && target != *module {
                targets.insert(target);
            }
        }
        edges.insert(module.clone(), targets);
    }
    edges
}

/// A path from the root of the crate.
fn absolute(module: &Module, path: &[String]) -> Module {
    let mut base = module.clone();
    let mut rest = path;
    while let Some((first, tail)) = rest.split_first() {
        match first.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => drop(base.pop()),
            _ => break,
        }
        rest = tail;
    }
    base.extend_from_slice(rest);
    base
}

/// Paths that begin with `crate`, `self` or `super`.
#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
}

impl Paths {
    fn add(&mut self, path: Vec<String>) {
        let is_own = |first: &String| ["crate", "self", "super"].contains(&first.as_str());
        if path.len() > 1 && path.first().is_some_and(is_own) {
            self.found.push(path);
        }
    }

    fn tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| {
            let mut path = before.to_vec();
            path.push(name.to_string());
            path
        };
        match tree {
            syn::UseTree::Path(path) => self.tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.add(with(&name.ident)),
            syn::UseTree::Rename(name) => self.add(with(&name.ident)),
            syn::UseTree::Glob(_) => self.add(before.to_vec()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(before, item)),
        }
    }
}

impl<'a> Visit<'a> for Paths {
    fn visit_item(&mut self, item: &'a syn::Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names = path.segments.iter().map(|segment| segment.ident.to_string());
        self.add(names.collect());
        visit::visit_path(self, path);
    }
}

/// Circles of more than [`MAX_CIRCLE`] modules: modules that all reach each other.
fn circles(edges: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<Vec<Module>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> = edges
        .keys()
        .map(|module| (module, reachable(edges, module)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (module, reached) in &reach {
        let back = |other: &&&Module| reach.get(**other).is_some_and(|others| others.contains(module));
        let circle: Vec<Module> = reached
            .iter()
            .filter(back)
            .map(|other| (*other).clone())
            .collect();
        if circle.len() > MAX_CIRCLE && seen.insert(circle.clone()) {
            found.push(circle);
        }
    }
    found
}

/// The modules that a module names, directly or through others.
fn reachable<'a>(edges: &'a BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Module> = edges.get(from).into_iter().flatten().collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(edges.get(module).into_iter().flatten());
        }
    }
    reached
}
