//! Every number that bounds the search for hooks. Those of settings, resources and trust are in their folders.

use std::time::Duration;

/// Default timeout of a hook.
pub const HOOK_WAIT: Duration = Duration::from_secs(30);

/// Bytes of a file that are searched for its `#!` line.
pub const SHEBANG: usize = 512;

/// Directory entries looked at in one directory of hooks.
pub const HOOK_ENTRIES: usize = 2_000;

/// Hooks of one session. Further ones are refused.
pub const HOOKS: usize = 256;
