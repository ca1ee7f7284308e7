//! Which session the command line means (pi-core.md 7.4).

use std::path::{Path, PathBuf};

use anyhow::bail;
use session::Opening;
use store::FoundSession;

use crate::args::Args;
use crate::environment::{Environment, complain};

/// Where session files go; none for `--no-session`. The flag says whether it is the default place for this working
/// directory alone.
pub(crate) fn session_dir(args: &Args, env: &Environment, setting: Option<&str>) -> (Option<PathBuf>, bool) {
    if args.no_session {
        return (None, false);
    }
    let named = args
        .session_dir
        .as_deref()
        .or_else(|| env.get("PI_CODING_AGENT_SESSION_DIR"))
        .or(setting);
    match named {
        Some(dir) => (Some(env.path(dir)), false),
        None => (
            Some(store::paths::session_dir(
                &env.agent_dir,
                &env.cwd.to_string_lossy(),
            )),
            true,
        ),
    }
}

/// The session to begin with. `--resume` takes the id or path from the first message, if a session has it. As in pi, `--no-session`
/// precedes the options that name a session: nothing of what follows may be stored.
pub(crate) fn opening(
    args: &mut Args,
    env: &Environment,
    dir: Option<&PathBuf>,
    is_own: bool,
) -> anyhow::Result<Opening> {
    let new = Opening::New {
        id: args.session_id.clone(),
    };
    if let Some(source) = args.fork.clone() {
        let others = [
            (args.session.is_some(), "--session"),
            (args.continue_latest, "--continue"),
            (args.resume, "--resume"),
        ];
        if let Some((_, other)) = others.into_iter().find(|(given, _)| *given) {
            bail!("--fork cannot be combined with {other}");
        }
        let Some(folder) = dir else {
            bail!("--fork cannot be combined with --no-session")
        };
        if let Some(id) = &args.session_id
            && with_id(id, env, folder, is_own)?.is_some()
        {
            bail!("Session already exists with id '{id}'");
        }
        let Opening::File(source) = find(&source, env, dir)? else {
            bail!("{}", unknown(&source, env, dir))
        };
        return Ok(Opening::Fork {
            source,
            id: args.session_id.clone(),
        });
    }
    let Some(dir) = dir else {
        if args.session.is_some() {
            complain("Warning: --session has no effect with --no-session, which starts a new session");
        }
        return Ok(new);
    };
    if let Some(wanted) = &args.session {
        return find(wanted, env, Some(dir));
    }
    if let Some(id) = &args.session_id {
        // An id that exists is opened, so that an embedder can always start the same way (pi-1.5-delta.md 6).
        return Ok(with_id(id, env, dir, is_own)?.map_or(new, Opening::File));
    }
    // The first message may be a prompt with a slash, which is no path then.
    if args.resume
        && let Some(first) = args.messages.first()
        && let Ok(Opening::File(path)) = find(first, env, Some(dir))
        && path.is_file()
    {
        args.messages.remove(0);
        return Ok(Opening::File(path));
    }
    if args.continue_latest || args.resume {
        return Ok(newest(env, dir, is_own)?.map_or(new, Opening::File));
    }
    Ok(new)
}

/// The session of this working directory that was changed last.
fn newest(env: &Environment, dir: &Path, is_own: bool) -> anyhow::Result<Option<PathBuf>> {
    let cwd = env.cwd.to_string_lossy();
    let own = store::most_recent(dir, (!is_own).then_some(cwd.as_ref()))?;
    let of_omp = omp_dir(env, is_own).and_then(|dir| store::most_recent(&dir, Some(cwd.as_ref())).ok()?);
    let changed = |path: &PathBuf| std::fs::metadata(path).and_then(|found| found.modified()).ok();
    Ok(own.into_iter().chain(of_omp).max_by_key(changed))
}

/// The directory in which oh-my-pi has the sessions of this working directory, if it has another name than ours. oh-my-pi moves
/// sessions of ours there when it starts.
fn omp_dir(env: &Environment, is_own: bool) -> Option<PathBuf> {
    let name = store::paths::omp_directory(&env.cwd, env.home.as_deref(), &env.tmp_dir)?;
    let dir = store::paths::sessions_root(&env.agent_dir).join(name);
    (is_own && dir.is_dir()).then_some(dir)
}

/// The session of this working directory with exactly this id.
fn with_id(id: &str, env: &Environment, dir: &Path, is_own: bool) -> anyhow::Result<Option<PathBuf>> {
    let cwd = env.cwd.to_string_lossy();
    let known = store::find_by_id_prefix(dir, id)?
        .into_iter()
        .find(|found| found.id == id && (is_own || found.cwd.is_empty() || found.cwd == cwd));
    let of_omp = || {
        let found = store::find_by_id_prefix(&omp_dir(env, is_own)?, id).ok()?;
        found.into_iter().find(|found| found.id == id && found.cwd == cwd)
    };
    Ok(known.or_else(of_omp).map(|found| found.path))
}

/// The session with exactly this id, else the first of those whose ids begin with it.
fn best(found: Vec<FoundSession>, wanted: &str) -> Option<PathBuf> {
    let exact = found.iter().position(|one| one.id == wanted);
    let best = found.into_iter().nth(exact.unwrap_or_default())?;
    Some(best.path)
}

/// A session by path, by its id or by the beginning of its id: first among those of this working directory, then among all, the
/// last changed first.
fn find(wanted: &str, env: &Environment, dir: Option<&PathBuf>) -> anyhow::Result<Opening> {
    // Every id begins with it.
    if wanted.is_empty() {
        bail!("{}", unknown(wanted, env, dir));
    }
    if wanted.contains(['/', '\\']) || wanted.ends_with(".jsonl") {
        return Ok(Opening::File(env.path(wanted)));
    }
    if let Some(dir) = dir
        && let Some(path) = best(store::find_by_id_prefix(dir, wanted)?, wanted)
    {
        return Ok(Opening::File(path));
    }
    let root = store::paths::sessions_root(&env.agent_dir);
    let mut all = Vec::new();
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        all.extend(store::find_by_id_prefix(&entry.path(), wanted).unwrap_or_default());
    }
    all.sort_by(|a, b| b.changed.cmp(&a.changed).then_with(|| b.path.cmp(&a.path)));
    match best(all, wanted) {
        Some(path) => Ok(Opening::File(path)),
        None => bail!("{}", unknown(wanted, env, dir)),
    }
}

/// The error for a session that no file has.
fn unknown(wanted: &str, env: &Environment, dir: Option<&PathBuf>) -> String {
    let root = store::paths::sessions_root(&env.agent_dir);
    format!(
        "No session found matching '{wanted}'. Session files are in {}. Resume the most recent session of this directory with: \
         pinion --continue",
        dir.unwrap_or(&root).display()
    )
}
