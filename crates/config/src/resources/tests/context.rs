//! Context files.

use std::path::Path;

use super::{Place, complaints};
use crate::resources::{context_files, limits};

fn found(place: &Place) -> Vec<(String, String)> {
    let root = place.root.path();
    place
        .resources()
        .context_files()
        .iter()
        .filter(|file| file.path.starts_with(root))
        .map(|file| {
            (
                file.path.strip_prefix(root).unwrap().display().to_string(),
                file.content.clone(),
            )
        })
        .collect()
}

fn names(place: &Place) -> Vec<String> {
    found(place).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn context_files_start_with_agent_directory_then_outermost() {
    let place = Place::new(&[
        ("agent/AGENTS.md", "global"),
        ("AGENTS.md", "outer"),
        ("work/CLAUDE.md", "inner"),
        ("work/sub/AGENTS.md", "not on the way"),
    ]);
    let expected = [
        ("agent/AGENTS.md", "global"),
        ("AGENTS.md", "outer"),
        ("work/CLAUDE.md", "inner"),
    ];
    let expected: Vec<(String, String)> = expected.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec();
    assert_eq!(found(&place), expected);
}

#[test]
fn context_file_override_replaces_others_per_directory() {
    let place = Place::new(&[("work/CLAUDE.md", "c"), ("work/AGENTS.md", "a")]);
    assert_eq!(names(&place), ["work/AGENTS.md"]);
    place.write("work/AGENTS.override.md", "o");
    assert_eq!(names(&place), ["work/AGENTS.override.md"]);
}

#[test]
fn nested_worktree_repeats_no_context_file() {
    let place = Place::new(&[
        ("work/AGENTS.md", "main"),
        ("work/.git/worktrees/w/commondir", "../..\n"),
        ("work/trees/AGENTS.md", "between"),
        ("work/trees/w/sub/CLAUDE.md", "sub"),
    ]);
    let data = place.text("work/.git/worktrees/w");
    place.write("work/trees/w/.git", &format!("gitdir: {data}\n"));
    let names = || {
        let cwd = place.path("work/trees/w/sub");
        let (files, _) = context_files(&place.path("agent"), &cwd, &place.options.boundaries, false);
        let texts = files.into_iter().map(|file| file.content);
        let known = ["main", "between", "tree", "sub"];
        texts
            .filter(|text| known.contains(&text.as_str()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(), ["main", "between", "sub"]);
    place.write("work/trees/w/AGENTS.md", "tree");
    assert_eq!(names(), ["between", "tree", "sub"]);
    // Without its data it is no worktree of the repository.
    place.write("work/.git/worktrees/w/commondir", "../nowhere\n");
    assert_eq!(names(), ["main", "between", "tree", "sub"]);
}

#[test]
fn directories_named_like_context_files_are_skipped() {
    let place = Place::new(&[("work/AGENTS.md/x", ""), ("work/CLAUDE.md", "c")]);
    assert_eq!(names(&place), ["work/CLAUDE.md"]);
    assert!(complaints(&place.resources(), place.root.path()).is_empty());
}

#[test]
fn agent_directory_above_project_counts_once() {
    let place = Place::new(&[("agent/AGENTS.md", "global")]);
    let (files, _) = context_files(
        &place.path("agent"),
        &place.path("agent/x"),
        &place.options.boundaries,
        false,
    );
    assert_eq!(files.iter().filter(|file| file.content == "global").count(), 1);
}

#[test]
fn context_files_can_be_disabled() {
    let mut place = Place::new(&[("work/AGENTS.md", "a")]);
    place.options.context_files = false;
    assert!(place.resources().context_files().is_empty());
}

#[test]
fn long_context_files_are_cut_and_reported() {
    let limit = usize::try_from(limits::CONTEXT_FILE_BYTES).unwrap();
    // Two bytes each, shifted by one, so that the limit falls into a character.
    let place = Place::new(&[("work/AGENTS.md", &format!("x{}", "ä".repeat(limit)))]);
    let resources = place.resources();
    let file = resources.context_files().last().unwrap();
    assert_eq!(file.content.len(), limit - 1);
    assert!(file.content.ends_with('ä'));
    let said = complaints(&resources, place.root.path());
    assert_eq!(said, ["work/AGENTS.md: only the first 256 KiB are used"]);
}

#[cfg(unix)]
#[test]
fn unreadable_context_file_is_reported_and_next_used() {
    let place = Place::new(&[("work/CLAUDE.md", "c")]);
    // A socket cannot be read by any user; file modes would not stop root.
    let socket = std::os::unix::net::UnixListener::bind(place.path("work/AGENTS.md")).unwrap();
    let (files, notes) = context_files(
        Path::new("/nonexistent"),
        &place.path("work"),
        &place.options.boundaries,
        false,
    );
    assert!(files.iter().any(|file| file.content == "c"));
    assert_eq!(notes.len(), 1);
    assert!(notes[0].message.contains("not a regular file"));
    drop(socket);
}
