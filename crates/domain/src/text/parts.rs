//! Splitting a text into the parts (segments) of a concatenated SMS.

use crate::text::encoding::Encoding;
use crate::text::{gsm7, ucs2};

/// The maximum number of parts of a message.
pub const MAX_PARTS: u16 = 10;
/// The maximum number of characters of a message: as many as [`MAX_PARTS`] parts have in GSM-7.
pub const MAX_CHARACTERS: usize = MAX_PARTS as usize * part_limit(Encoding::Gsm7);

/// The size of a text on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TextSize {
    /// GSM-7 if its alphabet has every character, otherwise UCS-2.
    pub encoding: Encoding,
    /// The exact number of parts after splitting, at least 1; saturates at `u16::MAX`.
    pub parts: u16,
    /// The number of septets or 16-bit units of the text, without headers; saturates at `u32::MAX`.
    pub units: u32,
}

/// An encoded part of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// The encoding of the text after the header.
    pub encoding: Encoding,
    /// True if `octets` begin with a user data header (UDH, esm_class 0x40).
    pub udh: bool,
    /// The SMPP short_message: the header of six octets, if any, then the text with one septet per
    /// octet or two octets per unit.
    pub octets: Vec<u8>,
}

/// Measures a text. An empty text has one part and no units.
pub fn measure(text: &str) -> TextSize {
    let (encoding, units) = match gsm7::count(text) {
        Some(septets) => (Encoding::Gsm7, septets),
        None => (Encoding::Ucs2, ucs2::count(text)),
    };
    let parts =
        if units <= single_limit(encoding) { 1 } else { Pieces::of(text, encoding).count() };
    TextSize {
        encoding,
        parts: u16::try_from(parts).unwrap_or(u16::MAX),
        units: u32::try_from(units).unwrap_or(u32::MAX),
    }
}

/// Returns the number of units left in the last part of a text, in its current encoding.
pub fn units_left(text: &str) -> usize {
    let TextSize { encoding, parts, units } = measure(text);
    if parts == 1 {
        return single_limit(encoding).saturating_sub(usize::try_from(units).unwrap_or(usize::MAX));
    }
    let pieces = Pieces::of(text, encoding);
    let cost = |piece: &str| piece.chars().map(|c| Pieces::of(text, encoding).cost(c)).sum();
    part_limit(encoding).saturating_sub(pieces.last().map_or(0, cost))
}

/// Encodes a text into the number of parts that [`measure`] returns. Each of several parts begins
/// with a concatenation header with the 8-bit `reference`. A text of more than 255 parts cannot be
/// sent: the result is empty.
pub fn segments(text: &str, reference: u8) -> Vec<Segment> {
    let size = measure(text);
    let segment = |header: &[u8], piece: &str| {
        let mut octets = Vec::with_capacity(160);
        octets.extend_from_slice(header);
        match size.encoding {
            Encoding::Gsm7 => gsm7::encode(piece, &mut octets),
            Encoding::Ucs2 => ucs2::encode(piece, &mut octets),
        }
        Segment { encoding: size.encoding, udh: !header.is_empty(), octets }
    };
    match u8::try_from(size.parts) {
        Ok(1) => vec![segment(&[], text)],
        Ok(total) => Pieces::of(text, size.encoding)
            .zip(1..=total)
            .map(|(piece, sequence)| segment(&[5, 0, 3, reference, total, sequence], piece))
            .collect(),
        Err(_) => Vec::new(),
    }
}

/// Returns the number of units of a single part: 140 octets.
const fn single_limit(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Gsm7 => 160,
        Encoding::Ucs2 => 70,
    }
}

/// Returns the number of units of a part with a header: 134 octets.
const fn part_limit(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Gsm7 => 153,
        Encoding::Ucs2 => 67,
    }
}

/// An iterator that splits a text greedily into the pieces of its parts. It splits between
/// characters only, so escape sequences and surrogate pairs stay together.
struct Pieces<'a> {
    rest: &'a str,
    encoding: Encoding,
}

impl<'a> Pieces<'a> {
    fn of(text: &'a str, encoding: Encoding) -> Self {
        Self { rest: text, encoding }
    }

    fn cost(&self, c: char) -> usize {
        match self.encoding {
            Encoding::Gsm7 => gsm7::septets(c).unwrap_or(1),
            Encoding::Ucs2 => c.len_utf16(),
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let mut room = part_limit(self.encoding);
        let first_left_out = self.rest.char_indices().find(|(_, c)| {
            let left = room.checked_sub(self.cost(*c));
            room = left.unwrap_or(0);
            left.is_none()
        });
        let end = first_left_out.map_or(self.rest.len(), |(at, _)| at);
        let (piece, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        (!piece.is_empty()).then_some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::gsm7::{decode_gsm7, first_ucs2_char};
    use crate::text::ucs2::decode_ucs2;
    use crate::text::udh::split_udh;
    use proptest::prelude::*;

    const GSM: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?\
                       ¡ABCXYZÄÖÑÜ§¿abcxyzäöñüà^{}\\[~]|€\u{c}";

    fn size(encoding: Encoding, parts: u16, units: u32) -> TextSize {
        TextSize { encoding, parts, units }
    }

    #[test]
    fn gsm_boundaries() {
        let a = |n| "a".repeat(n);
        for (text, parts, units) in [
            (String::new(), 1, 0),
            (a(1), 1, 1),
            (a(160), 1, 160),
            (a(161), 2, 161),
            (a(2 * 153), 2, 306),
            (a(2 * 153 + 1), 3, 307),
            (a(10 * 153), 10, 1_530),
            (a(10 * 153 + 1), 11, 1_531),
            ("é".repeat(160), 1, 160),
            ("é".repeat(161), 2, 161),
            ("€".repeat(80), 1, 160),
            ("€".repeat(80) + "a", 2, 161),
            // 76 pairs fill a part up to septet 152.
            ("€".repeat(152), 2, 304),
            ("€".repeat(153), 3, 306),
            // The pair would begin on septet 153, which stays empty: the pair moves to the next
            // part.
            (a(152) + "€" + &a(151), 2, 305),
            (a(152) + "€" + &a(152), 3, 306),
            (a(151) + "€" + &a(153), 2, 306),
            (a(158) + "€", 1, 160),
            (a(159) + "€", 2, 161),
        ] {
            assert_eq!(measure(&text), size(Encoding::Gsm7, parts, units), "{text}");
        }
    }

    #[test]
    fn ucs2_boundaries() {
        let zh = |n| "短".repeat(n);
        for (text, parts, units) in [
            (zh(1), 1, 1),
            (zh(70), 1, 70),
            (zh(71), 2, 71),
            (zh(2 * 67), 2, 134),
            (zh(2 * 67 + 1), 3, 135),
            (zh(10 * 67), 10, 670),
            (zh(10 * 67 + 1), 11, 671),
            ("a".repeat(69) + "`", 1, 70),
            ("a".repeat(70) + "`", 2, 71),
            ("[".repeat(69) + "`", 1, 70),
            ("😀".repeat(35), 1, 70),
            ("😀".repeat(36), 2, 72),
            // The emoji would begin on unit 67, which stays empty: the emoji moves to the next
            // part.
            (zh(66) + "😀" + &zh(65), 2, 133),
            (zh(66) + "😀" + &zh(66), 3, 134),
            (zh(65) + "😀" + &zh(67), 2, 134),
            ("😀".repeat(66), 2, 132),
            ("😀".repeat(67), 3, 134),
        ] {
            assert_eq!(measure(&text), size(Encoding::Ucs2, parts, units), "{text}");
        }
    }

    #[test]
    fn a_single_part_has_no_header() {
        let plain =
            |encoding, octets: &[u8]| Segment { encoding, udh: false, octets: octets.into() };
        assert_eq!(segments("", 9), [plain(Encoding::Gsm7, &[])]);
        let gsm = plain(Encoding::Gsm7, &[b'5', 0x1B, 0x65, 0x00]);
        assert_eq!(segments("5€@", 9), [gsm]);
        let ucs = plain(Encoding::Ucs2, &[0, b'5', 0x20, 0xAC, 0, b'`']);
        assert_eq!(segments("5€`", 9), [ucs]);
    }

    #[test]
    fn escape_pairs_are_not_split() {
        let all = segments(&("a".repeat(152) + "€" + &"b".repeat(20)), 0xAB);
        let [first, second] = all.as_slice() else {
            panic!("{} parts", all.len());
        };
        assert!(first.udh && second.udh);
        assert_eq!(first.octets[..6], [5, 0, 3, 0xAB, 2, 1]);
        assert_eq!(first.octets[6..], [b'a'; 152]);
        assert_eq!(second.octets[..9], [5, 0, 3, 0xAB, 2, 2, 0x1B, 0x65, b'b']);
    }

    #[test]
    fn huge_texts_are_measured_but_not_encoded() {
        assert_eq!(segments(&"a".repeat(255 * 153), 0).len(), 255);
        let longer = "a".repeat(255 * 153 + 1);
        assert_eq!(measure(&longer).parts, 256);
        assert_eq!(segments(&longer, 0), []);
        let huge = "😀".repeat(33 * 70_000);
        assert_eq!(measure(&huge), size(Encoding::Ucs2, u16::MAX, 4_620_000));
    }

    /// Joins the texts of the parts, and asserts the invariants of each part.
    fn join(all: &[Segment], reference: u8) -> String {
        let part = |(i, s): (usize, &Segment)| {
            let text = if all.len() == 1 {
                assert!(!s.udh);
                &s.octets
            } else {
                assert!(s.udh);
                let (concat, text) = split_udh(&s.octets).unwrap();
                let concat = concat.unwrap();
                assert_eq!(concat.reference, u16::from(reference));
                assert_eq!(usize::from(concat.total), all.len());
                assert_eq!(usize::from(concat.sequence), i + 1);
                text
            };
            match s.encoding {
                Encoding::Gsm7 => {
                    assert!(s.octets.len() <= 160);
                    assert!(text.iter().all(|septet| *septet < 0x80));
                    assert_ne!(text.last(), Some(&0x1B));
                    decode_gsm7(text)
                }
                Encoding::Ucs2 => {
                    assert!(s.octets.len() <= 140);
                    let last = text.len().checked_sub(2).map(|at| text[at]);
                    assert!(!last.is_some_and(|high| (0xD8..0xDC).contains(&high)));
                    decode_ucs2(text)
                }
            }
        };
        all.iter().enumerate().map(part).collect()
    }

    fn texts() -> impl Strategy<Value = String> {
        let gsm: Vec<char> = GSM.chars().collect();
        let gsm = prop::sample::select(gsm);
        let mixed = prop_oneof![20 => gsm.clone(), 1 => any::<char>()];
        let collected = |c, n| prop::collection::vec(c, 0..n).prop_map(String::from_iter);
        prop_oneof![
            any::<String>(),
            collected(gsm.boxed(), 2_000),
            collected(mixed.boxed(), 1_000),
            collected(any::<char>().boxed(), 1_000),
        ]
    }

    #[test]
    fn units_left_in_the_last_part() {
        for (text, left) in [
            (String::new(), 160),
            ("a".repeat(160), 0),
            ("€".repeat(10), 140),
            ("a".repeat(161), 145),
            ("é€".repeat(54), 144),
            ("я".into(), 69),
            ("я".repeat(71), 63),
        ] {
            assert_eq!(units_left(&text), left, "{text}");
        }
    }

    proptest! {
        #[test]
        fn parts_contain_the_text_and_match_the_measured_size(
            text in texts(),
            reference: u8,
        ) {
            let size = measure(&text);
            let all = segments(&text, reference);
            prop_assert_eq!(all.len(), usize::from(size.parts));
            prop_assert!(all.iter().all(|s| s.encoding == size.encoding));
            prop_assert_eq!(size.encoding == Encoding::Gsm7, first_ucs2_char(&text).is_none());
            prop_assert_eq!(join(&all, reference), text);
        }

        #[test]
        fn the_number_of_parts_is_minimal(text in texts()) {
            let size = measure(&text);
            let (single, limit) = match size.encoding {
                Encoding::Gsm7 => (160, 153),
                Encoding::Ucs2 => (70, 67),
            };
            let parts = u32::from(size.parts);
            prop_assert_eq!(parts == 1, size.units <= single);
            if parts > 1 {
                // Every part but the last is full, or one unit short of it.
                prop_assert!(size.units <= parts * limit);
                prop_assert!(size.units > (parts - 1) * (limit - 1));
            }
        }
    }
}
