//! The cost of a tree: time in proportion to its entries, in any shape. Shares of CPU time are compared, not seconds.

use std::time::Instant;

use serde_json::{Value, json};

use super::fork::{entry, said, stored};
use super::{Tab, Web};
use crate::kit::{LONG, World};

/// CPU time of the program so far, in ticks.
fn ticks(web: &Web) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", web.pid())).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    fields
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().unwrap())
        .sum()
}

/// Sends a command and gives the length of its answer, which no parser here reads.
fn length(tab: &mut Tab, command: &str) -> usize {
    tab.send_text(&format!(r#"{{"id":"deep","type":"{command}"}}"#));
    let end = Instant::now() + 5 * LONG;
    loop {
        assert!(Instant::now() < end, "no tree comes");
        let text = tab.socket().read().unwrap().into_text().unwrap();
        if text.contains(&format!("\"{command}\"")) {
            return text.len();
        }
    }
}

/// CPU time of both trees of so many entries, in ticks; `parent` gives the place of an entry's parent.
fn cost(entries: usize, parent: impl Fn(usize) -> usize) -> u64 {
    let world = World::new([]);
    let all: Vec<Value> = (1..=entries)
        .map(|number| {
            let parent = Some(parent(number)).filter(|_| number > 1);
            entry(number, parent, said("user", json!("x")))
        })
        .collect();
    let path = stored(&world, world.dir.cwd().to_str().unwrap(), &all);
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    tab.socket().get_ref().set_read_timeout(Some(5 * LONG)).unwrap();
    tab.data(json!({"type": "switch_session", "sessionPath": path}));
    let before = ticks(&web);
    for _ in 0..2 {
        assert!(length(&mut tab, "get_tree") > entries * 100);
        assert!(length(&mut tab, "get_session_tree") > entries * 100);
    }
    ticks(&web) - before
}

#[test]
fn tree_time_grows_linearly_with_entries() {
    // A chain, and one entry with all the others below it.
    for parent in [|number: usize| number - 1, |_: usize| 1] {
        let (few, many) = (cost(6_000, parent), cost(60_000, parent));
        // Ten times the entries; a quadratic step would be a hundred times the work.
        assert!(many < 30 * (few + 5), "{few} and {many} ticks");
    }
}
