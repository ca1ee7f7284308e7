//! What must be left of a damaged file is found rightly.

use super::check::is_in_order;
use super::damage::{cuts, flip};
use crate::fuzz::prng::Prng;

fn lines() -> Vec<String> {
    [
        "{\"type\":\"session\"}\n",
        "{\"id\":\"a\"}\n",
        "{\"id\":\"b\"}\n",
        "{\"id\":\"c\"}\n",
    ]
    .map(str::to_owned)
    .to_vec()
}

#[test]
fn cut_keeps_lines_before_it() {
    let cases = cuts(&lines(), 2, 1);
    assert_eq!(cases.len(), 22);
    // Behind the LF of `a`, inside of `b`, behind `b` without its LF, behind `b`.
    for (at, whole, told) in [
        (0, 2, (0, 0)),
        (1, 2, (1, 1)),
        (9, 2, (1, 1)),
        (10, 3, (0, 1)),
        (11, 3, (0, 0)),
    ] {
        let case = &cases[at];
        assert_eq!((case.whole.len(), case.told), (whole, told), "{}", case.name);
    }
    assert_eq!(cuts(&lines(), 2, 5).len(), 5);
}

#[test]
fn wrong_byte_damages_only_its_line() {
    let lines = lines();
    let text = lines.concat();
    let mut random = Prng::new(1);
    for _ in 0..2_000 {
        let case = flip(&lines, false, &mut random);
        let different = text
            .bytes()
            .zip(&case.bytes)
            .filter(|(before, after)| before != *after);
        assert_eq!(different.count(), 1);
        let kept: Vec<&[u8]> = case.bytes.split(|byte| *byte == b'\n').collect();
        for number in &case.whole {
            assert!(
                kept.contains(&lines[*number].trim_end().as_bytes()),
                "{}",
                case.name
            );
        }
        assert!(case.whole.len() >= lines.len() - 2);
    }
}

#[test]
fn header_flip_damages_header() {
    let mut random = Prng::new(2);
    for _ in 0..200 {
        assert!(!flip(&lines(), true, &mut random).whole.contains(&0));
    }
}

#[test]
fn order_allows_extra_entries() {
    let ids = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
    assert!(is_in_order(&ids("ac"), &ids("abc")));
    assert!(!is_in_order(&ids("ca"), &ids("abc")));
}

#[test]
fn changed_working_directory_is_detected() {
    let lines = vec!["{\"cwd\":\"/tmp/w\",\"x\":1}\n".to_owned()];
    let member = b"\"cwd\":\"/tmp/w\"";
    let mut random = Prng::new(3);
    let mut found = [false; 2];
    for _ in 0..500 {
        let case = flip(&lines, true, &mut random);
        let kept = case.bytes.windows(member.len()).any(|part| part == member);
        assert_eq!(case.elsewhere, !kept, "{}", case.name);
        found[usize::from(kept)] = true;
    }
    assert_eq!(found, [true, true]);
}
