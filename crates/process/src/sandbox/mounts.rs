//! A view of the file system of the calling process's own: everything is mounted for reading only but what may be written,
//! and closed places are covered. It needs a user namespace, which not every system gives away. What `landlock` cannot do is
//! done here: to take something out of what may be written, and to keep owners, modes and times as they are.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount,
};

use super::placeholders::cannot_be_made;
use super::policy::{Access, DEVICES, Policy, Zone};

/// Memory that programs share by name; the view has one of its own.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";
/// Options of a mount that a bind mount keeps.
const KEPT: [(&str, MountFlags); 6] = [
    ("nosuid", MountFlags::NOSUID),
    ("nodev", MountFlags::NODEV),
    ("noexec", MountFlags::NOEXEC),
    ("noatime", MountFlags::NOATIME),
    ("nodiratime", MountFlags::NODIRATIME),
    ("relatime", MountFlags::RELATIME),
];

/// Creates a private view of the file system, at first equal to the shared one. Returns false if the system forbids it.
pub(super) fn begin() -> bool {
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    // With a namespace of its own for memory and queues that are shared by number (`filter`).
    let spaces = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    if unshare(spaces).is_err() {
        return false;
    }
    let map = |name: &str, line: String| std::fs::write(format!("/proc/self/{name}"), line).is_ok();
    // Without it the kernel takes no map of groups from a user without rights (user_namespaces(7)).
    map("setgroups", "deny".to_owned())
        && map("uid_map", format!("{0} {0} 1", user.as_raw()))
        && map("gid_map", format!("{0} {0} 1", group.as_raw()))
        // Mounts of this view must not show in the shared one.
        && mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).is_ok()
}

/// Returns true if mounts can express the policy. They cannot cover the root itself, nor a link: a replaced link would
/// bypass the mount.
pub(super) fn fits(policy: &Policy) -> bool {
    let is_link = |zone: &Zone| {
        let found = zone.path.symlink_metadata();
        found.is_ok_and(|found| found.is_symlink()) && above(policy, &zone.path) == Access::Write
    };
    policy.access(Path::new("/")) != Access::Write && !policy.zones().iter().any(is_link)
}

/// Shapes the view after [`begin`].
///
/// # Errors
/// What could not be mounted.
pub(super) fn shape(policy: &Policy) -> Result<(), String> {
    let zones = || policy.zones().iter().filter(|zone| zone.path != Path::new("/"));
    // Sorted by path: a mount over a place comes before the mounts below it.
    for zone in zones() {
        let inside = above(policy, &zone.path) == Access::Write;
        match zone.access {
            // As a mount of its own it stays writable when the mount around it is made read-only.
            Access::Write => on_itself(&zone.path)?,
            Access::Read if inside => {
                fix_way(policy, &zone.path)?;
                let is_missing = zone.made && zone.path.symlink_metadata().is_err();
                // The guardian makes it and keeps it there, unless the command cannot make it either.
                if is_missing && !cannot_be_made(&zone.path) {
                    return Err(format!("{} is missing", zone.path.display()));
                }
                if !is_missing {
                    on_itself(&zone.path)?;
                }
            }
            // The mount around it becomes read-only below.
            Access::Read => {}
            // Devices are Landlock's business: some of them must be there.
            Access::None if zone.path == Path::new(DEVICES) => {}
            Access::None => {
                if inside {
                    fix_way(policy, &zone.path)?;
                }
                cover(policy, zone)?;
            }
        }
    }
    // If that fails, the shared memory of all stays, and is made read-only below.
    let own = mount(
        "tmpfs",
        SHARED_MEMORY,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        None,
    );
    for (path, flags) in mounted()? {
        let is_own = own.is_ok() && path == Path::new(SHARED_MEMORY);
        if !is_own && policy.access(&path) != Access::Write {
            // What cannot be made read-only (a mount that is hidden, or whose owner is another) Landlock still guards.
            // With its options, which a user namespace may not take off (mount_namespaces(7)).
            let _ = mount_remount(&path, flags | MountFlags::BIND | MountFlags::RDONLY, c"");
        }
    }
    // The old working directory is still that of the old view.
    Ok(())
}

/// What holds around a place.
fn above(policy: &Policy, path: &Path) -> Access {
    path.parent().map_or(Access::None, |parent| policy.access(parent))
}

/// Makes a place a mount of its own, so that it can be neither moved nor replaced. Does nothing for a missing place.
fn on_itself(path: &Path) -> Result<(), String> {
    match mount_bind_recursive(path, path) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(format!("{} cannot be mounted: {error}", path.display())),
    }
}

/// Applies `on_itself` to the directories between a place and the writable zone around it: moving one of them would
/// move the place.
fn fix_way(policy: &Policy, path: &Path) -> Result<(), String> {
    let is_zone = |path: &&Path| policy.zones().iter().any(|zone| zone.path == **path);
    let way: Vec<&Path> = path
        .ancestors()
        .skip(1)
        .take_while(|path| !is_zone(path))
        .collect();
    way.into_iter().rev().try_for_each(on_itself)
}

/// Mounts an empty directory, or the empty device, over a place; open zones below it are mounted again.
fn cover(policy: &Policy, zone: &Zone) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{} cannot be closed: {error}", zone.path.display());
    let Ok(found) = zone.path.symlink_metadata() else {
        return Ok(());
    };
    if found.file_type().is_symlink() {
        return Err(failed(&"it has become a link"));
    }
    if !found.is_dir() {
        return rustix::mount::mount_bind("/dev/null", &zone.path).map_err(|error| failed(&error));
    }
    // Opened before the place is covered: afterwards their paths lead to the cover.
    let open: Vec<(&Path, bool, OwnedFd)> = policy
        .zones()
        .iter()
        .filter(|inner| inner.access > Access::None && inner.path.starts_with(&zone.path))
        .filter_map(|inner| {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let place =
                rustix::fs::openat2(CWD, &inner.path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
                    .ok()?;
            Some((inner.path.as_path(), inner.path.is_dir(), place))
        })
        .collect();
    // Mode 711 lets paths lead through to the open places without listing the others.
    let options = if open.is_empty() {
        c"size=64k,mode=000"
    } else {
        c"size=64k,mode=711"
    };
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tmpfs", &zone.path, "tmpfs", flags, options).map_err(|error| failed(&error))?;
    for (path, is_dir, place) in open {
        let made = if is_dir {
            std::fs::create_dir_all(path)
        } else {
            let parent = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            parent.and_then(|()| std::fs::write(path, ""))
        };
        made.map_err(|error| failed(&error))?;
        let source = format!("/proc/self/fd/{}", place.as_raw_fd());
        mount_bind_recursive(source, path).map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// All mounts with the options they keep, the latest of those at one place last.
fn mounted() -> Result<Vec<(PathBuf, MountFlags)>, String> {
    let list =
        std::fs::read("/proc/self/mountinfo").map_err(|error| format!("The mounts are unknown: {error}"))?;
    let lines = list.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(mount_of).collect())
}

/// `36 35 98:0 /mnt1 /mnt/parent rw,noatime ...`: the fifth word is the place, the sixth its options.
fn mount_of(line: &[u8]) -> Option<(PathBuf, MountFlags)> {
    let mut words = line.split(|byte| *byte == b' ').skip(4);
    let (place, options) = (words.next()?, words.next()?);
    let flags = options
        .split(|byte| *byte == b',')
        .filter_map(|option| KEPT.iter().find(|(name, _)| name.as_bytes() == option))
        .fold(MountFlags::empty(), |all, (_, flag)| all | *flag);
    Some((PathBuf::from(OsStr::from_bytes(&unescaped(place))), flags))
}

/// Blanks and the like are written as `\040`.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let code = after.first_chunk::<3>().filter(|_| *first == b'\\');
        let number = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 8).ok());
        match number {
            Some(number) => {
                out.push(number);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_line_gives_place_and_kept_options() {
        let line = b"36 35 98:0 / /mnt/a rw,nosuid,noexec,relatime shared:1 - ext4 /dev/sda rw";
        let (place, flags) = mount_of(line).unwrap();
        assert_eq!(place, Path::new("/mnt/a"));
        assert_eq!(
            flags,
            MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::RELATIME
        );
        assert_eq!(mount_of(b"36 35 98:0 /"), None, "a line without a place");
        assert_eq!(mount_of(b""), None);
    }

    #[test]
    fn escaped_letters_of_places_are_read() {
        assert_eq!(unescaped(br"/a\040b\134c"), br"/a b\c");
        assert_eq!(unescaped(br"/a\04"), br"/a\04", "too short for a code");
        assert_eq!(unescaped(br"/a\999"), br"/a\999", "no octal number");
        assert_eq!(unescaped(b""), b"");
    }

    #[test]
    fn own_mounts_include_the_root() {
        let mounted = mounted().unwrap();
        assert!(mounted.iter().any(|(place, _)| place == Path::new("/")));
    }
}
