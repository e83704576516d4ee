//! Email addresses, as far as one can tell without sending mail.

/// The longest address that mail can have, in bytes.
const LONGEST: usize = 254;

/// Reads an address: something, an @, something; no spaces, and ASCII alone, so that no two addresses look alike (a
/// host with other letters has a spelling in ASCII). It is trimmed and lower-case from here on.
pub fn parse(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let (name, host) = text.split_once('@')?;
    let clean = text.chars().all(|c| c.is_ascii_graphic() && !"<>,;\"".contains(c));
    let whole = !name.is_empty() && !host.is_empty() && !host.contains('@');
    (clean && whole && text.len() <= LONGEST).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_an_address_is_taken_in_one_spelling() {
        assert_eq!(parse(" Ann@Example.COM "), Some("ann@example.com".to_owned()));
        assert_eq!(parse("demo@localhost"), Some("demo@localhost".to_owned()));
        for wrong in [
            "",
            "ann",
            "@b",
            "a@",
            "a@b@c",
            "a b@c",
            "a@b\nc",
            "<a@b>",
            "a@b,c@d",
            "аnn@example.com", // with a Cyrillic first letter
            "ann\u{202e}@example.com",
            "ann@exämple.com",
            &format!("a@{}", "b".repeat(254)),
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
