//! Text templates with placeholders for sequence numbers and recipients.

use std::io::Write;

/// The first recipient; all are British mobile numbers.
const FIRST: u64 = 447_400_000_000;
/// There are 2^27 recipients.
const BITS: u32 = 27;
const MASK: u64 = (1 << BITS) - 1;

/// The order of recipients; in either order each occurs once in 134 million.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Recipients {
    /// Ascending; easy on indexes
    Sequential,
    /// Shuffled, as in practice
    Random,
}

impl Recipients {
    fn number(self, n: u64) -> u64 {
        FIRST
            + match self {
                Self::Sequential => n & MASK,
                Self::Random => shuffled(n & MASK),
            }
    }
}

/// A permutation of 27-bit numbers: every step is invertible.
const fn shuffled(n: u64) -> u64 {
    let mut x = n;
    x = x.wrapping_mul(0x9E37_79B9_7F4A_7C15) & MASK;
    x ^= x >> 13;
    x = x.wrapping_mul(0xD6E8_FEB8_6659_FD93) & MASK;
    x ^= x >> 14;
    x = x.wrapping_mul(0xA5A3_5625) & MASK;
    x ^ (x >> 13)
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Number,
    Recipient,
}

/// A text in which `{n}` is a sequence number and `{to}` a distinct recipient.
#[derive(Debug)]
pub(crate) struct Template(Vec<Piece>);

impl Template {
    /// Parses a template; other braces are literal.
    pub(crate) fn parse(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut rest = text;
        loop {
            let next = [("{n}", Piece::Number), ("{to}", Piece::Recipient)];
            let next = next.into_iter().filter_map(|(what, piece)| {
                let (before, after) = rest.split_once(what)?;
                Some((before, piece, after))
            });
            let Some((before, piece, after)) = next.min_by_key(|(before, ..)| before.len()) else {
                pieces.push(Piece::Text(rest.to_owned()));
                return Self(pieces);
            };
            pieces.extend([Piece::Text(before.to_owned()), piece]);
            rest = after;
        }
    }

    /// Appends the text for request `n`.
    pub(crate) fn render(&self, out: &mut Vec<u8>, n: u64, recipients: Recipients) {
        for piece in &self.0 {
            // Writing to memory cannot fail.
            let _ = match piece {
                Piece::Text(text) => out.write_all(text.as_bytes()),
                Piece::Number => write!(out, "{n}"),
                Piece::Recipient => write!(out, "{}", recipients.number(n)),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_and_other_braces_are_literal() {
        let mut out = Vec::new();
        let template = Template::parse(r#"{"to":"+{to}","text":"no {n}{n}"}"#);
        template.render(&mut out, 7, Recipients::Sequential);
        assert_eq!(out, br#"{"to":"+447400000007","text":"no 77"}"#);
    }

    #[test]
    fn shuffled_recipients_are_distinct() {
        let mut seen = vec![false; 1 << BITS];
        for n in 0..1u64 << 20 {
            let at = &mut seen[usize::try_from(shuffled(n)).unwrap()];
            assert!(!*at);
            *at = true;
        }
    }
}
