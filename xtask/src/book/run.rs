//! Runs the blocks that are marked `run`: each in an empty directory with a home of its own, an environment that holds nothing else,
//! and the agent as `pinion` on `PATH`. Python and JavaScript find the SDKs of the repository. Commands of a `console` block must
//! print what the block shows. `ts,run,extension` is an extension that the agent has to load. A block fails when it ends with an error or takes longer than [`LONGEST`].

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::Report;
use super::console::{self, differs};
use super::page::{Block, Page};

/// Longest time of a program.
const LONGEST: Duration = Duration::from_secs(120);

/// The repository and the agent that blocks are run with.
pub(super) struct Runner<'a> {
    pub(super) root: &'a Path,
    pub(super) agent: &'a Path,
}

/// The end of a block: nothing, or the error.
type Outcome = std::result::Result<(), String>;

impl Runner<'_> {
    pub(super) fn check(&self, pages: &[Page], report: &mut Report) -> Result<()> {
        let mut missing = BTreeSet::new();
        for page in pages {
            for block in page.blocks.iter().filter(|block| block.has("run")) {
                match self.run(block)? {
                    Some(outcome) => {
                        report.count("run");
                        if let Err(why) = outcome {
                            report.wrong.push(format!("{}: {why}", page.place(block.line)));
                        }
                    }
                    None => {
                        missing.insert(block.language.as_str());
                    }
                }
            }
        }
        for language in missing {
            crate::out::complain(&format!(
                "not run, nothing here runs {language}: blocks in that language"
            ));
        }
        Ok(())
    }

    /// Runs a block; none if its language has no interpreter here.
    fn run(&self, block: &Block) -> Result<Option<Outcome>> {
        let place = Place::new(self)?;
        let text = block.text.as_str();
        match block.language.as_str() {
            "sh" | "bash" => place.end(Command::new(&block.language).args(["-eu", "-c", text])),
            "python" => {
                let mut python = Command::new("python3");
                place.end(
                    python
                        .args(["-c", text])
                        .env("PYTHONPATH", self.root.join("sdk/python")),
                )
            }
            "ts" if block.has("extension") => {
                fs::write(place.work.join("block.ts"), text)?;
                let has_node = place.output(Command::new("node").arg("--version"))?.is_some();
                let mut agent = Command::new("pinion");
                agent.args([
                    "-e",
                    "block.ts",
                    "--model",
                    "offline/echo",
                    "--mode",
                    "json",
                    "-p",
                    "Hi",
                ]);
                let output = place.output(&mut agent)?.filter(|_| has_node);
                Ok(output.map(|output| match output? {
                    events if events.contains("extension_error") => {
                        Err(format!("the extension is not loaded\n{events}"))
                    }
                    _ => Ok(()),
                }))
            }
            "js" | "ts" => {
                fs::write(place.work.join("block.mjs"), text)?;
                place.end(Command::new("node").arg("block.mjs"))
            }
            "console" => {
                for (command, wanted) in console::commands(text) {
                    let shell = place.output(Command::new("bash").args(["-eu", "-c", &command]))?;
                    let Some(shell) = shell else { return Ok(None) };
                    let found = shell.and_then(|output| match differs(&wanted, &output) {
                        Some(line) => Err(format!(
                            "`{command}` prints {line}, which the block does not show"
                        )),
                        None => Ok(()),
                    });
                    if found.is_err() {
                        return Ok(Some(found));
                    }
                }
                Ok(Some(Ok(())))
            }
            other => Ok(Some(Err(format!("blocks of {other} cannot be run")))),
        }
    }
}

/// Where one block runs.
struct Place {
    dir: tempfile::TempDir,
    work: PathBuf,
    path: String,
}

impl Place {
    fn new(runner: &Runner<'_>) -> Result<Self> {
        let dir = tempfile::tempdir().context("no temporary directory")?;
        let [home, bin, work] = ["home", "bin", "work"].map(|name| dir.path().join(name));
        for folder in [&home, &bin, &work] {
            fs::create_dir(folder)?;
        }
        symlink(runner.agent, bin.join("pinion"))?;
        // In the parent of the working directory, which has to be empty: node looks for packages in the parents, too.
        fs::create_dir(dir.path().join("node_modules"))?;
        symlink(
            runner.root.join("sdk/typescript"),
            dir.path().join("node_modules/pinion-agent"),
        )?;
        let path = std::env::var("PATH").unwrap_or_default();
        Ok(Self {
            path: format!("{}:{path}", bin.display()),
            work,
            dir,
        })
    }

    fn end(&self, command: &mut Command) -> Result<Option<Outcome>> {
        Ok(self.output(command)?.map(|output| output.map(drop)))
    }

    /// Standard output of a program, or the error; none if there is no such program.
    fn output(&self, command: &mut Command) -> Result<Option<std::result::Result<String, String>>> {
        let [out, log] = ["out", "log"].map(|name| self.dir.path().join(name));
        let name = command.get_program().to_string_lossy().into_owned();
        let pythonpath: Vec<_> = command
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect();
        let spawned = command
            .current_dir(&self.work)
            .env_clear()
            .envs(pythonpath)
            .env("HOME", self.dir.path().join("home"))
            .env("PATH", &self.path)
            .stdin(Stdio::null())
            .stdout(fs::File::create(&out)?)
            .stderr(fs::File::create(&log)?)
            .spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot run {name}")),
        };
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if start.elapsed() > LONGEST {
                child.kill()?;
                child.wait()?;
                break None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let output = fs::read_to_string(&out).unwrap_or_default();
        let words = format!("{output}{}", fs::read_to_string(&log).unwrap_or_default());
        Ok(Some(match status {
            Some(status) if status.success() => Ok(output),
            Some(status) => Err(format!("the block ends with {status}\n{}", words.trim_end())),
            None => Err(format!(
                "the block runs longer than {LONGEST:?}\n{}",
                words.trim_end()
            )),
        }))
    }
}
