//! How far one type spreads: its methods, the files they are in, its fields. A type that does everything passes the rules on
//! files and functions if it is cut into enough of them.

use std::collections::{BTreeMap, BTreeSet};

use super::files::{SourceFile, package};
use super::source::{attributes, is_for_tests};
use super::{Finding, finding};

/// Most methods of a type, most files that hold them, most fields.
const LIMITS: Spread = Spread(40, 3, 15);
/// Types beyond a limit, with what they have. The figures may only fall: lower them here with the change that does it.
const KNOWN: [(&str, &str, Spread); 12] = [
    ("config", "ResourceOptions", Spread(40, 3, 16)),
    ("config", "Settings", Spread(40, 3, 43)),
    ("session", "Agent", Spread(40, 3, 16)),
    ("llm", "Dialect", Spread(40, 3, 19)),
    ("llm", "ModelRequest", Spread(40, 3, 22)),
    ("pinion", "Args", Spread(40, 3, 79)),
    ("testkit", "Reply", Spread(40, 3, 21)),
    ("testkit", "Step", Spread(40, 3, 18)),
    // The members that clients of today's pi know.
    ("wire", "Model", Spread(40, 3, 17)),
    ("wire", "SessionState", Spread(40, 3, 23)),
    ("wire", "UiRequest", Spread(40, 3, 20)),
    // Several types of this name, one for each chore.
    ("xtask", "Options", Spread(40, 10, 15)),
];

/// Methods, files with inherent `impl` blocks, named fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spread(usize, usize, usize);

#[derive(Default)]
struct Type {
    methods: usize,
    files: BTreeSet<String>,
    fields: usize,
    /// Where its fields are declared.
    at: String,
}

/// Checks all files together.
pub(super) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut types: BTreeMap<(String, String), Type> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_test) {
        collect(&file.syntax.items, file, &mut types);
    }
    let mut found = Vec::new();
    for ((package, name), seen) in &types {
        let spread = Spread(seen.methods, seen.files.len(), seen.fields);
        let known = KNOWN
            .iter()
            .find(|(in_package, known, _)| in_package == package && known == name);
        let limit = known.map_or(LIMITS, |(_, _, limit)| *limit);
        let pairs = [
            (spread.0, limit.0, LIMITS.0, "methods"),
            (spread.1, limit.1, LIMITS.1, "files with methods"),
            (spread.2, limit.2, LIMITS.2, "fields"),
        ];
        for (has, may, general, what) in pairs {
            if has > may {
                let message = format!("{name} has {has} {what}, more than {may}");
                found.push(finding(&seen.at, 1, &message));
            } else if may > general && has < may {
                let message =
                    format!("{name} has {has} {what}: lower the figure {may} in xtask/src/tidy/types.rs");
                found.push(finding(&seen.at, 1, &message));
            }
        }
    }
    found
}

fn collect(items: &[syn::Item], file: &SourceFile, types: &mut BTreeMap<(String, String), Type>) {
    let key = |name: String| (package(&file.path).to_owned(), name);
    for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
        match item {
            syn::Item::Impl(item) if item.trait_.is_none() => {
                let Some(name) = name_of(&item.self_ty) else {
                    continue;
                };
                let seen = types.entry(key(name)).or_default();
                let is_method = |item: &&syn::ImplItem| matches!(item, syn::ImplItem::Fn(_));
                seen.methods += item.items.iter().filter(is_method).count();
                seen.files.insert(file.path.clone());
                if seen.at.is_empty() {
                    seen.at = file.path.clone();
                }
            }
            syn::Item::Struct(item) => {
                let seen = types.entry(key(item.ident.to_string())).or_default();
                let fields = item.fields.iter().filter(|field| field.ident.is_some());
                // Two types of one name in a crate: the larger one counts.
                seen.fields = seen.fields.max(fields.count());
                seen.at = file.path.clone();
            }
            syn::Item::Mod(item) => {
                let items = item.content.as_ref().map_or(&[][..], |(_, items)| items);
                collect(items, file, types);
            }
            _ => {}
        }
    }
}

fn name_of(item: &syn::Type) -> Option<String> {
    match item {
        syn::Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        _ => None,
    }
}
