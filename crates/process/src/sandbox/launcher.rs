//! The launcher: the agent's own program, started with one word, a policy and a command; it confines itself for good and
//! becomes the command. So nothing of the agent runs confined, and nothing of the command unconfined.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use rustix::process::{Resource, Rlimit};
use rustix::thread::CapabilitySet;

use super::policy::Policy;
use super::{filter, landlock, mounts};

/// How a launcher ends that does not become the command.
// As a shell ends for a command that it has found and cannot run (POSIX).
pub(crate) const FAILED: u8 = 126;
/// What it says then begins with this.
pub(crate) const COMPLAINT: &str = "The sandbox could not be set up, so nothing was run: ";
/// In place of a policy: say what this system offers.
const PROBE: &str = "probe";

/// What a system offers for a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Offered {
    /// The version of Landlock; 0 for none, and without it there is no sandbox.
    pub landlock: u32,
    /// True if user namespaces work. Without them, no file can be created directly in a directory that contains a
    /// closed place.
    pub namespaces: bool,
}

/// Runs the launcher. `words` are its arguments without [`super::SANDBOX_ARG`], `cwd` its working directory; `say`
/// prints the result of a probe. Call it before anything else in `main`.
#[must_use]
pub fn main(words: Vec<OsString>, cwd: std::io::Result<PathBuf>, say: impl FnOnce(&str)) -> ExitCode {
    let mut words = words.into_iter();
    let policy = words.next().unwrap_or_default();
    if policy == PROBE {
        // Before Landlock, which lets a confined process mount nothing.
        let namespaces = mounts::begin();
        let offered = Offered {
            landlock: landlock::version(),
            namespaces,
        };
        say(&serde_json::to_string(&offered).unwrap_or_default());
        return ExitCode::SUCCESS;
    }
    let Err(why) = become_command(&policy.to_string_lossy(), cwd, words);
    let _unread = writeln!(std::io::stderr(), "{COMPLAINT}{why}");
    ExitCode::from(FAILED)
}

/// Asks a launcher what this system offers; nothing when it cannot be started.
#[must_use]
pub fn probe(launcher: &std::path::Path) -> Offered {
    let asked = Command::new(launcher)
        .args([super::SANDBOX_ARG, PROBE])
        .env_clear()
        .output();
    asked
        .ok()
        .and_then(|output| serde_json::from_slice(&output.stdout).ok())
        .unwrap_or_default()
}

fn become_command(
    policy: &str,
    cwd: std::io::Result<PathBuf>,
    mut words: impl Iterator<Item = OsString>,
) -> Result<std::convert::Infallible, String> {
    let policy: Policy =
        serde_json::from_str(policy).map_err(|error| format!("its policy is broken: {error}"))?;
    let program = words.next().ok_or("no command is named")?;
    // Files of the agent must not be inherited: a descriptor passes by all rules about paths.
    close_files();
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    // Memory that has seen secrets does not end in a file.
    rustix::process::setrlimit(Resource::Core, none).map_err(|error| error.to_string())?;
    let is_shaped = mounts::fits(&policy) && mounts::begin();
    if is_shaped {
        let cwd = cwd.map_err(|error| error.to_string())?;
        mounts::shape(&policy)?;
        // The old working directory still lies in the view without restrictions.
        rustix::process::chdir(&cwd).map_err(|error| format!("{}: {error}", cwd.display()))?;
    }
    // After the mounts, which need the rights of the new namespace.
    give_up_rights();
    let reach = landlock::Reach::All {
        policy: &policy,
        is_shaped,
    };
    // After the mounts, which Landlock would refuse.
    let version = landlock::confine(&reach)?;
    // Last: it refuses system calls that the steps before need.
    filter::confine(&policy, version, is_shaped)?;
    let error = Command::new(&program).args(words).exec();
    Err(format!("{}: {error}", PathBuf::from(program).display()))
}

/// Gives up the rights of root but those over files' owners and modes; what it starts gets no others.
fn give_up_rights() {
    let kept =
        CapabilitySet::CHOWN | CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER | CapabilitySet::FSETID;
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if !kept.contains(one) && rustix::thread::remove_capability_from_bounding_set(one).is_err() {
            // The first number that the kernel does not know: there are no more.
            break;
        }
    }
}

/// Closes inherited descriptors except the standard streams.
fn close_files() {
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    // The list itself was one of them and is closed by now.
    for file in open.into_iter().filter(|file| *file > 2) {
        let _ = nix::unistd::close(file);
    }
}
