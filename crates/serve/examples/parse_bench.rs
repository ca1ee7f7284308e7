//! How fast lines become commands: `cargo run --release -p pinion-serve --example parse_bench`.

#![expect(clippy::print_stdout, reason = "prints its findings")]

use std::io::Read;
use std::time::Instant;

use pinion_serve::codec::{Line, LineReader};
use pinion_serve::parse_line;

fn measure(name: &str, input: impl Read) {
    let mut reader = LineReader::new(input);
    let (mut lines, mut refused, mut bytes) = (0u32, 0u32, 0usize);
    let begin = Instant::now();
    while let Ok(Some(line)) = reader.next_line() {
        match line {
            Line::Text(text) => {
                bytes += text.len();
                std::hint::black_box(parse_line(text));
            }
            Line::TooLong => refused += 1,
        }
        lines += 1;
    }
    let time = begin.elapsed().as_secs_f64();
    println!(
        "{name:28} {lines:7} lines in {time:.3} s, {:9.0} lines/s, {:6.0} MB/s, {refused} refused",
        f64::from(lines) / time,
        bytes as f64 / 1e6 / time,
    );
}

fn main() {
    let state = "{\"id\":\"req-123\",\"type\":\"get_state\"}\n".repeat(200_000);
    measure("get_state", state.as_bytes());
    let prompt = format!(
        "{{\"id\":\"req-1\",\"type\":\"prompt\",\"message\":\"{}\"}}\n",
        "word \\n".repeat(40)
    );
    measure("prompt of 280 bytes", prompt.repeat(200_000).as_bytes());
    measure("not JSON", "this is not json\n".repeat(200_000).as_bytes());
    let image = format!(
        "{{\"type\":\"prompt\",\"message\":\"x\",\"images\":[{{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"{}\"}}]}}\n",
        "A".repeat(5_000_000)
    );
    measure("prompt with 5 MB image", image.repeat(10).as_bytes());
    measure("one line of 64 MB", std::io::repeat(b'x').take(64 << 20));
    measure("one line of 1 GB", std::io::repeat(b'x').take(1 << 30));
}
