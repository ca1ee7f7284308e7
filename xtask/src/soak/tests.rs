//! The verdict and the picture, from made-up measurements.

use super::measure::{Rest, Sample};
use super::{GROWTH, KEPT_CONNECTIONS, plot, share, verdict};

fn rest(prompts: u64, resident: u64, files: u64, threads: u64, children: u64) -> Rest {
    Rest {
        prompts,
        sample: Sample {
            resident,
            files,
            threads,
            children,
            seconds: 1.0,
        },
    }
}

#[test]
fn growing_resources_are_named() {
    let first = rest(10, 20 << 20, 12, 5, 2);
    assert!(verdict(&[first, first]).is_empty());
    let grown = rest(20, (20 << 20) + GROWTH + 1, 12 + KEPT_CONNECTIONS + 1, 6, 3);
    let problems = verdict(&[first, grown]);
    for what in ["memory", "open files", "threads", "child processes"] {
        assert!(
            problems.iter().any(|problem| problem.contains(what)),
            "{problems:?}"
        );
    }
    // Less than before is no problem, and neither is nothing at all a success.
    assert!(verdict(&[grown, first]).is_empty());
    assert!(!verdict(&[]).is_empty());
}

#[test]
fn soak_phases_are_all_prompts() {
    let all: u64 = (0..=super::PHASES).map(|phase| share(100_000, phase)).sum();
    assert_eq!(all, 100_000);
}

#[test]
fn plot_has_curve_per_series_dot_per_rest() {
    let rests = [rest(10, 1_000_000, 1, 1, 1), rest(20, 2_000_000, 2, 2, 2)];
    let picture = plot::draw(&[rests[0].sample, rests[1].sample], &rests);
    assert_eq!(picture.matches("<polyline").count(), 4);
    assert_eq!(picture.matches("<circle").count(), 8);
}
