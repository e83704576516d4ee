//! Parts: how many a text takes, and their octets.

use crate::text::encoding::Encoding;
use crate::text::{gsm7, ucs2};

/// The most parts that a message may have.
pub const MAX_PARTS: u16 = 10;

/// What a text takes on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Size {
    /// GSM 7-bit when its alphabet has every character, else UCS-2.
    pub encoding: Encoding,
    /// In how many parts it goes out, as really split; at least 1, at most `u16::MAX`.
    pub parts: u16,
    /// Septets or 16-bit units of the text, without headers; at most `u32::MAX`.
    pub units: u32,
}

/// One part's encoded text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// The encoding of the text behind the header.
    pub encoding: Encoding,
    /// Whether `octets` begin with a user data header (esm_class 0x40).
    pub udh: bool,
    /// SMPP short_message: a header of six octets if there is one, then the text, one septet per
    /// octet or two octets per unit.
    pub octets: Vec<u8>,
}

/// Measures a text. An empty one takes one part of no units.
pub fn measure(text: &str) -> Size {
    let (encoding, units) = match gsm7::count(text) {
        Some(septets) => (Encoding::Gsm7, septets),
        None => (Encoding::Ucs2, ucs2::count(text)),
    };
    let parts =
        if units <= single_limit(encoding) { 1 } else { Pieces::of(text, encoding).count() };
    Size {
        encoding,
        parts: u16::try_from(parts).unwrap_or(u16::MAX),
        units: u32::try_from(units).unwrap_or(u32::MAX),
    }
}

/// How many units the last part of a text still has room for, as long as it stays in its encoding.
pub fn room(text: &str) -> usize {
    let Size { encoding, parts, units } = measure(text);
    if parts == 1 {
        return single_limit(encoding).saturating_sub(usize::try_from(units).unwrap_or(usize::MAX));
    }
    let pieces = Pieces::of(text, encoding);
    let cost = |piece: &str| piece.chars().map(|c| Pieces::of(text, encoding).cost(c)).sum();
    part_limit(encoding).saturating_sub(pieces.last().map_or(0, cost))
}

/// Encodes a text into its parts, as many as [`measure`] says; with more than one, each begins with
/// an 8-bit concatenation header that carries `reference`. A text of more than 255 parts can't be
/// sent and has none.
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

/// How many units a part holds that is the only one: 140 octets.
const fn single_limit(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Gsm7 => 160,
        Encoding::Ucs2 => 70,
    }
}

/// How many units a part holds beside its header: 134 octets.
const fn part_limit(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Gsm7 => 153,
        Encoding::Ucs2 => 67,
    }
}

/// Cuts a text greedily into the pieces that fill its parts. It cuts between characters only, so
/// neither an escape nor a surrogate is ever parted from its other half.
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

    fn size(encoding: Encoding, parts: u16, units: u32) -> Size {
        Size { encoding, parts, units }
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
            // 76 pairs fill a part up to its 152nd septet.
            ("€".repeat(152), 2, 304),
            ("€".repeat(153), 3, 306),
            // The pair would begin on the 153rd septet: that stays empty, and the rest moves on.
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
            // The emoji would begin on the 67th unit: that stays empty, and the rest moves on.
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
    fn one_part_has_no_header() {
        let plain =
            |encoding, octets: &[u8]| Segment { encoding, udh: false, octets: octets.into() };
        assert_eq!(segments("", 9), [plain(Encoding::Gsm7, &[])]);
        let gsm = plain(Encoding::Gsm7, &[b'5', 0x1B, 0x65, 0x00]);
        assert_eq!(segments("5€@", 9), [gsm]);
        let ucs = plain(Encoding::Ucs2, &[0, b'5', 0x20, 0xAC, 0, b'`']);
        assert_eq!(segments("5€`", 9), [ucs]);
    }

    #[test]
    fn an_escape_pair_moves_on_whole() {
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
    fn huge_texts_are_measured_but_not_sent() {
        assert_eq!(segments(&"a".repeat(255 * 153), 0).len(), 255);
        let longer = "a".repeat(255 * 153 + 1);
        assert_eq!(measure(&longer).parts, 256);
        assert_eq!(segments(&longer, 0), []);
        let huge = "😀".repeat(33 * 70_000);
        assert_eq!(measure(&huge), size(Encoding::Ucs2, u16::MAX, 4_620_000));
    }

    /// The text that the parts carry, with all that must hold of every part checked on the way.
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
        let gathered = |c, n| prop::collection::vec(c, 0..n).prop_map(String::from_iter);
        prop_oneof![
            any::<String>(),
            gathered(gsm.boxed(), 2_000),
            gathered(mixed.boxed(), 1_000),
            gathered(any::<char>().boxed(), 1_000),
        ]
    }

    #[test]
    fn the_last_part_has_room() {
        for (text, left) in [
            (String::new(), 160),
            ("a".repeat(160), 0),
            ("€".repeat(10), 140),
            ("a".repeat(161), 145),
            ("é€".repeat(54), 144),
            ("я".into(), 69),
            ("я".repeat(71), 63),
        ] {
            assert_eq!(room(&text), left, "{text}");
        }
    }

    proptest! {
        #[test]
        fn parts_carry_the_text_and_no_more_of_them_than_measured(
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
        fn greedy_parts_are_as_few_as_can_be(text in texts()) {
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
