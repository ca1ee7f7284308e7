//! Texts that fit patterns with `*` for any letters. Takes time in proportion to pattern times text at worst: the texts come
//! from a model.

/// Returns true if the text fits. `*` stands for any number of letters, blanks and slashes; everything else for itself.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where the newest star is, and what it covers so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(letter) if text.get(t) == Some(letter) => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, covered)) => {
                    star = Some((at, covered + 1));
                    (p, t) = (at + 1, covered + 1);
                }
                None => return false,
            },
        }
    }
    pattern
        .get(p..)
        .is_some_and(|rest| rest.iter().all(|letter| *letter == b'*'))
}

/// Returns true if the pattern fits a text that begins with the first piece, ends with the last one, and has any letters between pieces.
pub(super) fn may_fit(pattern: &str, pieces: &[String]) -> bool {
    // None stands for any letters.
    let mut text: Vec<Option<u8>> = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        text.extend((at > 0).then_some(None));
        text.extend(piece.bytes().map(Some));
    }
    // The positions in the text that the pattern so far leads to.
    let mut reached = vec![false; text.len() + 1];
    let pass = |reached: &mut Vec<bool>| {
        for (at, letter) in text.iter().enumerate() {
            if letter.is_none() && reached.get(at) == Some(&true) {
                mark(reached, at + 1);
            }
        }
    };
    mark(&mut reached, 0);
    pass(&mut reached);
    for wanted in pattern.bytes() {
        let mut next = vec![false; text.len() + 1];
        if wanted == b'*' {
            let first = reached.iter().position(|is_reached| *is_reached);
            next.iter_mut()
                .skip(first.unwrap_or(usize::MAX))
                .for_each(|place| *place = true);
        } else {
            for (at, letter) in text
                .iter()
                .enumerate()
                .filter(|(at, _)| reached.get(*at) == Some(&true))
            {
                match letter {
                    None => mark(&mut next, at),
                    Some(letter) if *letter == wanted => mark(&mut next, at + 1),
                    Some(_) => {}
                }
            }
        }
        pass(&mut next);
        reached = next;
    }
    reached.last() == Some(&true)
}

fn mark(places: &mut [bool], at: usize) {
    if let Some(place) = places.get_mut(at) {
        *place = true;
    }
}

#[cfg(test)]
mod tests {
    use super::{fits, may_fit};

    #[test]
    fn open_text_fits_what_its_gaps_can_be() {
        let fits = |pattern: &str, text: &str| {
            let pieces: Vec<String> = text.split('$').map(str::to_owned).collect();
            may_fit(pattern, &pieces)
        };
        for (pattern, text) in [
            ("cat /etc/shadow", "cat $"),
            ("cat /etc/shadow", "cat /etc/$"),
            ("cat /etc/shadow", "cat $/sha$w"),
            ("cat /etc/*", "cat $"),
            ("*x*", "$"),
            ("a*b", "a$b"),
            ("", "$"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("cat /etc/shadow", "cat /tmp/$"),
            ("git push --force *", "git push origin $"),
            ("a*b", "a$c"),
            ("", "a$"),
            ("cat", "cat $"),
        ] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn wildcard_matches_any_text() {
        for (pattern, text) in [
            ("", ""),
            ("*", ""),
            ("*", "a b/c"),
            ("git *", "git log -p"),
            ("*log*", "git log -p"),
            ("a*b*c", "a__b__b_c"),
            ("**", "x"),
            ("ü*", "üb"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "a"),
            ("git", "git log"),
            ("git *", "git"),
            ("*log", "git log -p"),
            ("a*b*c", "a__c__b"),
        ] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }
}
