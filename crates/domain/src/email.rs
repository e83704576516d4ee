//! Email addresses, validated as far as possible without sending mail.

/// The maximum length of an address in bytes (RFC 5321).
const MAX_LENGTH: usize = 254;

/// The maximum length of the part before the `@` in bytes (RFC 5321).
const MAX_NAME_LENGTH: usize = 64;
/// The maximum length of a label of the host in bytes (RFC 1035).
const MAX_LABEL_LENGTH: usize = 63;

/// Parses an address of the form `name@host` and returns it trimmed and in lower case. The name is a
/// dot-atom (RFC 5322) without the characters of source routes (`!` and `%`), and the host is a
/// host name. Only ASCII is accepted, so that no two addresses look alike (an internationalized
/// host has an ASCII form, punycode).
pub fn parse(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let (name, host) = text.split_once('@')?;
    (text.len() <= MAX_LENGTH && is_name(name) && is_host(host)).then_some(text)
}

fn is_name(name: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "#$&'*+-/=?^_`{|}~".contains(c);
    let is_atom = |atom: &str| !atom.is_empty() && atom.chars().all(is_valid);
    name.len() <= MAX_NAME_LENGTH && name.split('.').all(is_atom)
}

/// Returns whether the text is a host name, which is no IP address.
fn is_host(host: &str) -> bool {
    let is_label = |label: &str| {
        (1..=MAX_LABEL_LENGTH).contains(&label.len())
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    host.split('.').all(is_label) && !last.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_validated_and_normalized() {
        assert_eq!(parse(" Ann@Example.COM "), Some("ann@example.com".to_owned()));
        assert_eq!(parse("demo@localhost"), Some("demo@localhost".to_owned()));
        assert!(parse("o'brien+sms@mail.example.co.uk").is_some());
        for invalid in [
            ".ann@example.com",
            "ann.@example.com",
            "a..n@example.com",
            "ann%example.org@example.com",
            "example.org!ann@example.com",
            "ann@-example.com",
            "ann@example-.com",
            "ann@example..com",
            "ann@example.com.",
            "ann@exa_mple.com",
            "ann@192.0.2.1",
            "ann@[192.0.2.1]",
            "ann(x)@example.com",
            &format!("{}@example.com", "a".repeat(65)),
            &format!("ann@{}.com", "b".repeat(64)),
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
