//! Lines as one text, as engines store them: each line with a line feed behind it.

/// Puts lines together.
pub(crate) fn join(lines: &[Vec<u8>]) -> Vec<u8> {
    let length = lines.iter().map(|line| line.len() + 1).sum();
    let mut text = Vec::with_capacity(length);
    for line in lines {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text
}

/// Takes lines apart; none if the text does not end with a line feed, or is empty.
pub(crate) fn split(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let whole = text.strip_suffix(b"\n")?;
    Some(whole.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::{join, split};

    #[test]
    fn joined_lines_split_into_the_same() {
        let cases: [&[&[u8]]; 4] = [
            &[b"a"],
            &[b""],
            &[b"", b"b\r", b""],
            &[b"\xff\x00", "ä😀".as_bytes()],
        ];
        for lines in cases {
            let lines: Vec<Vec<u8>> = lines.iter().map(|line| line.to_vec()).collect();
            assert_eq!(split(&join(&lines)), Some(lines));
        }
        assert_eq!(split(b"torn"), None);
        assert_eq!(split(b""), None);
    }
}
