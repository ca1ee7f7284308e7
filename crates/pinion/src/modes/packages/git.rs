//! Packages from git repositories: cloned into a temporary directory and checked out at the wanted branch, tag or commit. Sources are
//! validated by `config::resources::PackageSource`; transports that run programs are switched off here.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::limits::{INSTALL, QUERY};
use super::programs::{Programs, Run};

/// Transports that git may use. `ext` and remote helpers run programs of the address.
const PROTOCOLS: &str = "file:git:http:https:ssh";

/// Variables that direct git to another repository, as they are set in git's hooks.
const REDIRECTING: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_TEMPLATE_DIR",
];

/// The environment of git: no questions on the terminal, no transports that run programs.
pub(super) fn environment(mut env: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let set = [("GIT_TERMINAL_PROMPT", "0"), ("GIT_ALLOW_PROTOCOL", PROTOCOLS)];
    env.retain(|(name, _)| {
        let is = |other: &str| name == other;
        !REDIRECTING.into_iter().any(is) && !set.iter().any(|(name, _)| is(name))
    });
    env.extend(set.map(|(name, value)| (name.into(), value.into())));
    env
}

/// Clones a repository into a directory that does not exist and checks out the reference.
pub(super) async fn clone(
    programs: &Programs,
    repository: &str,
    reference: Option<&str>,
    dir: &Path,
) -> anyhow::Result<()> {
    let parent = dir.parent().unwrap_or(dir);
    std::fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    let args = ["clone", "--quiet", "--no-recurse-submodules", "--", repository].map(OsString::from);
    let args = args.into_iter().chain([dir.as_os_str().to_owned()]).collect();
    git(programs, args, parent, INSTALL).await?;
    if let Some(reference) = reference {
        let args = ["checkout", "--quiet", "--no-recurse-submodules", reference, "--"];
        git(programs, args.map(OsString::from).to_vec(), dir, INSTALL).await?;
    }
    Ok(())
}

/// Returns the commit that is checked out.
pub(super) async fn head(programs: &Programs, checkout: &Path) -> anyhow::Result<String> {
    let args = ["rev-parse", "--verify", "HEAD"].map(OsString::from).to_vec();
    Ok(git(programs, args, checkout, QUERY).await?.trim().to_owned())
}

/// Returns the commit that the server has for a branch or tag, or for its default branch. A commit is returned as it is.
pub(super) async fn remote_head(
    programs: &Programs,
    repository: &str,
    reference: Option<&str>,
    cwd: &Path,
) -> anyhow::Result<String> {
    let wanted = match reference {
        None => vec!["HEAD".to_owned()],
        Some(name) => vec![
            format!("refs/tags/{name}^{{}}"),
            format!("refs/tags/{name}"),
            format!("refs/heads/{name}"),
        ],
    };
    let mut args = ["ls-remote", "--", repository].map(OsString::from).to_vec();
    args.extend(wanted.iter().map(OsString::from));
    let listed = git(programs, args, cwd, QUERY).await?;
    let commits: Vec<(&str, &str)> = listed.lines().filter_map(|line| line.split_once('\t')).collect();
    let found = wanted
        .iter()
        .find_map(|name| commits.iter().find(|(_, listed)| listed == name));
    match (found, reference) {
        (Some((commit, _)), _) => Ok((*commit).to_owned()),
        (None, Some(name)) if is_commit(name) => Ok(name.to_ascii_lowercase()),
        (None, _) => bail!(
            "{repository} has no {}",
            reference.map_or("default branch".to_owned(), |name| format!(
                "branch or tag {name}"
            ))
        ),
    }
}

fn is_commit(name: &str) -> bool {
    (7..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

async fn git(
    programs: &Programs,
    args: Vec<OsString>,
    cwd: &Path,
    limit: Duration,
) -> anyhow::Result<String> {
    let run = Run {
        program: "git",
        args,
        cwd,
        limit,
        advice: "Install git",
    };
    programs.run(run).await
}
