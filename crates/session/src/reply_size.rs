//! The size of a reply as JSON, without the JSON.

use std::io;

use wire::Reply;

use crate::limits::OUTBOX_RESPONSE_BYTES;

/// Counts bytes that are written, up to a bit more than [`OUTBOX_RESPONSE_BYTES`].
struct Measure(usize);

/// Returns the bytes of a reply. Of a reply that is longer than [`OUTBOX_RESPONSE_BYTES`], the count ends a bit above that.
pub(crate) fn reply_bytes(reply: &Reply) -> usize {
    let mut measure = Measure(0);
    // It fails for a reply without data, and for a reply that is longer than the count goes.
    let _counted = serde_json::to_writer(&mut measure, reply);
    measure.0
}

impl io::Write for Measure {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        if self.0 > OUTBOX_RESPONSE_BYTES {
            // Ends the serialisation: how much longer the reply is does not matter.
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
