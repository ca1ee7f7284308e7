//! Frames of protocol version 2 of oh-my-pi: a line above 1 MiB becomes several `rpc_chunk` lines (dialects.md 1).

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::limits::{CHUNK_BYTES, FRAME_BYTES, REASSEMBLED_BYTES};

/// Splits the long lines of one connection.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    /// Lines that were split.
    split: u64,
}

impl Splitter {
    /// Replaces the lines of a batch that are longer than [`FRAME_BYTES`] with their line feed. A line above
    /// [`REASSEMBLED_BYTES`] stays one line: a client reads it, and could not put it together from chunks.
    pub(crate) fn apply(&mut self, batch: &mut Vec<u8>) {
        // The line feed counts for a frame, but not for the text that a client puts together.
        let is_long = |line: &[u8]| line.len() > FRAME_BYTES && line.len() - 1 <= REASSEMBLED_BYTES;
        let lines = || batch.split_inclusive(|byte| *byte == b'\n');
        // Nearly always. Short batches are not searched for lines.
        if batch.len() <= FRAME_BYTES || !lines().any(is_long) {
            return;
        }
        // Base64 makes the data a third longer.
        let mut out = Vec::with_capacity(batch.len() / 2 * 3);
        for line in lines() {
            match line.strip_suffix(b"\n") {
                Some(object) if is_long(line) => self.write(object, &mut out),
                _ => out.extend_from_slice(line),
            }
        }
        *batch = out;
    }

    fn write(&mut self, object: &[u8], out: &mut Vec<u8>) {
        self.split += 1;
        let (id, length) = (self.split, object.len());
        let count = length.div_ceil(CHUNK_BYTES);
        for (index, chunk) in object.chunks(CHUNK_BYTES).enumerate() {
            let data = STANDARD.encode(chunk);
            // Writing to memory does not fail.
            let _written = writeln!(
                out,
                r#"{{"type":"rpc_chunk","chunkId":"chunk-{id}","index":{index},"count":{count},"byteLength":{length},"data":"{data}"}}"#
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Reads lines as a client of version 2 does, and checks each chunk.
    fn read(batch: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let mut open: Vec<u8> = Vec::new();
        for line in batch.split_inclusive(|byte| *byte == b'\n') {
            let chunk: Option<Value> = serde_json::from_slice(line)
                .ok()
                .filter(|value: &Value| value["type"] == "rpc_chunk");
            let Some(chunk) = chunk else {
                assert!(open.is_empty(), "no line between chunks");
                lines.push(line.to_vec());
                continue;
            };
            assert!(line.len() <= FRAME_BYTES);
            assert_eq!(chunk["index"], open.len().div_ceil(CHUNK_BYTES));
            let data = STANDARD.decode(chunk["data"].as_str().unwrap()).unwrap();
            assert!(data.len() <= CHUNK_BYTES);
            open.extend(data);
            if chunk["index"].as_u64().unwrap() + 1 == chunk["count"].as_u64().unwrap() {
                assert_eq!(chunk["byteLength"], open.len());
                open.push(b'\n');
                lines.push(std::mem::take(&mut open));
            }
        }
        assert!(open.is_empty());
        lines
    }

    #[test]
    fn long_lines_are_split_and_short_ones_stay() {
        let line = |bytes: usize| format!("{{\"é\":\"{}\"}}\n", "x".repeat(bytes - 10)).into_bytes();
        let lines = [
            line(20),
            line(FRAME_BYTES),
            line(FRAME_BYTES + 1),
            line(30),
            line(3 * FRAME_BYTES),
        ];
        assert_eq!(lines[1].len(), FRAME_BYTES);
        let mut batch = lines.concat();
        let mut splitter = Splitter::default();
        splitter.apply(&mut batch);
        assert_eq!(read(&batch), lines);
        assert_eq!(splitter.split, 2);
    }

    #[test]
    fn batch_of_short_lines_is_unchanged() {
        let mut batch = b"{}\n".repeat(FRAME_BYTES);
        let before = batch.clone();
        Splitter::default().apply(&mut batch);
        assert_eq!(batch, before);
    }
}
