//! Tests of what the table rests on: medians, verdicts, the reading of `/proc` and of output lines.

use std::time::Instant;

use super::fuzz;
use super::meter::Stat;
use super::output::{self, Head};
use super::probe::numbers;
use super::report::{Column, Row, json, median, table};
use super::scene::Heard;
use super::subject::Subject;

#[test]
fn median_is_middle_value() {
    assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
    assert!((median(&[4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-9);
    assert!(median(&[]).is_nan());
}

#[test]
fn median_decides_and_unmeasured_row_is_missed() {
    let row = |samples: &[f64]| Row::new("g", "f", "ms", samples.to_vec());
    assert_eq!(row(&[1.0, 2.0, 9.0]).at_most(2.0).reached(), Some(true));
    assert_eq!(row(&[1.0, 2.1, 9.0]).at_most(2.0).reached(), Some(false));
    assert_eq!(row(&[5.0]).at_least(6.0).reached(), Some(false));
    assert_eq!(row(&[5.0]).reached(), None);
    let mut column = Column::new("x");
    column
        .rows
        .push(Row::failed("g", &anyhow::anyhow!("no such file")));
    assert_eq!(column.missed(), 1);
    assert!(table(std::slice::from_ref(&column)).contains("MISSED"));
    assert!(json(&[column]).contains("no such file"));
}

#[test]
fn stat_line_with_odd_name_is_parsed() {
    let line = "42 (a) b (c) S 7 42 42 0 -1 4194560 100 0 0 0 12 3 40 5 20 0 1 0 100 1000 10";
    let stat = Stat::parse(line).expect("stat");
    assert_eq!(
        (stat.parent, stat.own, stat.children),
        (7, 150_000_000, 450_000_000)
    );
    assert_eq!(Stat::parse("42 (x) S"), None);
}

#[test]
fn updates_are_counted_other_lines_kept() {
    let long = format!(
        "{{\"type\":\"message_end\",\"text\":\"{}\"}}\n",
        "x".repeat(10_000)
    );
    let text = format!("{{\"type\":\"message_update\"}}\n{long}{{\"id\":\"7\",\"type\":\"response\"}}\n");
    let (counts, heads) = output::read(std::io::Cursor::new(text.clone().into_bytes()), None);
    let heads: Vec<Head> = heads.iter().collect();
    let kinds: Vec<&str> = heads.iter().map(Head::kind).collect();
    assert_eq!(kinds, ["message_end", "response"]);
    assert_eq!(counts.bytes(), text.len() as u64);
    assert!(
        heads
            .last()
            .is_some_and(|head| head.answers("7") && !head.answers("8"))
    );
}

#[test]
fn marked_updates_keep_their_delta() {
    let update = |delta: &str| {
        format!(
            "{{\"type\":\"message_update\",\"assistantMessageEvent\":{{\"delta\":\"{delta}\"}},\"session\":\"s\"}}\n"
        )
    };
    let text = format!("{}{}", update("other"), update("probe7 probe8 "));
    let (_, heads) = output::read(std::io::Cursor::new(text.into_bytes()), Some("\"delta\":\"probe"));
    let heads: Vec<Head> = heads.iter().collect();
    let [head] = heads.as_slice() else {
        panic!("{heads:?}")
    };
    assert_eq!(head.session(), Some("s"));
    assert_eq!(numbers(head.delta().expect("delta")).collect::<Vec<_>>(), [7, 8]);
}

#[test]
fn p99_ignores_one_delay_in_hundred() {
    let heard = |n: u32| Heard {
        delays: (1..=n).map(f64::from).collect(),
        floods: 0,
    };
    assert!((heard(1_000).within(99) - 990.0).abs() < 1e-9);
    assert!((heard(10).within(99) - 10.0).abs() < 1e-9);
    assert!((heard(1_000).within(100) - 1_000.0).abs() < 1e-9);
    assert!(heard(0).within(99).is_nan());
}

#[test]
fn id_after_space_is_found() {
    let head = Head {
        text: r#"{"type": "response", "id": "b1"}"#.to_owned(),
        at: Instant::now(),
    };
    assert!(head.answers("b1"));
}

#[test]
fn peer_argument_has_name_and_command() {
    let peer = Subject::peer("old=node cli.js --flag").expect("peer");
    assert_eq!((peer.name.as_str(), peer.program.to_str()), ("old", Some("node")));
    assert!(
        peer.args
            .starts_with(&["cli.js".to_owned(), "--flag".to_owned(), "--mode".to_owned()])
    );
    let own = Subject::peer("x=a --mode rpc").expect("peer");
    assert_eq!(own.args, ["--mode", "rpc"]);
    assert!(Subject::peer("old=").is_err() && Subject::peer("old").is_err());
}

#[test]
fn fuzzer_speed_is_read_from_report() {
    let report =
        "fuzz-lines: 9 lines, --seed 1\nfuzz-lines: 9 lines, 8 answers, 51234 lines/s, memory 1 -> 2 KiB";
    assert_eq!(fuzz::speed(report), Some(51_234.0));
    assert_eq!(fuzz::speed("nothing"), None);
}
