//! Text shared by the tools: truncation records, sizes, error texts, cleaning of terminal output. No files, no processes.

pub mod clean;
pub(crate) mod system_error;
pub mod truncate;

/// A size as notices show it: `12B`, `1.5KB`, `2.0MB` (1024-based; pi-core.md 5.1).
#[must_use]
pub fn format_size(bytes: u64) -> String {
    if bytes < 1024 {
        format!("{bytes}B")
    } else if bytes < 1 << 20 {
        format!("{}KB", tenths(bytes, 1 << 10))
    } else {
        format!("{}MB", tenths(bytes, 1 << 20))
    }
}

/// `bytes / unit` with one decimal, half rounded up.
fn tenths(bytes: u64, unit: u64) -> String {
    let tenths = (u128::from(bytes) * 10 + u128::from(unit) / 2) / u128::from(unit);
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::format_size;

    #[test]
    fn sizes_are_formatted_with_units() {
        for (bytes, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.0KB"),
            (51_200, "50.0KB"),
            (200_000, "195.3KB"),
            (1 << 20, "1.0MB"),
            (5_500_000, "5.2MB"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
    }
}
