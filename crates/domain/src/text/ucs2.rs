//! The UCS-2 encoding as handsets use it: UTF-16, big endian, with surrogate pairs.

/// Returns the number of 16-bit units of `text`.
pub(super) fn count(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Appends the encoded `text`.
pub(super) fn encode(text: &str, octets: &mut Vec<u8>) {
    for unit in text.encode_utf16() {
        octets.extend_from_slice(&unit.to_be_bytes());
    }
}

/// Decodes UTF-16, big endian. A lone surrogate or a trailing odd octet becomes U+FFFD.
pub fn decode_ucs2(octets: &[u8]) -> String {
    let (pairs, odd) = octets.as_chunks::<2>();
    let units = pairs.iter().map(|pair| u16::from_be_bytes(*pair));
    char::decode_utf16(units)
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .chain(odd.iter().map(|_| char::REPLACEMENT_CHARACTER))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn malformed_text_is_decoded_with_replacements() {
        for (octets, text) in [
            (&[][..], ""),
            (&[0x04, 0x1F], "П"),
            (&[0xD8, 0x3D, 0xDE, 0x00], "😀"),
            (&[0xD8, 0x3D], "\u{fffd}"),
            (&[0xDE, 0x00, 0x00, b'a'], "\u{fffd}a"),
            (&[0x00, b'a', 0x00], "a\u{fffd}"),
        ] {
            assert_eq!(decode_ucs2(octets), text, "{octets:?}");
        }
    }

    proptest! {
        #[test]
        fn encoded_text_round_trips(text: String) {
            let mut octets = Vec::new();
            encode(&text, &mut octets);
            prop_assert_eq!(octets.len(), 2 * count(&text));
            prop_assert_eq!(decode_ucs2(&octets), text);
        }

        #[test]
        fn any_octets_are_decoded(octets: Vec<u8>) {
            let text = decode_ucs2(&octets);
            prop_assert!(text.chars().count() <= octets.len().div_ceil(2));
        }
    }
}
