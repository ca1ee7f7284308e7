//! Applies Landlock to the calling thread and its later children: their access to files, and no signals to processes
//! outside. `policy` decides the access. The restriction cannot be undone.

use std::os::fd::OwnedFd;
use std::path::Path;

use ::landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use super::policy::{Access, Policy};

/// The version whose rights are requested; an older kernel applies the rights that it knows.
const VERSION: ABI = ABI::V7;
/// Devices that may be written: they keep nothing.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// What the calling thread shall be able to reach.
pub(super) enum Reach<'a> {
    /// Access as in the policy. `is_shaped` is true if `mounts` has already removed closed places and made read-only
    /// places unwritable.
    All { policy: &'a Policy, is_shaped: bool },
    /// To read what the policy allows to read.
    Reading(&'a Policy),
    /// One file.
    File(&'a OwnedFd),
}

/// The version of Landlock that the kernel has, 0 for none. Confines the calling thread.
pub(super) fn version() -> u32 {
    let reach = Ruleset::default().handle_access(AccessFs::Execute);
    let status = reach
        .and_then(Ruleset::create)
        .and_then(RulesetCreated::restrict_self);
    match status.map(|status| status.landlock) {
        Ok(LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        }) => kernel_abi.map_or(effective_abi as u32, i32::cast_unsigned),
        _ => 0,
    }
}

/// Confines the calling thread for good. Returns the version that is in force.
///
/// # Errors
/// When the kernel has no Landlock, or does not take the rules.
pub(super) fn confine(reach: &Reach<'_>) -> Result<u32, String> {
    let failed = |error: ::landlock::RulesetError| format!("Landlock refuses the rules: {error}");
    // Landlock refuses every handled access that no rule below grants.
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(VERSION))
        .map_err(failed)?;
    // A thread that runs a file tool opens no connections: only its access to files matters.
    if let Reach::All { policy, .. } = reach {
        rules = rules.scope(Scope::from_all(VERSION)).map_err(failed)?;
        if !policy.network {
            rules = rules
                .handle_access(AccessNet::from_all(VERSION))
                .map_err(failed)?;
        }
    }
    let rules = rules.create().map_err(failed)?;
    let rules = match reach {
        Reach::All { policy, is_shaped } => everything(rules, policy, *is_shaped),
        Reach::Reading(policy) => reading(rules, policy),
        Reach::File(file) => rules.add_rule(PathBeneath::new(file, writing_files())),
    };
    let status = rules.and_then(RulesetCreated::restrict_self).map_err(failed)?;
    match (status.ruleset, status.landlock) {
        // Fails closed: rules that are not in force are no sandbox.
        (RulesetStatus::NotEnforced, _) => Err(UNAVAILABLE.to_owned()),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(effective_abi as u32),
        _ => Err(UNAVAILABLE.to_owned()),
    }
}

/// Why there is no sandbox without it.
pub(super) const UNAVAILABLE: &str = "this kernel offers no Landlock (Linux 5.13 or later, enabled at boot)";

type Rules = Result<RulesetCreated, ::landlock::RulesetError>;

fn everything(rules: RulesetCreated, policy: &Policy, is_shaped: bool) -> Rules {
    let mut rules = if is_shaped {
        reading(rules, &policy.uncovered())?
    } else {
        reading(rules, policy)?
    };
    // Mounts keep read-only places inside of these zones unwritable, so a zone is granted as a whole.
    let writable: Vec<_> = if is_shaped {
        let zones = policy.zones().iter();
        let paths = zones.filter(|zone| zone.access == Access::Write);
        paths
            .map(|zone| zone.path.clone())
            .chain([super::mounts::SHARED_MEMORY.into()])
            .collect()
    } else {
        policy.grants(Access::Write)
    };
    rules = grant(rules, writable.iter().map(AsRef::as_ref), writing())?;
    grant(
        rules,
        DEVICES.iter().map(Path::new),
        writing_files() | AccessFs::IoctlDev,
    )
}

/// Names can be listed where something below must not be read; the kernel cannot tell these apart.
fn reading(rules: RulesetCreated, policy: &Policy) -> Rules {
    let readable = policy.grants(Access::Read);
    let rules = grant(rules, readable.iter().map(AsRef::as_ref), seeing())?;
    let listed = policy.zones().iter();
    let listed =
        listed.filter(|zone| zone.access >= Access::Read && policy.has_less_below(&zone.path, Access::Read));
    grant(
        rules,
        listed.map(|zone| zone.path.as_path()),
        AccessFs::ReadDir.into(),
    )
}

fn seeing() -> BitFlags<AccessFs> {
    AccessFs::from_read(VERSION)
}

fn writing_files() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate
}

/// All but making devices.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_all(VERSION) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

/// Grants rights on places. A missing place is left out. Paths of a policy contain no links: a link that was created
/// since is not followed.
fn grant<'a>(
    mut rules: RulesetCreated,
    paths: impl Iterator<Item = &'a Path>,
    access: BitFlags<AccessFs>,
) -> Rules {
    for path in paths {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        if let Ok(place) = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            rules = rules.add_rule(PathBeneath::new(place, access))?;
        }
    }
    Ok(rules)
}
