//! Ten thousand flipped bytes: every line that was not hit is read, and the next append is too.

use std::collections::HashSet;

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

#[test]
fn flipped_bytes_cost_only_the_lines_they_hit() {
    let lines = all_entries();
    let whole = text(&lines).into_bytes();
    let mut random = Random(42);
    let path = std::path::PathBuf::from(format!("x_{SESSION_ID}.jsonl"));
    let mut reported = 0;
    for round in 0..10_000 {
        let at = random.next(whole.len());
        let flip = 1 << random.next(8);
        let mut content = whole.clone();
        content[at] ^= flip;
        let disk = Memory::holding(&content);
        let (mut log, damage) = SessionLog::open_on(Box::new(disk.clone()), &path, "/")
            .unwrap_or_else(|e| panic!("round {round}, byte {at}, flip {flip}: {e}"));
        let found: HashSet<String> = ids(&log).into_iter().collect();
        // The line that was hit, and the next one when its line feed was hit.
        let mut start = 0;
        for line in lines.iter() {
            let hit = at >= start && at < start + line.len();
            let is_header = line == HEADER;
            let id = (!is_header).then(|| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["id"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            });
            if let Some(id) = id.filter(|_| !hit) {
                assert!(
                    found.contains(&id),
                    "round {round}, byte {at}, flip {flip}: lost {id}: {damage}"
                );
            }
            start += line.len() + 1;
        }
        reported += usize::from(!damage.is_none());
        let added = log.append(user("next")).unwrap();
        drop(log);
        let (log, after) = SessionLog::open_on(Box::new(disk), &path, "/").unwrap();
        assert_eq!(
            ids(&log).last(),
            Some(&added.id),
            "round {round}, byte {at}, flip {flip}"
        );
        assert_eq!(
            (after.torn_bytes, after.unterminated),
            (0, false),
            "round {round}, byte {at}, flip {flip}"
        );
    }
    // A flip inside a text changes the text and nothing else; many hit the structure.
    assert!(reported > 2_000, "{reported}");
}
