//! Every number that bounds the checkpoints of a session.

/// Bytes of a file whose content is kept. Of a larger file, a checkpoint only knows that it was there.
pub const FILE_BYTES: u64 = 16 << 20;

/// Bytes of all kept contents of a session. With more, the oldest turns are dropped until half of it is left.
pub const STORE_BYTES: u64 = 512 << 20;

/// Changes and calls that are kept for a session. With more, the oldest turns are dropped until half of them are left.
pub const STEPS: usize = 20_000;

/// Rewinds that can be taken back, the newest first.
pub const REWINDS: usize = 16;

/// Links that are followed to find the file that a path leads to, as on Linux.
pub const LINKS: u32 = 40;

/// Bytes of the diff of one file. The rest is cut.
pub const DIFF_BYTES: usize = 256 << 10;

/// Bytes of all diffs of a reply. Further files are listed without a diff.
pub const DIFFS_BYTES: usize = 2 << 20;

/// Bytes of a text that is compared by lines, before and after together. Larger texts get no diff.
pub const COMPARED_BYTES: u64 = 8 << 20;

/// Files, links and directories of a working directory whose checkpoints contain all of it.
pub const TREE_ENTRIES: usize = 100_000;

/// Bytes of the files of a working directory that are kept at a time. Of files beyond it, a checkpoint only knows that they changed. Half of
/// the store is left for what they were before.
pub const TREE_BYTES: u64 = 256 << 20;

/// A file that changed within so many nanoseconds before a look is read again at the next one. Clocks of file systems tick every 10 ms at
/// most, or every 2 s on FAT, which is not worth the cost for everybody.
pub const TREE_FRESH_NANOS: i128 = 50_000_000;
