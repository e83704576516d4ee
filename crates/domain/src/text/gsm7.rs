//! The GSM-7 encoding: the GSM 7-bit default alphabet with its extension table (3GPP TS 23.038),
//! one septet per octet.

/// The escape septet: the next septet is looked up in the extension table.
const ESC: u8 = 0x1B;

/// The default alphabet, indexed by septet. A lone escape is shown as a space.
#[rustfmt::skip]
const ALPHABET: [char; 128] = [
    '@', '£', '$', '¥', 'è', 'é', 'ù', 'ì', 'ò', 'Ç', '\n', 'Ø', 'ø', '\r', 'Å', 'å',
    'Δ', '_', 'Φ', 'Γ', 'Λ', 'Ω', 'Π', 'Ψ', 'Σ', 'Θ', 'Ξ', ' ', 'Æ', 'æ', 'ß', 'É',
    ' ', '!', '"', '#', '¤', '%', '&', '\'', '(', ')', '*', '+', ',', '-', '.', '/',
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', ':', ';', '<', '=', '>', '?',
    '¡', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N', 'O',
    'P', 'Q', 'R', 'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', 'Ä', 'Ö', 'Ñ', 'Ü', '§',
    '¿', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o',
    'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', 'ä', 'ö', 'ñ', 'ü', 'à',
];

/// The extension table: septets after an escape.
const EXTENSION: [(u8, char); 10] = [
    (0x0A, '\u{c}'),
    (0x14, '^'),
    (0x28, '{'),
    (0x29, '}'),
    (0x2F, '\\'),
    (0x3C, '['),
    (0x3D, '~'),
    (0x3E, ']'),
    (0x40, '|'),
    (0x65, EURO),
];

/// The only character of both tables above the Greek capitals.
const EURO: char = '€';

/// Marks a septet of the extension table in [`CODES`].
const EXTENDED: u8 = 0x80;

/// Marks a character in [`CODES`] that is in neither table.
const NONE: u8 = 0xFF;

/// The inverse of both tables: the septets of all characters up to the Greek capitals.
const CODES: &[u8; 0x400] = &codes();

#[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
const fn codes() -> [u8; 0x400] {
    let mut codes = [NONE; 0x400];
    let mut septet = 0u8;
    while septet < 128 {
        if septet != ESC {
            codes[ALPHABET[septet as usize] as usize] = septet;
        }
        septet += 1;
    }
    let mut row = 0;
    while row < EXTENSION.len() {
        let (septet, c) = EXTENSION[row];
        if c != EURO {
            codes[c as usize] = EXTENDED | septet;
        }
        row += 1;
    }
    codes
}

fn code(c: char) -> u8 {
    match c {
        EURO => EXTENDED | 0x65,
        c => CODES.get(c as usize).copied().unwrap_or(NONE),
    }
}

/// Returns the number of septets of `c`, 1 or 2, or `None` if it is not in the alphabet.
pub(super) fn septets(c: char) -> Option<usize> {
    match code(c) {
        NONE => None,
        code if code >= EXTENDED => Some(2),
        _ => Some(1),
    }
}

/// Returns the number of septets of `text`, or `None` if a character is not in the alphabet.
pub(super) fn count(text: &str) -> Option<usize> {
    text.chars().map(septets).sum()
}

/// Appends the encoded `text`. A character outside the alphabet becomes a question mark, which does
/// not happen if the encoding was chosen by measuring the text.
pub(super) fn encode(text: &str, octets: &mut Vec<u8>) {
    for c in text.chars() {
        match code(c) {
            NONE => octets.push(b'?'),
            code if code >= EXTENDED => octets.extend([ESC, code & !EXTENDED]),
            code => octets.push(code),
        }
    }
}

/// Returns the first character outside the GSM alphabet, which forces `text` into UCS-2.
pub fn first_ucs2_char(text: &str) -> Option<char> {
    text.chars().find(|c| septets(*c).is_none())
}

/// Decodes GSM-7 text of one septet per octet. As 3GPP TS 23.038 requires, an escaped septet that
/// is not in the extension table is decoded by the default alphabet, and a double or trailing
/// escape is a space. An octet above 127 is not a septet and becomes U+FFFD.
pub fn decode_gsm7(octets: &[u8]) -> String {
    let plain = |octet: u8| {
        let c = ALPHABET.get(usize::from(octet));
        c.copied().unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    let mut text = String::with_capacity(octets.len());
    let mut rest = octets.iter().copied();
    while let Some(octet) = rest.next() {
        let escaped = if octet == ESC { rest.next() } else { None };
        text.push(match escaped {
            Some(octet) => extended(octet).unwrap_or_else(|| plain(octet)),
            None => plain(octet),
        });
    }
    text
}

fn extended(octet: u8) -> Option<char> {
    let row = EXTENSION.iter().find(|(septet, _)| *septet == octet)?;
    Some(row.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn encoded(text: &str) -> Vec<u8> {
        let mut octets = Vec::new();
        encode(text, &mut octets);
        octets
    }

    #[test]
    fn the_tables_are_a_bijection() {
        let mut seen = HashSet::new();
        for septet in (0..128).filter(|s| *s != ESC) {
            let text = decode_gsm7(&[septet]);
            assert_eq!(encoded(&text), [septet], "{text:?}");
            assert!(seen.insert(text));
        }
        for (septet, c) in EXTENSION {
            let text = decode_gsm7(&[ESC, septet]);
            assert_eq!(text, c.to_string());
            assert_eq!(encoded(&text), [ESC, septet], "{text:?}");
            assert!(seen.insert(text));
        }
        let known = (0..=u32::from(char::MAX)).filter_map(char::from_u32);
        assert_eq!(known.filter(|c| septets(*c).is_some()).count(), seen.len());
    }

    #[test]
    fn septets_match_the_standard() {
        let text = "@£\nÅΔ_ÆÉ ¤/09?¡AZÄÖÑÜ§¿azäöñüà€[|";
        let septets = [
            0x00, 0x01, 0x0A, 0x0E, 0x10, 0x11, 0x1C, 0x1F, 0x20, 0x24, 0x2F, 0x30, 0x39, 0x3F,
            0x40, 0x41, 0x5A, 0x5B, 0x5C, 0x5D, 0x5E, 0x5F, 0x60, 0x61, 0x7A, 0x7B, 0x7C, 0x7D,
            0x7E, 0x7F, 0x1B, 0x65, 0x1B, 0x3C, 0x1B, 0x40,
        ];
        assert_eq!(encoded(text), septets);
        assert_eq!(decode_gsm7(&septets), text);
    }

    #[test]
    fn the_character_that_forces_ucs2_is_found() {
        for (text, c) in [
            ("", None),
            ("plain [€] text\r\n", None),
            ("tab\tand `", Some('\t')),
            ("it`s", Some('`')),
            ("façade", Some('ç')),
            ("“quoted”", Some('“')),
            ("a\u{1b}b", Some('\u{1b}')),
            ("no\u{a0}break", Some('\u{a0}')),
            ("Α is Greek", Some('Α')),
            ("hi 😀", Some('😀')),
        ] {
            assert_eq!(first_ucs2_char(text), c, "{text:?}");
            assert_eq!(count(text).is_none(), c.is_some(), "{text:?}");
        }
    }

    #[test]
    fn unusual_escapes_are_decoded_by_the_standard() {
        for (octets, text) in [
            (&[ESC, b'a'][..], "a"),
            (&[ESC, ESC, b'e'], " e"),
            (&[b'a', ESC], "a "),
            (&[ESC], " "),
            (&[0x80, 0xFF], "\u{fffd}\u{fffd}"),
            (&[ESC, 0xFF], "\u{fffd}"),
            (&[], ""),
        ] {
            assert_eq!(decode_gsm7(octets), text, "{octets:?}");
        }
    }

    proptest! {
        #[test]
        fn any_octets_are_decoded(octets: Vec<u8>) {
            let text = decode_gsm7(&octets);
            prop_assert!(text.chars().count() <= octets.len());
        }
    }
}
