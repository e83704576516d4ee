//! Suggestions for misspelled field names.

use std::fmt;

/// The longest name that is compared, in bytes: the comparison takes quadratic time, and no field
/// has a name that long.
const MAX_NAME: usize = 64;

/// The error message for an unknown field.
pub(crate) struct UnknownField<'a> {
    pub(crate) name: &'a str,
    pub(crate) known: &'a [&'static str],
}

impl fmt::Display for UnknownField<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match nearest(self.name, self.known) {
            Some(meant) => write!(f, "Unknown field. Did you mean '{meant}'?"),
            None => f.write_str("Unknown field. Field names are case-sensitive."),
        }
    }
}

/// Returns the known name that `name` is probably meant to be. A third of the letters may differ,
/// and their case does not count.
fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    if name.len() > MAX_NAME {
        return None;
    }
    let name = name.to_lowercase();
    let limit = (name.chars().count() / 3).max(1);
    let distance = |other: &str| strsim::osa_distance(&name, &other.to_lowercase());
    let near = known.iter().map(|other| (distance(other), *other));
    near.filter(|(d, _)| *d <= limit).min_by_key(|(d, _)| *d).map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] = &["originator", "recipient", "text", "blockOptout", "id"];

    #[test]
    fn misspelled_names_are_recognized() {
        for (name, meant) in [
            ("recipients", "recipient"),
            ("recipeint", "recipient"),
            ("RECIPIENT", "recipient"),
            ("block_optout", "blockOptout"),
            ("Text", "text"),
            ("txt", "text"),
            ("i", "id"),
        ] {
            assert_eq!(nearest(name, KNOWN), Some(meant), "{name}");
        }
    }

    #[test]
    fn other_names_are_not() {
        let long = "recipient".repeat(100_000);
        for name in ["", "phone", "message", "te", "日本語", &long] {
            assert_eq!(nearest(name, KNOWN), None, "{}", name.get(..20).unwrap_or(name));
        }
    }
}
