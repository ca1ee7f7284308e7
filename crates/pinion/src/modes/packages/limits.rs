//! Every number that bounds what package commands wait for and keep.

use std::time::Duration;

/// Timeout of one run of a package manager or of `git clone`.
pub(super) const INSTALL: Duration = Duration::from_secs(600);
/// Timeout of git commands that read a little from the repository or its server.
pub(super) const QUERY: Duration = Duration::from_secs(60);
/// Time after which a program that still runs is shown on the terminal.
pub(super) const SHOW_AFTER: Duration = Duration::from_secs(1);
/// Time for the pipes of an ended program to close; background processes may hold them.
pub(super) const PIPES: Duration = Duration::from_secs(2);
/// Timeout for the lock against other package commands.
pub(super) const LOCK: Duration = Duration::from_secs(900);
/// Interval of attempts to get the lock.
pub(super) const LOCK_POLL: Duration = Duration::from_millis(100);
/// Age after which a package that only `-e` names, without an exact version, is installed again.
pub(super) const NAMED_AGE: Duration = Duration::from_secs(24 * 3600);
/// Bytes of standard output that are kept.
pub(super) const OUTPUT_BYTES: usize = 1024 * 1024;
/// Bytes at the end of an output that an error message shows.
pub(super) const ERROR_BYTES: usize = 2000;
/// Bytes of a manifest or lock file.
pub(super) const MANIFEST_BYTES: u64 = 16 * 1024 * 1024;
/// Depth down to which files are copied instead of shared: package managers write their own files in place there.
pub(super) const COPIED_DEPTH: usize = 3;
