//! `xtask first-hour`: the waiting time and the disk space of a new user.
//!
//! It clones the repository into an empty directory, with an empty registry cache, and runs the first command of the
//! README. With `--packages` it also builds every artefact and lists its content, and with `--write` it puts all that into
//! `docs/project/first-hour.md` of xtask's own repository. The figures are those of this machine
//! under its current load; the report contains the load average at the start.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::out::say;
use crate::package;

/// Files of a cargo home that say where the registry is. They are kept; everything else starts empty.
const CONFIGURATION: [&str; 3] = ["config.toml", "config", "credentials.toml"];

/// The command line of `first-hour`.
#[derive(Debug)]
pub struct Options {
    /// Clone this repository instead of xtask's own.
    repository: Option<String>,
    /// Build the artefacts as well.
    packages: bool,
    /// Put the figures into the page.
    write: bool,
    /// The cargo profile of the packaged program.
    profile: String,
    /// Leave the clone and the artefacts in this directory instead of a temporary one.
    keep: Option<PathBuf>,
    /// Fail when the first command takes longer, in seconds.
    max_wall: Option<u64>,
    /// Fail when the first command needs more processor time, in seconds.
    max_cpu: Option<u64>,
}

impl Options {
    /// Reads a command line.
    ///
    /// # Errors
    /// A value of the wrong form.
    pub fn parse(args: &mut Args) -> Result<Self> {
        let options = Self {
            repository: args.option("--repository")?,
            packages: args.flag("--packages"),
            write: args.flag("--write"),
            profile: args.option("--profile")?.unwrap_or_else(|| "dist".to_owned()),
            keep: args.option("--keep")?,
            max_wall: args.option("--max-wall")?,
            max_cpu: args.option("--max-cpu")?,
        };
        match args.next() {
            Some(word) => bail!("first-hour has no use for {word}"),
            None => Ok(options),
        }
    }
}

/// What a command cost.
#[derive(Debug, Clone, Copy)]
struct Cost {
    wall: Duration,
    cpu: Duration,
}

/// Where the figures are published.
const PAGE: &str = "docs/project/first-hour.md";
/// Lines of the page around the figures.
const MARKS: (&str, &str) = (
    "<!-- begin of measured figures -->",
    "<!-- end of measured figures -->",
);

/// An artefact as it was built.
#[derive(Debug)]
struct Built {
    name: String,
    bytes: u64,
    contents: Vec<String>,
}

/// All figures of a run.
#[derive(Debug, Default)]
struct Figures {
    rows: Vec<(String, String)>,
    artefacts: Vec<Built>,
}

impl Figures {
    /// Prints and keeps a figure.
    fn add(&mut self, what: &str, figure: String) {
        say(&format!("{what:<24}{figure:>28}"));
        self.rows.push((what.to_owned(), figure));
    }

    /// Prints and keeps what a step cost.
    fn cost(&mut self, what: &str, cost: Cost) {
        let (wall, cpu) = (cost.wall.as_secs_f64(), cost.cpu.as_secs_f64());
        self.add(what, format!("{wall:.1} s wall, {cpu:.1} s CPU"));
    }

    /// The figures as Markdown.
    fn markdown(&self) -> String {
        let mut text = "| step | measured |\n|---|--:|\n".to_owned();
        for (what, figure) in &self.rows {
            text += &format!("| {what} | {figure} |\n");
        }
        if !self.artefacts.is_empty() {
            text += "\n| artefact | bytes | files |\n|---|--:|--:|\n";
        }
        for Built {
            name,
            bytes,
            contents,
        } in &self.artefacts
        {
            text += &format!("| `{name}` | {bytes} | {} |\n", contents.len());
        }
        for Built { name, contents, .. } in &self.artefacts {
            text += &format!("\n`{name}`:\n\n```text\n{}\n```\n", contents.join("\n"));
        }
        text
    }
}

/// Puts the figures between the marks of the page.
fn published(page: &str, figures: &str) -> Result<String> {
    let (head, rest) = page
        .split_once(MARKS.0)
        .with_context(|| format!("{PAGE} lacks {}", MARKS.0))?;
    let (_, tail) = rest
        .split_once(MARKS.1)
        .with_context(|| format!("{PAGE} lacks {}", MARKS.1))?;
    Ok(format!("{head}{}\n\n{figures}\n{}{tail}", MARKS.0, MARKS.1))
}

/// Measures and reports; false when a limit is exceeded or the first command did not answer.
///
/// # Errors
/// A step that cannot be run.
pub fn run(root: &Path, options: &Options) -> Result<bool> {
    let temporary = tempfile::tempdir()?;
    let place = options.keep.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(place)?;
    if std::fs::read_dir(place)?.next().is_some() {
        bail!("{} is not empty", place.display());
    }
    let clone = place.join("pinion");
    let cargo_home = place.join("cargo-home");
    keep_configuration(&cargo_home)?;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut figures = Figures::default();
    figures.add("cores", cores.to_string());
    figures.add("load average before", load.trim().to_owned());

    let mut git = Command::new("git");
    git.args(["clone", "--quiet", "--no-local"]);
    match &options.repository {
        Some(repository) => git.arg(repository),
        None => git.arg(root),
    };
    git.arg(&clone);
    let (cost, _) = measure(git)?;
    figures.cost("git clone", cost);
    figures.add("commit", commit(&clone)?);
    let first = first_command(&std::fs::read_to_string(clone.join("README.md"))?)?;
    say(&format!("first command of the README: {}", first.join(" ")));
    let (cost, answer) = measure(in_clone(&first, &clone, &cargo_home)?)?;
    figures.cost("first command", cost);
    let answered = answer.contains("ARCHITECTURE.md");
    if !answered {
        say(&format!("the first command did not list the files:\n{answer}"));
    }
    for (what, path) in [
        ("sources and git", clone.clone()),
        ("of that target/", clone.join("target")),
        ("registry cache", cargo_home.clone()),
    ] {
        figures.add(what, format!("{} MB on disk", disk(&path)? / 1_000_000));
    }
    if options.packages {
        let out = place.join("packages");
        packages(&clone, &cargo_home, &out, &options.profile, &mut figures)?;
    }
    if options.write {
        let page = root.join(PAGE);
        let text = published(&std::fs::read_to_string(&page)?, &figures.markdown())?;
        std::fs::write(&page, text)?;
    }
    let slow = options.max_wall.is_some_and(|most| cost.wall.as_secs() > most)
        || options.max_cpu.is_some_and(|most| cost.cpu.as_secs() > most);
    if slow {
        say("the first command exceeds a limit");
    }
    Ok(answered && !slow)
}

/// Returns the commit of a clone and its date.
fn commit(clone: &Path) -> Result<String> {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%h of %cs"])
        .current_dir(clone)
        .stdout(Stdio::piped());
    Ok(measure(git)?.1.trim().to_owned())
}

/// Copies what says where the registry is into an empty cargo home.
fn keep_configuration(home: &Path) -> Result<()> {
    std::fs::create_dir_all(home)?;
    let old = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
        .context("neither CARGO_HOME nor HOME is set")?;
    for name in CONFIGURATION {
        if old.join(name).is_file() {
            std::fs::copy(old.join(name), home.join(name))?;
        }
    }
    Ok(())
}

/// Finds the first `cargo` command of the README, in a code block or an indented line.
fn first_command(readme: &str) -> Result<Vec<String>> {
    let line = readme
        .lines()
        .map(|line| line.trim().trim_start_matches("$ "))
        .find(|line| line.starts_with("cargo run "))
        .context("the README has no line that begins with \"cargo run\"")?;
    let line = line.split(" #").next().unwrap_or(line);
    let mut words = Vec::new();
    for (index, part) in line.split('"').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    Ok(words)
}

/// Prepares a command in the clone with the empty cargo home, no keys, and an empty home directory for the program.
fn in_clone(words: &[String], clone: &Path, cargo_home: &Path) -> Result<Command> {
    let (program, rest) = words.split_first().context("an empty command")?;
    let mut command = Command::new(program);
    let settings = cargo_home.join("settings-of-pinion");
    command
        .args(rest)
        .current_dir(clone)
        .env("CARGO_HOME", cargo_home)
        .env("PI_CODING_AGENT_DIR", settings)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    // What cargo sets for this very process is not the user's, and keys would choose another model.
    let unwanted = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_TARGET") || name.ends_with("_API_KEY")
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| unwanted(name)) {
        command.env_remove(name);
    }
    Ok(command)
}

/// Builds the program and all artefacts in the clone, and lists them.
fn packages(clone: &Path, cargo_home: &Path, out: &Path, profile: &str, figures: &mut Figures) -> Result<()> {
    let mut programs = Vec::new();
    // Only the last step differs for the static program of the OCI image: the libraries are the same.
    for flags in ["", "-C target-feature=+crt-static -C relocation-model=static"] {
        let line =
            format!("cargo rustc --quiet --locked --profile {profile} -p pinion --bin pinion -- {flags}");
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let (cost, _) = measure(in_clone(&words, clone, cargo_home)?)?;
        let what = if flags.is_empty() {
            "packaged program"
        } else {
            "static program"
        };
        figures.cost(what, cost);
        let built = clone.join("target").join(profile).join("pinion");
        let size = std::fs::metadata(&built)
            .with_context(|| built.display().to_string())?
            .len();
        figures.add(&format!("size of the {what}"), format!("{size} bytes"));
        let kept = cargo_home.join(format!("pinion-{}", programs.len()));
        std::fs::copy(&built, &kept).with_context(|| built.display().to_string())?;
        programs.push(kept);
    }
    let mut programs = programs.into_iter();
    let options = package::Options {
        agent: programs.next().context("no program")?,
        static_agent: programs.next(),
        out: out.to_owned(),
        target: "x86_64-unknown-linux-gnu".to_owned(),
        ca_bundle: PathBuf::from("/etc/ssl/certs/ca-certificates.crt"),
        signing_key: None,
        kinds: Vec::new(),
    };
    for artefact in package::make(clone, &options)? {
        let bytes = std::fs::metadata(out.join(&artefact.name))?.len();
        say(&format!("{bytes:>10} bytes  {}", artefact.name));
        for name in &artefact.contents {
            say(&format!("                  {name}"));
        }
        figures.artefacts.push(Built {
            name: artefact.name,
            bytes,
            contents: artefact.contents,
        });
    }
    Ok(())
}

/// Runs a command; returns its cost, that of its children included, and its output.
fn measure(mut command: Command) -> Result<(Cost, String)> {
    let before = children_cpu()?;
    let start = Instant::now();
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{} does not start", command.get_program().display()))?;
    let wall = start.elapsed();
    if !output.status.success() {
        bail!("{} failed: {}", command.get_program().display(), output.status);
    }
    let cpu = children_cpu()?.saturating_sub(before);
    Ok((
        Cost { wall, cpu },
        String::from_utf8_lossy(&output.stdout).into_owned(),
    ))
}

/// Returns the processor time of all children that have ended, with theirs.
fn children_cpu() -> Result<Duration> {
    // cutime and cstime, the 16th and 17th field; the name in the second may contain blanks and ends with ")".
    let stat = std::fs::read_to_string("/proc/self/stat").context("first-hour needs Linux")?;
    let (_, rest) = stat.rsplit_once(')').context("an odd /proc/self/stat")?;
    let ticks = rest
        .split_whitespace()
        .skip(13)
        .take(2)
        .map(|field| field.parse::<u64>().context("an odd /proc/self/stat"))
        .sum::<Result<u64>>()?;
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_millis(ticks * 1000 / per_second))
}

/// Returns the bytes that a folder takes up on disk.
fn disk(folder: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            bytes += metadata.blocks() * 512;
            if metadata.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_command_is_read_from_readme() {
        let readme = "# Pinion\n\nText\n\n    $ cargo run --release -- -p \"List the files\"  # at once\n\n    cargo run x\n";
        let words = first_command(readme).unwrap();
        assert_eq!(words, ["cargo", "run", "--release", "--", "-p", "List the files"]);
        assert!(first_command("# Pinion").is_err());
    }

    #[test]
    fn figures_replace_those_of_page() {
        let mut figures = Figures::default();
        figures.add("first command", "1.0 s wall".to_owned());
        figures.artefacts.push(Built {
            name: "a.tar.gz".to_owned(),
            bytes: 12,
            contents: vec!["bin/pinion".to_owned(), "LICENSE".to_owned()],
        });
        let page = format!("# Head\n\n{}\nold\n{}\n\nTail\n", MARKS.0, MARKS.1);
        let once = published(&page, &figures.markdown()).unwrap();
        assert!(once.starts_with("# Head\n") && once.ends_with("\n\nTail\n") && !once.contains("old"));
        for wanted in [
            "| first command | 1.0 s wall |",
            "| `a.tar.gz` | 12 | 2 |",
            "bin/pinion\nLICENSE",
        ] {
            assert!(once.contains(wanted), "{once}");
        }
        assert_eq!(published(&once, &figures.markdown()).unwrap(), once);
        assert!(published("no marks", "").is_err());
        let own = include_str!("../../docs/project/first-hour.md");
        assert!(published(own, "").is_ok());
    }

    #[test]
    fn cpu_time_of_children_is_counted() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done",
        ]);
        let (cost, output) = measure(command).unwrap();
        assert_eq!(output, "done\n");
        assert!(cost.cpu >= Duration::from_millis(20), "{cost:?}");
    }
}
