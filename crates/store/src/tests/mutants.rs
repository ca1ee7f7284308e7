//! Ten thousand flipped bits per file: every undamaged line is read, every lost one reported, and the next append is
//! readable.

use super::faults::Memory;
use super::fixtures::*;
use crate::SessionLog;

/// A small generator with a fixed seed, so that a failure can be seen again.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }
}

/// Flips a bit ten thousand times; gives how often something was reported.
fn flip_bits(lines: &[String], seed: u64) -> usize {
    let whole = text(lines).into_bytes();
    let path = std::path::PathBuf::from(format!("x_{SESSION_ID}.jsonl"));
    let open = |disk: &Memory| SessionLog::open_on(Box::new(disk.clone()), &path, "/");
    let (entries, _) = open(&Memory::holding(&whole)).unwrap();
    let (entries, mut random, mut reported) = (entries.entries().to_vec(), Random(seed), 0);
    for round in 0..10_000 {
        let (at, flip) = (random.next(whole.len()), 1 << random.next(8));
        let mut content = whole.clone();
        content[at] ^= flip;
        let place = format!("round {round}, byte {at}, flip {flip}");
        let disk = Memory::holding(&content);
        let (mut log, damage) = open(&disk).unwrap_or_else(|e| panic!("{place}: {e}"));
        // Every undamaged line after the header.
        let mut start = lines[0].len() + 1;
        for (line, entry) in lines[1..].iter().zip(&entries) {
            let hit = at >= start && at < start + line.len();
            let found = log.entries().contains(entry);
            assert!(hit || found, "{place}: lost {}: {damage}", entry.id);
            start += line.len() + 1;
        }
        let lost = log.entries().len() < entries.len();
        assert!(!lost || !damage.is_none(), "{place}: lost and not told");
        reported += usize::from(!damage.is_none());
        let added = log.append(user("next")).unwrap();
        assert_eq!(log.damage(), &damage, "{place}: reported twice");
        let seen = ids(&log);
        drop(log);
        let (log, after) = open(&disk).unwrap();
        assert_eq!((ids(&log).last(), ids(&log)), (Some(&added.id), seen), "{place}");
        assert_eq!((after.torn_bytes, after.unterminated), (0, false), "{place}");
    }
    reported
}

fn variant(name: &str) -> Vec<String> {
    let variant = super::variants::variants()
        .into_iter()
        .find(|v| v.name.starts_with(name));
    variant.unwrap().lines
}

#[test]
fn flipped_bits_lose_one_line() {
    // A flip inside a text changes the text and nothing else; many hit the structure.
    let reported = flip_bits(&all_entries(), 42);
    assert!(reported > 2_000, "{reported}");
}

#[test]
fn flipped_bits_in_xcsh_file_lose_line() {
    let reported = flip_bits(&variant("v3 X, named by an entry"), 43);
    assert!(reported > 2_000, "{reported}");
}

#[test]
fn flipped_bits_in_current_pi_file_lose_line() {
    let reported = flip_bits(&variant("pi 1.x, compacted"), 44);
    assert!(reported > 2_000, "{reported}");
}
