//! Matching piece by piece finds what searching the whole text after each piece finds.

use proptest::prelude::{ProptestConfig, Strategy, proptest};
use proptest::sample::select;

use crate::{World, rule};

/// Conditions with everything that looks at what stands around it.
const CONDITIONS: [&str; 10] = [
    "ab",
    "a+b$",
    "^ba",
    r"(?-u:\b)ab(?-u:\b)",
    "(ab|ba){2}",
    r"a[^b]b",
    r"(?i)AB ",
    r"ä.b",
    r"\w+ \w+b",
    "(?m)^b$",
];

fn pieces() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec("[abBä \n]{0,4}", 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn rule_matches_split_text_like_whole_text(condition in select(CONDITIONS.to_vec()), pieces in pieces()) {
        let expression = regex_automata::meta::Regex::builder()
            .syntax(regex_automata::util::syntax::Config::new().utf8(false))
            .build(condition)
            .unwrap();
        let mut world = World::new(vec![rule("r", condition)]);
        let mut whole = String::new();
        for piece in pieces {
            whole.push_str(&piece);
            world.text(&piece);
            let stopped = !world.stopped().is_empty();
            assert_eq!(stopped, expression.is_match(&whole), "{condition} {whole:?}");
            if stopped {
                break;
            }
        }
    }
}
