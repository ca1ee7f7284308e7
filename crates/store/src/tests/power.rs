//! Power cuts: a disk that loses unsynced writes, cut at every operation, with these writes in any order and torn at
//! sectors (GUARANTEES.md 69). With [`Durability::Disk`] no acknowledged entry may be lost.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::fixtures::*;
use crate::{Durability, Medium, Presence, SessionLog};

/// Bytes that a disk writes at once.
const SECTOR: usize = 512;

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(at, data) => {
                let end = at + data.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*at..end].copy_from_slice(data);
            }
            Self::Truncate(len) => bytes.truncate(*len),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// What would survive.
    durable: Vec<u8>,
    /// What programs see.
    seen: Vec<u8>,
    unsynced: Vec<Change>,
    operations: usize,
    /// Power fails in this operation.
    cut_at: Option<usize>,
    is_off: bool,
    /// The disk is full now and then: one write in so many fails half-way.
    full: Option<u64>,
    random: Random,
}

#[derive(Debug, Default, Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64: every seed, 0 included, gives another run.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// A disk that forgets. Clones share it.
#[derive(Debug, Clone, Default)]
struct Disk(Arc<Mutex<State>>);

impl Disk {
    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap())
    }

    /// An operation that changes something. It is cut off when power fails in it.
    fn change<T>(&self, work: impl FnOnce(&mut State, bool) -> io::Result<T>) -> io::Result<T> {
        self.with(|s| {
            if s.is_off {
                return Err(io::ErrorKind::Other.into());
            }
            s.operations += 1;
            let is_cut = s.cut_at == Some(s.operations);
            let outcome = work(s, is_cut);
            if is_cut {
                s.is_off = true;
                return Err(io::ErrorKind::Other.into());
            }
            outcome
        })
    }

    /// Power comes back: some unsynced sectors are on disk, in any order.
    fn restart(&self) {
        self.with(|s| {
            let mut bytes = std::mem::take(&mut s.durable);
            let mut pieces = Vec::new();
            for change in std::mem::take(&mut s.unsynced) {
                match change {
                    Change::Write(at, data) => {
                        let mut from = 0;
                        while from < data.len() {
                            let end = ((at + from) / SECTOR + 1) * SECTOR - at;
                            let end = end.min(data.len());
                            pieces.push(Change::Write(at + from, data[from..end].to_vec()));
                            from = end;
                        }
                    }
                    truncate => pieces.push(truncate),
                }
            }
            while !pieces.is_empty() {
                let piece = pieces.swap_remove(s.random.below(pieces.len()));
                if s.random.below(2) == 0 {
                    piece.apply(&mut bytes);
                }
            }
            s.seen.clone_from(&bytes);
            s.durable = bytes;
            (s.is_off, s.cut_at) = (false, None);
        });
    }
}

impl Medium for Disk {
    fn size(&self) -> io::Result<u64> {
        Ok(self.with(|s| s.seen.len() as u64))
    }
    fn presence(&self) -> io::Result<Presence> {
        if self.with(|s| s.is_off) {
            return Err(io::ErrorKind::Other.into());
        }
        Ok(Presence::Same)
    }
    fn read_from(&self, offset: u64) -> io::Result<Vec<u8>> {
        Ok(self.with(|s| s.seen[offset as usize..].to_vec()))
    }
    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        Ok(self.read_from(offset)?[..len].to_vec())
    }
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.change(|s, is_cut| {
            let is_full = s
                .full
                .is_some_and(|one_in| s.random.next().is_multiple_of(one_in));
            let taken = if is_cut || is_full {
                s.random.below(bytes.len() + 1)
            } else {
                bytes.len()
            };
            let change = Change::Write(s.seen.len(), bytes[..taken].to_vec());
            change.apply(&mut s.seen);
            s.unsynced.push(change);
            if is_full && taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Ok(taken)
        })
    }
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.change(|s, _| {
            let change = Change::Truncate(len as usize);
            change.apply(&mut s.seen);
            s.unsynced.push(change);
            Ok(())
        })
    }
    fn sync(&mut self) -> io::Result<()> {
        self.change(|s, is_cut| {
            if !is_cut {
                s.durable.clone_from(&s.seen);
                s.unsynced.clear();
            }
            Ok(())
        })
    }
    fn replace(&mut self, bytes: &[u8]) -> io::Result<Option<PathBuf>> {
        self.with(|s| {
            (s.durable, s.seen) = (bytes.to_vec(), bytes.to_vec());
            s.unsynced.clear();
        });
        Ok(None)
    }
    fn restore(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn open(disk: &Disk, durability: Durability) -> crate::Result<SessionLog> {
    let (mut log, _) = SessionLog::open_on(Box::new(disk.clone()), Path::new("s.jsonl"), "/")?;
    log.set_durability(durability);
    Ok(log)
}

/// Talks until power fails; gives the ids that were acknowledged: those of entries of which none waits.
fn talk(disk: &Disk, durability: Durability, turns: usize) -> Vec<String> {
    let Ok(mut log) = open(disk, durability) else {
        return Vec::new();
    };
    let mut acknowledged = ids(&log);
    for turn in 0..turns {
        let size = disk.with(|s| s.random.below(1_500));
        let bodies = vec![user(&turn.to_string()), answer(&"x".repeat(size))];
        let stored = log.keep(bodies).and_then(|()| log.ensure_on_disk());
        if stored.is_ok() && log.waiting() == 0 {
            acknowledged = ids(&log);
        }
        if disk.with(|s| s.is_off) {
            break;
        }
    }
    acknowledged
}

/// One run with a cut; gives how many acknowledged entries were lost, and how many operations there were.
fn lost(seed: u64, cut_at: Option<usize>, full: Option<u64>, durability: Durability) -> (usize, usize) {
    let disk = Disk::default();
    disk.with(|s| (s.random, s.cut_at, s.full) = (Random(seed), cut_at, full));
    let acknowledged = talk(&disk, durability, 6);
    let operations = disk.with(|s| s.operations);
    disk.restart();
    disk.with(|s| s.full = None);
    let survived = match open(&disk, durability) {
        Ok(log) => ids(&log),
        Err(_) => Vec::new(),
    };
    let lost = acknowledged.iter().filter(|id| !survived.contains(id)).count();
    // In their order, and nothing of a stranger in between.
    if lost == 0 {
        assert_eq!(survived[..acknowledged.len()], acknowledged[..], "seed {seed}");
    }
    (lost, operations)
}

#[test]
fn power_cut_anywhere_keeps_acknowledged_entries() {
    for seed in 0..50 {
        let (none, operations) = lost(seed, None, None, Durability::Disk);
        assert_eq!(none, 0);
        assert!(operations >= 12, "a write and a sync for each turn");
        for cut in 1..=operations {
            let (lost, _) = lost(seed, Some(cut), None, Durability::Disk);
            assert_eq!(lost, 0, "seed {seed}, operation {cut}");
        }
    }
}

#[test]
fn power_cuts_on_failing_disk_keep_acknowledged_entries() {
    for seed in 0..10_000 {
        let mut random = Random(seed);
        let cut = 1 + random.below(16);
        let full = (random.below(2) == 0).then_some(5);
        let (lost, _) = lost(seed, Some(cut), full, Durability::Disk);
        assert_eq!(lost, 0, "seed {seed}, operation {cut}");
    }
}

/// The double really forgets.
#[test]
fn power_cut_without_the_setting_loses_entries() {
    let losses = (0..200).filter(|seed| lost(*seed, Some(5), None, Durability::Process).0 > 0);
    assert!(losses.count() > 50);
}

#[test]
fn session_continues_after_several_power_cuts() {
    for seed in 0..40 {
        let disk = Disk::default();
        disk.with(|s| s.random = Random(seed));
        let mut acknowledged = Vec::new();
        for _ in 0..4 {
            disk.with(|s| s.cut_at = Some(s.operations + 1 + s.random.below(12)));
            let now = talk(&disk, Durability::Disk, 6);
            assert!(
                acknowledged.iter().all(|id| now.contains(id)) || now.is_empty(),
                "seed {seed}"
            );
            acknowledged.extend(
                now.into_iter()
                    .filter(|id| !acknowledged.contains(id))
                    .collect::<Vec<_>>(),
            );
            disk.restart();
        }
        let survived = open(&disk, Durability::Disk)
            .map(|log| ids(&log))
            .unwrap_or_default();
        let lost = acknowledged.iter().filter(|id| !survived.contains(id)).count();
        assert_eq!(lost, 0, "seed {seed}");
    }
}

/// One batch, however many entries, is one write and one sync.
#[test]
fn batch_is_synced_once() {
    let disk = Disk::default();
    let mut log = open(&disk, Durability::Disk).unwrap();
    log.keep(vec![user("1")]).unwrap();
    log.ensure_on_disk().unwrap();
    let before = disk.with(|s| s.operations);
    log.keep((0..20).map(|n| user(&n.to_string())).collect()).unwrap();
    assert_eq!(disk.with(|s| s.operations) - before, 2);
}
