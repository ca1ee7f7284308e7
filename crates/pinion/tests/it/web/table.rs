//! The attack list is whole: every row of web.md 3 has its checks, and every check is where the table says.

use std::collections::BTreeSet;
use std::path::Path;

/// The checks that the list names, in the words of web.md 3.
const NAMED: [&str; 34] = [
    "origin-foreign",
    "origin-twice",
    "origin-good",
    "origin-missing-without-token",
    "rebind-ws",
    "rebind-ws-good-origin",
    "rebind-http",
    "token-wrong",
    "token-brute-force",
    "token-right-foreign-origin",
    "token-not-in-page",
    "token-not-logged-per-request",
    "page-headers",
    "target-double-slash",
    "target-malformed",
    "host-malformed",
    "headers-huge",
    "traversal",
    "symlink",
    "sibling-prefix",
    "cors-closed",
    "methods",
    "smuggling",
    "upgrade-elsewhere",
    "upgrade-broken",
    "message-endless",
    "message-28MB-accepted",
    "abrupt-close-mid-frame",
    "json-nasty",
    "flood",
    "many-connections",
    "stalled-reader",
    "switch-session-foreign-file",
    "two-tab",
];

#[test]
fn every_attack_has_a_test() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rows = include_str!("attacks.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (mut seen, mut checks) = (BTreeSet::new(), BTreeSet::new());
    for line in rows {
        let (row, rest) = line.split_once(' ').unwrap();
        let (check, file) = rest.rsplit_once(' ').unwrap();
        let check = check.trim_matches('\'');
        let path = match file.strip_prefix('/') {
            Some(path) => here.join("../..").join(path),
            None => here.join("tests/it/web").join(file),
        };
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.contains(check), "{check} is not in {file}");
        seen.insert(row.parse::<u32>().unwrap());
        assert!(checks.insert((row, check, file)), "{check} twice");
    }
    assert_eq!(seen, (1..=20).collect());
    let checks: BTreeSet<&str> = checks.into_iter().map(|(_, check, _)| check).collect();
    for name in NAMED {
        assert!(checks.contains(name), "{name} is not in the table");
    }
    assert!(checks.iter().filter(|check| check.starts_with("frame-")).count() >= 14);
}
