//! Which passwords may be chosen: long ones that nobody guesses first, whatever they are made of.

/// The fewest characters, as NIST SP 800-63B asks for where a password may stand alone.
pub const SHORTEST: usize = 12;
/// The most: more is no safer, and each costs time to hash.
pub const LONGEST: usize = 128;

/// What our own name must not be in.
const PRODUCT: &str = "heliograph";
/// Below this a name is found in too many innocent words.
const SHORTEST_NAME: usize = 4;

/// Words that the passwords which people choose first are made of.
const COMMON: &str = include_str!("password/common.txt");
/// Neighbours on keyboards, and in the order of digits and letters.
const ROWS: [&str; 7] = [
    "qwertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "qwertzuiopü",
    "azertyuiop",
    "1234567890",
    "abcdefghijklmnopqrstuvwxyz",
];

/// Why a password is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Weak {
    /// Fewer than [`SHORTEST`] characters.
    #[error(
        "Use at least 12 characters. A few words that do not belong together are easy to remember."
    )]
    Short,
    /// More than [`LONGEST`].
    #[error("Use at most 128 characters.")]
    Long,
    /// Among those that are tried first.
    #[error(
        "Too many people use this one, with or without digits added. Choose words that do not belong together."
    )]
    Common,
    /// The person's address, or our name, is in it.
    #[error("Leave out your email address and the name of this service: they are guessed first.")]
    Personal,
    /// One character or a short piece again and again, or rows of the keyboard.
    #[error(
        "Repeated pieces and rows like 1234 or qwerty are guessed first. Choose words that do not belong together."
    )]
    Pattern,
}

/// Refuses a password that the person with this address should not choose.
///
/// # Errors
/// [`Weak`], which says what to do.
pub fn judge(password: &str, email: &str) -> Result<(), Weak> {
    let length = password.chars().count();
    if length < SHORTEST {
        return Err(Weak::Short);
    }
    if length > LONGEST {
        return Err(Weak::Long);
    }
    let lower = password.to_lowercase();
    let name = email.split('@').next().unwrap_or_default().to_lowercase();
    let named = name.chars().count() >= SHORTEST_NAME && lower.contains(&name);
    if named || plain(&lower).contains(PRODUCT) || lower.contains(PRODUCT) {
        return Err(Weak::Personal);
    }
    let characters: Vec<char> = lower.chars().collect();
    if repeats(&characters) || runs(&characters) {
        return Err(Weak::Pattern);
    }
    if is_common(&lower) { Err(Weak::Common) } else { Ok(()) }
}

/// Whether it is one short piece, again and again.
fn repeats(all: &[char]) -> bool {
    (1..=all.len() / 2).any(|n| all.iter().zip(all.iter().skip(n)).all(|(a, b)| a == b))
}

/// Whether most of it is steps to a neighbour: 1234, aaaa, qwerty.
fn runs(all: &[char]) -> bool {
    let steps =
        all.iter().zip(all.iter().skip(1)).filter(|(a, b)| are_neighbours(**a, **b)).count();
    steps * 3 >= all.len() * 2
}

fn are_neighbours(a: char, b: char) -> bool {
    let place = |row: &str, c| row.chars().position(|r| r == c);
    let close = |row: &str| matches!((place(row, a), place(row, b)), (Some(a), Some(b)) if a.abs_diff(b) == 1);
    a == b || ROWS.iter().any(|row| close(row))
}

/// Whether its letters are common words and nothing else, also where digits stand for letters.
fn is_common(lower: &str) -> bool {
    let words: Vec<&str> =
        COMMON.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let letters: String = lower.chars().filter(|c| c.is_alphabetic()).collect();
    [letters, plain(lower)].iter().any(|text| !text.is_empty() && is_made_of(text, &words))
}

/// The letters, and those that digits and signs stand for; digits at the end stand for nothing.
fn plain(lower: &str) -> String {
    let body = lower.trim_end_matches(|c: char| !c.is_alphabetic());
    let letter = |c| match c {
        '0' => Some('o'),
        '1' | '!' => Some('i'),
        '3' => Some('e'),
        '4' | '@' => Some('a'),
        '5' | '$' => Some('s'),
        '7' => Some('t'),
        c if c.is_alphabetic() => Some(c),
        _ => None,
    };
    body.chars().filter_map(letter).collect()
}

/// Whether a text is words of a list, one after the other.
fn is_made_of(text: &str, words: &[&str]) -> bool {
    let mut reached = vec![false; text.len() + 1];
    if let Some(begin) = reached.first_mut() {
        *begin = true;
    }
    for at in 0..text.len() {
        if !reached.get(at).copied().unwrap_or(false) {
            continue;
        }
        let rest = text.get(at..).unwrap_or_default();
        for word in words.iter().filter(|w| rest.starts_with(**w)) {
            if let Some(end) = reached.get_mut(at + word.len()) {
                *end = true;
            }
        }
    }
    reached.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn judged(password: &str) -> Result<(), Weak> {
        judge(password, "annabel@example.com")
    }

    #[test]
    fn what_nobody_guesses_first_is_taken_whatever_it_is_made_of() {
        for good in [
            "correct horse battery staple",
            "otter velvet tram",
            "ёлка под снегом",
            "zu-viele-kekse-im-mai",
            "kx7!mQ2#vL9@",
            "annexed by twelve geese",
            "passwords are tedious",
            "84 rusty bicycles",
        ] {
            assert_eq!(judged(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn what_is_guessed_first_is_refused_and_said_why() {
        for (bad, why) in [
            ("", Weak::Short),
            ("elevenchars", Weak::Short),
            ("password1234", Weak::Common),
            ("P@ssw0rd2024!!", Weak::Common),
            ("iloveyou123!", Weak::Common),
            ("welcome-letmein", Weak::Common),
            ("Summer 2026 !!", Weak::Common),
            ("administrator1", Weak::Common),
            ("annabel is here", Weak::Personal),
            ("my Heliograph 1", Weak::Personal),
            ("H3liograph4ever", Weak::Personal),
            ("aaaaaaaaaaaaaa", Weak::Pattern),
            ("abcabcabcabc", Weak::Pattern),
            ("otterotterotter", Weak::Pattern),
            ("123456789012", Weak::Pattern),
            ("qwertyuiop12", Weak::Pattern),
            ("zyxwvutsrqpo", Weak::Pattern),
        ] {
            assert_eq!(judged(bad), Err(why), "{bad}");
        }
        assert_eq!(judged(&"otter velvet ".repeat(10)), Err(Weak::Long));
        assert_eq!(
            judge("ann and her geese", "ann@example.com"),
            Ok(()),
            "a short name is in many words"
        );
    }

    #[test]
    fn the_list_is_lower_case_words() {
        let words: Vec<_> = COMMON.lines().filter(|l| !l.starts_with('#')).collect();
        assert!(words.len() > 150);
        assert!(
            words.iter().all(|w| w.len() > 1 && w.chars().all(|c| c.is_ascii_lowercase())),
            "{words:?}"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_judged(password in any::<String>(), email in any::<String>()) {
            let _ = judge(&password, &email);
        }
    }
}
