//! `pinion update`: installs missing packages and the newest versions of packages that name no exact version. Git packages move to
//! the head of their branch; a tag or commit stays.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use config::Scope;
use config::resources::PackageSource;

use super::place::{Entry, Place};
use super::{Context, git, lock, no_match, no_more, npm};
use crate::environment::say;

/// A package of the settings.
struct Wanted {
    text: String,
    source: PackageSource,
}

pub(super) async fn run(context: &Context<'_>) -> anyhow::Result<()> {
    let given = &context.args.packages;
    let (word, rest) = match context.args.messages.split_first() {
        Some((word, rest)) => (Some(word.clone()), rest),
        None => (None, &[][..]),
    };
    no_more(rest)?;
    let is_own = given.own
        || word
            .as_deref()
            .is_some_and(|word| ["self", "pi", "pinion"].contains(&word));
    if is_own {
        bail!(
            "Pinion does not update itself. Install the new version in the way in which this one was installed; for packages: \
             pinion update"
        );
    }
    let only = match (word, &given.source) {
        (Some(_), Some(_)) => bail!("--extension cannot be combined with a positional source"),
        (word, flag) => word.or_else(|| flag.clone()),
    };
    if only.is_some() && given.extensions {
        bail!("positional update targets cannot be combined with --self, --extensions, or --all");
    }
    let places = [
        Some(Place::user(context.env)),
        Place::trusted_project(context.env, &context.settings),
    ];
    let mut chosen: Vec<(Place, Vec<Wanted>)> = Vec::new();
    let mut known = Vec::new();
    for place in places.into_iter().flatten() {
        let entries = place.entries()?;
        let wanted = select(context, &place, &entries, only.as_deref())?;
        chosen.push((place, wanted));
        known.extend(entries);
    }
    if let Some(text) = &only
        && chosen.iter().all(|(_, wanted)| wanted.is_empty())
    {
        bail!(no_match(text, &known));
    }
    if context.is_offline() {
        say("Skipped package updates (offline mode)");
        return Ok(());
    }
    let _lock = lock::take(&context.env.agent_dir, &context.programs.cancel).await?;
    let mut changes = Vec::new();
    for (place, wanted) in &chosen {
        changes.extend(update_npm(context, place, wanted).await?);
        for one in wanted {
            changes.extend(update_git(context, place, one).await?);
        }
    }
    match (changes.len(), only) {
        (0, Some(text)) => say(&format!("{text} is already up to date")),
        (0, None) => say("Packages are already up to date"),
        (1, _) => say("Updated 1 package:"),
        (count, _) => say(&format!("Updated {count} packages:")),
    }
    for change in changes {
        say(&format!("  {change}"));
    }
    Ok(())
}

/// The packages of a place, or the package that the user named.
fn select(
    context: &Context<'_>,
    place: &Place,
    entries: &[Entry],
    only: Option<&str>,
) -> anyhow::Result<Vec<Wanted>> {
    let index = match only {
        None => None,
        Some(text) => {
            let source = PackageSource::parse(text).map_err(|error| anyhow!("{text} {error}"))?;
            match place.position(entries, &source, &context.env.started_in) {
                None => return Ok(Vec::new()),
                found => found,
            }
        }
    };
    let chosen = entries
        .iter()
        .enumerate()
        .filter(|(at, _)| index.is_none_or(|index| index == *at))
        .filter_map(|(_, entry)| {
            Some(Wanted {
                text: entry.text.clone(),
                source: entry.source.clone()?,
            })
        });
    Ok(chosen.collect())
}

/// Updates the npm packages of a place in one run.
async fn update_npm(context: &Context<'_>, place: &Place, wanted: &[Wanted]) -> anyhow::Result<Vec<String>> {
    let mut specs = Vec::new();
    let mut packages: Vec<(&Wanted, PathBuf, Option<String>)> = Vec::new();
    for one in wanted {
        let PackageSource::Npm { name, version } = &one.source else {
            continue;
        };
        let path = place.path_of(&one.source);
        let installed = npm::version(&path);
        let exact = one.source.exact_version();
        if exact.is_some() && exact == installed.as_deref() {
            continue;
        }
        specs.push(format!("{name}@{}", version.as_deref().unwrap_or("latest")));
        packages.push((one, path, installed));
    }
    if specs.is_empty() {
        return Ok(Vec::new());
    }
    match packages.as_slice() {
        [(one, ..)] => say(&format!("Updating {}...", one.text)),
        _ => say(&format!(
            "Updating {} npm packages...",
            place.title().to_lowercase()
        )),
    }
    let mut staged = context.fetch_npm(place, &specs).await?;
    place.commit(Some(&mut staged), |_| None)?;
    let changed = packages.iter().filter_map(|(one, path, before)| {
        let now = npm::version(path);
        (now != *before).then(|| change(place, one, before.as_deref(), now.as_deref()))
    });
    Ok(changed.collect())
}

/// Updates a git package, if it is one.
async fn update_git(context: &Context<'_>, place: &Place, wanted: &Wanted) -> anyhow::Result<Option<String>> {
    let PackageSource::Git {
        repository,
        reference,
        ..
    } = &wanted.source
    else {
        return Ok(None);
    };
    say(&format!("Updating {}...", wanted.text));
    let programs = &context.programs;
    let path = place.path_of(&wanted.source);
    let before = match path.join(".git").exists() {
        true => Some(git::head(programs, &path).await?),
        false => None,
    };
    if let Some(before) = &before {
        let there = git::remote_head(programs, repository, reference.as_deref(), &path).await?;
        if before.starts_with(&there) {
            return Ok(None);
        }
    }
    let mut staged = context.fetch_git(place, &wanted.source).await?;
    place.commit(Some(&mut staged), |_| None)?;
    let now = git::head(programs, &path).await?;
    let short = |commit: &str| commit.chars().take(7).collect::<String>();
    let before = before.as_deref().map(short);
    Ok(Some(change(place, wanted, before.as_deref(), Some(&short(&now)))))
}

fn change(place: &Place, wanted: &Wanted, before: Option<&str>, now: Option<&str>) -> String {
    let scope = match place.scope {
        Scope::Project => " (project)",
        _ => "",
    };
    let (before, now) = (before.unwrap_or("(none)"), now.unwrap_or("(none)"));
    format!("{}{scope} {before} -> {now}", wanted.text)
}
