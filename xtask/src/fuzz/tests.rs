//! The generator keeps its promises, and the tally finds what an agent does wrong.

use serde_json::{Value, json};

use super::lines::{Expect, Generator, Line, id};
use super::prng::Prng;
use super::tally::{Seen, Tally};

const SEED: u64 = 7;

fn answer(line: &Line) -> Vec<u8> {
    let own = line.expect == Expect::OwnId;
    let id = if own { json!(id(line.number)) } else { Value::Null };
    json!({"id": id, "type": "response", "command": "x", "success": true})
        .to_string()
        .into_bytes()
}

/// Plays an agent that answers as `respond` says.
fn play(count: usize, respond: impl Fn(&Line) -> Vec<Vec<u8>>) -> Vec<String> {
    let (mut tally, mut seen) = (Tally::default(), Seen::default());
    for line in Generator::new(SEED).take(count) {
        tally.sent(&line);
        for answer in respond(&line) {
            seen.line(&answer);
        }
    }
    tally.compare(&seen, Generator::new(SEED))
}

#[test]
fn fuzz_lines_are_deterministic_single_lines() {
    let first: Vec<Line> = Generator::new(SEED).take(5_000).collect();
    let again: Vec<Line> = Generator::new(SEED).take(5_000).collect();
    assert!(
        first
            .iter()
            .zip(&again)
            .all(|(a, b)| a.bytes == b.bytes && a.expect == b.expect)
    );
    assert!(first.iter().all(|line| !line.bytes.contains(&b'\n')));
    assert!(Generator::new(SEED + 1).next().unwrap().bytes != first[0].bytes);
}

#[test]
fn lines_with_own_id_are_harmless_commands() {
    let (mut own, mut other) = (0, 0);
    for line in Generator::new(SEED).take(20_000) {
        if line.expect == Expect::OwnId {
            let value: Value = serde_json::from_slice(&line.bytes).unwrap();
            assert_eq!(value["id"], json!(id(line.number)));
            assert!(!matches!(
                value["type"].as_str().unwrap(),
                "prompt" | "bash" | "steer" | "follow_up"
            ));
            own += 1;
        } else {
            other += 1;
        }
    }
    assert!(own > 8_000 && other > 2_000, "{own} {other}");
}

#[test]
fn correct_agent_passes_fuzz() {
    assert!(play(3_000, |line| vec![answer(line)]).is_empty());
    let chatty = |line: &Line| vec![b"{\"type\":\"notice\"}".to_vec(), answer(line)];
    assert!(play(500, chatty).is_empty());
}

#[test]
fn faulty_agents_fail_fuzz() {
    let silent_once = |line: &Line| {
        if line.number == 99 {
            vec![]
        } else {
            vec![answer(line)]
        }
    };
    assert!(!play(500, silent_once).is_empty());
    let twice_once = |line: &Line| vec![answer(line); if line.number == 99 { 2 } else { 1 }];
    assert!(!play(500, twice_once).is_empty());
    let wrong_id = |line: &Line| {
        let mut line = line.clone();
        line.number = line.number.min(400);
        vec![answer(&line)]
    };
    let problems = play(500, wrong_id);
    assert!(
        problems
            .iter()
            .any(|problem| problem.starts_with("line 400 was answered")),
        "{problems:?}"
    );
    let noisy = |line: &Line| vec![answer(line), b"Oops".to_vec()];
    assert!(play(10, noisy).iter().any(|problem| problem.ends_with("Oops")));
}

#[test]
fn random_numbers_stay_in_range() {
    let mut random = Prng::new(1);
    assert!((0..1_000).all(|_| random.below(7) < 7));
    assert_eq!(random.below(0), 0);
    assert!(random.pick::<u8>(&[]).is_none());
}
