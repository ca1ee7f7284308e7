//! 1,000 random sequences of recorded and unrecorded changes. A rewind restores the tree of its turn, byte for byte and mode for mode, or lists
//! what it could not know, also what commands changed if the checkpoint contains the whole directory; it is taken back the same way, and nothing outside of the tree ever changes. The tree is a git repository: checkpoints,
//! rewinds and their way back change nothing in it, so what git says of the files follows from the files alone.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of a test may panic"
)]

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use pinion_checkpoints::{Checkpoints, Scope, directory_of};
use tempfile::TempDir;
use wire::changes::Rewound;

const SEQUENCES: u64 = 1000;
/// In every so many sequences git is asked, too.
const ASKED: u64 = 50;
const TURNS: u64 = 6;
const NAMES: [&str; 7] = ["a", "b", "link", "d/a", "d/e/f", "g/h", "g/i"];

/// A file, a link or a directory: its content, where it leads, and its mode.
type Tree = BTreeMap<PathBuf, (Vec<u8>, u32)>;

struct Chance(u64);

impl Chance {
    fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % count
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        let at = self.below(list.len() as u64);
        list[usize::try_from(at).unwrap()]
    }
}

/// Everything below a directory, but not the repository of git.
fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().is_some_and(|name| name == ".git") {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            let content = if meta.is_symlink() {
                path.read_link().unwrap().into_os_string().into_encoded_bytes()
            } else if meta.is_dir() {
                open.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            found.insert(path, (content, meta.permissions().mode()));
        }
    }
    found
}

/// Runs git in a directory, with no settings but its own.
fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "-c",
            "init.templateDir=",
        ])
        .args(args)
        .current_dir(dir)
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ])
        .env_remove("GIT_DIR")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// What git says of the files. It refreshes no index: the test would change the repository by itself.
fn status(root: &Path) -> String {
    git(
        root,
        &[
            "--no-optional-locks",
            "status",
            "--porcelain=v2",
            "--ignored",
            "--untracked-files=all",
        ],
    )
}

/// A repository with a commit, a staged and an ignored file.
fn repository() -> TempDir {
    let dir = TempDir::new().unwrap();
    let root = dir.path();
    git(root, &["init", "-q"]);
    fs::create_dir(root.join("d")).unwrap();
    for (name, text) in [("a", "first"), ("d/a", "committed"), (".gitignore", "g\n")] {
        fs::write(root.join(name), text).unwrap();
    }
    git(root, &["add", "."]);
    git(root, &["commit", "-qm", "first"]);
    fs::write(root.join("b"), "staged").unwrap();
    git(root, &["add", "b"]);
    dir
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

struct World {
    dir: TempDir,
    root: PathBuf,
    checkpoints: Checkpoints,
    chance: Chance,
}

impl World {
    fn new(seed: u64, repository: &Path, is_whole: bool) -> Self {
        let dir = TempDir::new().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let root = base.join("work");
        copy(repository, &root);
        fs::create_dir(base.join("outside")).unwrap();
        fs::write(base.join("outside/secret"), "untouched").unwrap();
        let scope = is_whole.then(|| Scope {
            root: root.clone(),
            excluded: Vec::new(),
        });
        let checkpoints = Checkpoints::new(&directory_of(&base.join("s.jsonl")), scope);
        let chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        Self {
            dir,
            root,
            checkpoints,
            chance,
        }
    }

    fn path(&mut self) -> PathBuf {
        self.root.join(self.chance.pick(&NAMES))
    }

    /// What `edit` and `write` do.
    fn recorded(&mut self, turn: &str) {
        let path = self.path();
        // The tools may follow links; those of this test lead out of the tree, where nothing is to change.
        if fs::canonicalize(&path).is_ok_and(|real| !real.starts_with(&self.root)) || path.is_dir() {
            return;
        }
        let turn = self.checkpoints.turn(turn);
        let pending = turn.begin(&path).unwrap();
        let size = self.chance.below(2000);
        let text = format!("{size} {}", "x".repeat(usize::try_from(size).unwrap()));
        // A file in the way of a directory: the tool fails, and its checkpoint has no change.
        if fs::create_dir_all(path.parent().unwrap()).is_ok() && fs::write(&path, text).is_ok() {
            let mode = [0o644, 0o600, 0o755][usize::try_from(self.chance.below(3)).unwrap()];
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        }
        turn.end(pending).unwrap();
    }

    /// Changes of a command, which no tool reports. Every way to fail is part of the test.
    fn unrecorded(&mut self, turn: &str) {
        let turn = self.checkpoints.turn(turn);
        let running = turn.begin_call("bash").unwrap();
        let (path, other) = (self.path(), self.path());
        let _may_fail = match self.chance.below(8) {
            0 => fs::remove_file(&path),
            1 => fs::remove_dir_all(&path),
            2 => fs::rename(&path, &other),
            3 => fs::set_permissions(&path, Permissions::from_mode(0o400)),
            4 => symlink(self.dir.path().join("outside/secret"), &path),
            5 => symlink(self.dir.path().join("outside"), &path),
            6 => fs::create_dir_all(&path),
            _ => fs::write(&path, "by a command").and(Ok(())).or(Ok(())),
        };
        // Nothing outside may be written by the test itself.
        fs::write(self.dir.path().join("outside/secret"), "untouched").unwrap();
        turn.end_call(running).unwrap();
    }
}

/// Paths that the reply says are not restored.
fn excused(rewound: &Rewound) -> HashSet<PathBuf> {
    let kept = rewound.kept.iter().map(|file| PathBuf::from(&file.path));
    let unknown = rewound
        .unknown
        .iter()
        .filter_map(|note| note.path.as_ref().map(PathBuf::from));
    kept.chain(unknown).collect()
}

fn differences(one: &Tree, other: &Tree) -> Vec<PathBuf> {
    let paths: HashSet<&PathBuf> = one.keys().chain(other.keys()).collect();
    let differs = paths
        .into_iter()
        .filter(|path| one.get(*path) != other.get(*path));
    differs.cloned().collect()
}

/// What sequences showed: restored exactly, compared with what git says, and restored although commands ran.
#[derive(Default)]
struct Seen {
    exact: usize,
    compared: usize,
    whole: usize,
}

/// One random sequence.
fn sequence(seed: u64, repository: &Path) -> Seen {
    let mut seen = Seen::default();
    let is_whole = seed % 4 == 3;
    let mut world = World::new(seed, repository, is_whole);
    let git_dir = world.root.join(".git");
    let untouched = tree(&git_dir);
    let asks_git = seed % ASKED < 2;
    let mut statuses = Vec::new();
    let has_commands = seed % 2 == 1;
    let mut trees = Vec::new();
    let mut noisy = Vec::new();
    for turn in 0..TURNS {
        trees.push(tree(&world.root));
        statuses.extend(asks_git.then(|| status(&world.root)));
        let mut is_noisy = false;
        for _ in 0..=world.chance.below(3) {
            if has_commands && world.chance.below(3) == 0 {
                is_noisy = true;
                world.unrecorded(&turn.to_string());
            } else {
                world.recorded(&turn.to_string());
            }
        }
        noisy.push(is_noisy);
    }
    let before = tree(&world.root);
    statuses.extend(asks_git.then(|| status(&world.root)));
    let target = world.chance.below(TURNS);
    let kept: HashSet<String> = (0..target).map(|turn| turn.to_string()).collect();
    let rewound = world.checkpoints.rewind(&kept, true, None, false).unwrap();
    let target = usize::try_from(target).unwrap();
    let after = tree(&world.root);
    let wrong = differences(&after, &trees[target]);
    if is_whole {
        // Changes of commands in the directory that Git ignores are not known, and a file that lost its directory is listed.
        let excused = excused(&rewound);
        let is_ignored = |path: &PathBuf| path.starts_with(world.root.join("g"));
        let wrong = wrong.iter().filter(|path| !is_ignored(path));
        let wrong: Vec<_> = wrong
            .filter(|path| !excused.iter().any(|listed| listed.starts_with(path)))
            .collect();
        assert!(wrong.is_empty(), "{seed}: {wrong:?} {rewound:?}");
        seen.whole = usize::from(noisy[target..].contains(&true));
    } else if noisy[target..].contains(&true) {
        // The command is listed: what it changed is not known, path by path.
        assert!(
            rewound.unknown.iter().any(|note| note.tool_name.is_some()),
            "{seed}: {rewound:?}"
        );
    } else if !noisy.contains(&true) {
        seen.exact = 1;
        assert!(wrong.is_empty(), "{seed}: {wrong:?} {rewound:?}");
        if asks_git {
            seen.compared = 1;
            assert_eq!(status(&world.root), statuses[target], "{seed}");
        }
    } else {
        let excused = excused(&rewound);
        let is_listed = |path: &PathBuf| {
            excused
                .iter()
                .any(|listed| listed.starts_with(path) || path.starts_with(listed))
        };
        assert!(wrong.iter().all(is_listed), "{seed}: {wrong:?} {rewound:?}");
    }
    // Taken back in another process: as before the rewind.
    let again = Checkpoints::new(world.checkpoints.dir(), None);
    let (back, _) = again.unrewind(false).unwrap();
    let wrong = differences(&tree(&world.root), &before);
    assert!(wrong.is_empty(), "{seed}: {wrong:?} {back:?}");
    if let Some(last) = statuses.last() {
        assert_eq!(status(&world.root), *last, "{seed}");
    }
    assert_eq!(tree(&git_dir), untouched, "{seed}: the repository");
    let outside = fs::read(world.dir.path().join("outside/secret")).unwrap();
    assert_eq!(outside, b"untouched", "{seed}");
    seen
}

#[test]
fn random_changes_are_undone_or_listed() {
    let repository = repository();
    let next = AtomicU64::new(0);
    let seeds = || std::iter::repeat_with(|| next.fetch_add(1, Relaxed)).take_while(|seed| *seed < SEQUENCES);
    let all: Vec<Seen> = thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let running: Vec<_> = (0..threads)
            .map(|_| {
                let sequences = || seeds().map(|seed| sequence(seed, repository.path()));
                scope.spawn(move || sequences().collect::<Vec<_>>())
            })
            .collect();
        running
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    let compared: usize = all.iter().map(|seen| seen.compared).sum();
    let whole: usize = all.iter().map(|seen| seen.whole).sum();
    let exact: usize = all.iter().map(|seen| seen.exact).sum();
    assert_eq!(all.len() as u64, SEQUENCES);
    assert!(compared >= 15, "{compared} statuses compared");
    assert!(whole >= 100, "{whole} sequences with commands were restored");
    assert!(
        exact as u64 >= SEQUENCES / 2,
        "{exact} sequences were restored exactly"
    );
}
