//! Packages that `-e` names and that are not installed. As in pi, the start installs them into a directory of their own, and no settings
//! name them afterwards. One without an exact version is installed again after a day.

use std::fs;
use std::path::Path;

use config::resources::PackageSource;
use config::trust::Trust;
use tokio_util::sync::CancellationToken;

use super::limits::NAMED_AGE;
use super::place::Place;
use super::{Context, lock, npm};
use crate::args::Args;
use crate::environment::{Environment, complain};
use crate::modes::runtime;
use crate::setup;

/// A file whose age is that of the last attempt to install the package.
const ATTEMPT: &str = "attempt";

/// A package as the command line names it, and what that means.
type Named<'a> = (&'a str, PackageSource);

/// Installs the packages that `-e` names and that are missing or old. What cannot be installed is reported; the start goes on with what
/// there is. Signals keep their default: once a handler of tokio listens to SIGINT, it does not end the process any more. The guardian
/// of the reaper then ends npm and git, and the next installation removes what they left.
pub(crate) fn install_named(args: &Args, env: &Environment) {
    if args.offline || env.is_offline() {
        return;
    }
    let named = args.extensions.iter();
    let named = named.filter_map(|text| Some((text.as_str(), PackageSource::parse(text).ok()?)));
    let wanted: Vec<Named<'_>> = named
        .filter(|(text, source)| needs_install(env, text, source))
        .collect();
    if !wanted.is_empty()
        && let Err(error) = run(args, env, &wanted)
    {
        complain(&format!("Warning: packages of -e were not installed: {error:#}"));
    }
}

fn run(args: &Args, env: &Environment, wanted: &[Named<'_>]) -> anyhow::Result<()> {
    let trust = Trust::new(&env.agent_dir, args.approve);
    let (settings, _) = setup::load_settings(args, env, &trust);
    runtime()?.block_on(async {
        let context = Context::new(args, env, settings, CancellationToken::new())?;
        let done = install(&context, wanted).await;
        context.programs.reaper.shutdown().await;
        done
    })
}

/// Returns true for a package that is not installed in the wanted version, or that was installed for the command line long ago.
fn needs_install(env: &Environment, text: &str, source: &PackageSource) -> bool {
    let Some(below) = source.below() else {
        return false;
    };
    let place = Place::named(env, text);
    if place.path_of(source).exists() {
        return source.exact_version().is_none() && !is_fresh(&place.base.join(ATTEMPT));
    }
    let installed = env.agent_dir.join(below);
    match source {
        PackageSource::Npm { version: Some(_), .. } => {
            let exact = source.exact_version();
            exact.is_none() || npm::version(&installed).as_deref() != exact
        }
        // The user may have installed another branch, tag or commit.
        PackageSource::Git {
            reference: Some(_), ..
        } => true,
        _ => !installed.exists(),
    }
}

fn is_fresh(file: &Path) -> bool {
    let changed = file.metadata().and_then(|found| found.modified());
    changed.is_ok_and(|time| time.elapsed().is_ok_and(|age| age < NAMED_AGE))
}

/// Installs the packages, one after the other.
async fn install(context: &Context<'_>, wanted: &[Named<'_>]) -> anyhow::Result<()> {
    let _lock = lock::take(&context.env.agent_dir, &context.programs.cancel).await?;
    for (text, source) in wanted {
        // Another process may have installed it while this one waited.
        if !needs_install(context.env, text, source) {
            continue;
        }
        if source.has_password() {
            complain(
                "Warning: an address of -e contains a password or token, which would be kept in the name of a directory. \
                 Use git's credential helper",
            );
            continue;
        }
        let place = Place::named(context.env, text);
        complain(&format!("Installing {text}..."));
        if let Err(error) = install_one(context, &place, source).await {
            complain(&format!("Warning: -e {text}: {error:#}"));
        }
        if place.path_of(source).exists() {
            let _old = fs::write(place.base.join(ATTEMPT), "");
        }
    }
    Ok(())
}

async fn install_one(context: &Context<'_>, place: &Place, source: &PackageSource) -> anyhow::Result<()> {
    let mut staged = match source {
        PackageSource::Npm { name, version } => {
            // Without a version, npm keeps the version in the manifest of an earlier installation.
            let spec = format!("{name}@{}", version.as_deref().unwrap_or("latest"));
            context.fetch_npm(place, &[spec]).await?
        }
        _ => context.fetch_git(place, source).await?,
    };
    staged.swap()
}
