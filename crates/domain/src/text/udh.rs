//! The user data header (UDH, 3GPP TS 23.040) of concatenated messages.

/// The concatenation element of a user data header. Together with both addresses, it identifies the
/// parts of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Concat {
    /// The reference number, equal in all parts of a message; 8 or 16 bits.
    pub reference: u16,
    /// The number of parts, at least 1.
    pub total: u8,
    /// The sequence number of this part, 1 to `total`.
    pub sequence: u8,
}

impl Concat {
    /// Creates an element. Returns `None` for invalid numbers: by 3GPP TS 23.040, a receiver
    /// ignores such an element.
    pub fn new(reference: u16, total: u8, sequence: u8) -> Option<Self> {
        (1..=total).contains(&sequence).then_some(Self { reference, total, sequence })
    }
}

/// Splits octets that begin with a user data header into its concatenation element and the text
/// after the header. Returns `None` if the header is malformed. Other elements are skipped. Of
/// several concatenation elements, the last valid one counts.
pub fn split_udh(octets: &[u8]) -> Option<(Option<Concat>, &[u8])> {
    let (length, rest) = octets.split_first()?;
    let (mut header, text) = rest.split_at_checked(usize::from(*length))?;
    let mut concat = None;
    while !header.is_empty() {
        let [kind, length, rest @ ..] = header else {
            return None;
        };
        let (value, rest) = rest.split_at_checked(usize::from(*length))?;
        concat = match (kind, value) {
            (0x00, &[reference, total, sequence]) => {
                Concat::new(u16::from(reference), total, sequence).or(concat)
            }
            (0x08, &[high, low, total, sequence]) => {
                Concat::new(u16::from_be_bytes([high, low]), total, sequence).or(concat)
            }
            (0x00 | 0x08, _) => return None,
            _ => concat,
        };
        header = rest;
    }
    Some((concat, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Option<Concat> = Some(Concat { reference: 7, total: 3, sequence: 2 });

    #[test]
    fn both_reference_widths_are_parsed_and_other_elements_skipped() {
        let wide = Concat { reference: 0x1234, total: 2, sequence: 1 };
        for (octets, concat) in [
            (&[5, 0, 3, 7, 3, 2, b'h', b'i'][..], SECOND),
            (&[6, 8, 4, 0x12, 0x34, 2, 1, b'h', b'i'], Some(wide)),
            (&[0, b'h', b'i'], None),
            // Application ports before and after.
            (&[11, 4, 2, 1, 2, 0, 3, 7, 3, 2, 4, 0, b'h', b'i'], SECOND),
            // Invalid: part 0, part 4 of 3, and a total of 0.
            (&[5, 0, 3, 7, 3, 0, b'h', b'i'], None),
            (&[5, 0, 3, 7, 3, 4, b'h', b'i'], None),
            (&[5, 0, 3, 7, 0, 0, b'h', b'i'], None),
            (&[10, 0, 3, 9, 9, 9, 0, 3, 7, 3, 2, b'h', b'i'], SECOND),
        ] {
            assert_eq!(split_udh(octets), Some((concat, &b"hi"[..])), "{octets:?}");
        }
    }

    #[test]
    fn malformed_headers_are_rejected() {
        for octets in [
            &[][..],
            &[1],
            &[1, 0],
            &[5, 0, 3, 7, 3],
            &[5, 0, 4, 7, 3, 2, b'h'],
            &[4, 0, 2, 7, 3, b'h'],
            &[5, 8, 3, 7, 3, 2, b'h'],
            &[255, 0, 3, 7, 3, 2],
        ] {
            assert_eq!(split_udh(octets), None, "{octets:?}");
        }
    }

    proptest! {
        #[test]
        fn any_octets_are_parsed_or_rejected(octets: Vec<u8>) {
            if let Some((_, text)) = split_udh(&octets) {
                prop_assert!(octets.ends_with(text));
                prop_assert!(text.len() < octets.len());
            }
        }
    }
}
