//! Email addresses, validated as far as possible without sending mail.

/// The maximum length of an address in bytes (RFC 5321).
const MAX_LENGTH: usize = 254;

/// Parses an address of the form `name@host` and returns it trimmed and in lower case. Only
/// printable ASCII is accepted, so that no two addresses look alike (an internationalized host has
/// an ASCII form, punycode).
pub fn parse(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let (name, host) = text.split_once('@')?;
    let valid_chars = text.chars().all(|c| c.is_ascii_graphic() && !"<>,;\"".contains(c));
    let has_both_sides = !name.is_empty() && !host.is_empty() && !host.contains('@');
    (valid_chars && has_both_sides && text.len() <= MAX_LENGTH).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_validated_and_normalized() {
        assert_eq!(parse(" Ann@Example.COM "), Some("ann@example.com".to_owned()));
        assert_eq!(parse("demo@localhost"), Some("demo@localhost".to_owned()));
        for invalid in [
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
            assert_eq!(parse(invalid), None, "{invalid}");
        }
    }
}
