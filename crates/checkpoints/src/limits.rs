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
