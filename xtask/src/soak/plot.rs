//! The picture of a soak: four curves over time, one below the other, each with its own scale, with the moments of rest marked.

use std::fmt::Write as _;

use super::measure::{Rest, Sample};

/// Size of the picture and of one curve, pixels.
const WIDTH: f64 = 860.0;
const LEFT: f64 = 70.0;
const CURVE: f64 = 110.0;
const GAP: f64 = 46.0;
const TOP: f64 = 30.0;

type Value = fn(&Sample) -> u64;

/// The curves: title, unit and value.
const CURVES: [(&str, f64, Value); 4] = [
    ("resident memory, MB", 1e6, |sample| sample.resident),
    ("open files", 1.0, |sample| sample.files),
    ("threads", 1.0, |sample| sample.threads),
    ("child processes", 1.0, |sample| sample.children),
];

/// The picture as SVG.
pub(super) fn draw(samples: &[Sample], rests: &[Rest]) -> String {
    let last = rests.last().map_or(1.0, |rest| rest.sample.seconds.max(1.0));
    let prompts = rests.last().map_or(0, |rest| rest.prompts);
    let height = TOP + (CURVE + GAP) * 4.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"16\">{prompts} prompts in one process, {last:.0} s. Line: once a second. Dots: at rest, no session open but the first</text>\n"
    );
    for (row, (title, unit, value)) in (0_u32..).zip(CURVES) {
        let top = TOP + (CURVE + GAP) * f64::from(row);
        curve(&mut out, (title, unit, value), (top, last), samples, rests);
    }
    out.push_str("</svg>\n");
    out
}

fn curve(
    out: &mut String,
    (title, unit, value): (&str, f64, Value),
    (top, last): (f64, f64),
    samples: &[Sample],
    rests: &[Rest],
) {
    let all = samples.iter().chain(rests.iter().map(|rest| &rest.sample));
    let most = all.map(|sample| scaled(value(sample), unit)).fold(1.0, f64::max);
    let bottom = top + 14.0 + CURVE;
    let right = WIDTH - 20.0;
    let x = |sample: &Sample| LEFT + (right - LEFT) * sample.seconds / last;
    let y = |sample: &Sample| bottom - CURVE * scaled(value(sample), unit) / most;
    let points: Vec<String> = samples
        .iter()
        .map(|sample| format!("{:.1},{:.1}", x(sample), y(sample)))
        .collect();
    let dots: String = rests.iter().fold(String::new(), |mut dots, rest| {
        let (x, y) = (x(&rest.sample), y(&rest.sample));
        let _written = write!(
            dots,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"#c2410c\"/>"
        );
        dots
    });
    let _written = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{:.0}\">{title}</text>\n\
         <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{most:.0}</text><text x=\"{:.0}\" y=\"{bottom}\" text-anchor=\"end\">0</text>\n\
         <path d=\"M{LEFT},{bottom} H{right}\" stroke=\"#999\" fill=\"none\"/>\n\
         <polyline points=\"{}\" fill=\"none\" stroke=\"#2563eb\"/>\n{dots}",
        top + 8.0,
        LEFT - 6.0,
        top + 24.0,
        LEFT - 6.0,
        points.join(" "),
    );
}

#[expect(clippy::cast_precision_loss, reason = "a picture needs no more")]
fn scaled(value: u64, unit: f64) -> f64 {
    value as f64 / unit
}
