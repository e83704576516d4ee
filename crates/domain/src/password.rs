//! Password strength rules: passwords must be long and hard to guess; character classes do not
//! matter.

use sha2::{Digest, Sha256};

/// The minimum number of characters. NIST SP 800-63B requires it of passwords used as the only
/// factor.
pub const MIN_LENGTH: usize = 12;
/// The maximum number of characters. More add no security, but take time to hash.
pub const MAX_LENGTH: usize = 128;

/// The product name, which a password must not contain.
const PRODUCT: &str = "heliograph";
/// The minimum length of the name in an email address for the check against it: shorter names occur
/// in too many harmless words.
const MIN_NAME_LENGTH: usize = 4;

/// Words that common passwords consist of.
const COMMON: &str = include_str!("password/common.txt");
/// The passwords that are found first in breaches: sorted, each as the first bytes of the SHA-256
/// hash of its lower-case form. `scripts/breached-passwords` writes the file.
const BREACHED: &[u8] = include_bytes!("password/breached.bin");
/// The number of bytes of a hash: a good password is refused by chance once in 400,000 times.
const BREACHED_BYTES: usize = 4;
/// Sequences: rows of keyboards, digits and the alphabet.
const ROWS: [&str; 7] = [
    "qwertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "qwertzuiopü",
    "azertyuiop",
    "1234567890",
    "abcdefghijklmnopqrstuvwxyz",
];

/// The reason why a password is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WeakPassword {
    /// The password has fewer than [`MIN_LENGTH`] characters.
    #[error("Use at least 12 characters. Several unrelated words are easy to remember.")]
    Short,
    /// The password has more than [`MAX_LENGTH`] characters.
    #[error("Use at most 128 characters.")]
    Long,
    /// The password consists of common words, or is known from breaches.
    #[error("This password is too common, even with added digits. Use several unrelated words.")]
    Common,
    /// The password contains the email address of the user or the product name.
    #[error("Do not use your email address or the name of this service in your password.")]
    Personal,
    /// The password is a repetition or a sequence.
    #[error(
        "Repetitions and sequences like 1234 or qwerty are easy to guess. Use several unrelated \
         words."
    )]
    Pattern,
}

/// Checks the strength of a password that the user with this email address wants to set.
///
/// # Errors
/// Returns the first rule that the password breaks, with a text that tells the user what to do.
pub fn check(password: &str, email: &str) -> Result<(), WeakPassword> {
    let length = password.chars().count();
    if length < MIN_LENGTH {
        return Err(WeakPassword::Short);
    }
    if length > MAX_LENGTH {
        return Err(WeakPassword::Long);
    }
    let lower = password.to_lowercase();
    let name = email.split('@').next().unwrap_or_default().to_lowercase();
    let named = name.chars().count() >= MIN_NAME_LENGTH && lower.contains(&name);
    let is_email = lower == email.to_lowercase();
    if named || is_email || deobfuscate(&lower).contains(PRODUCT) || lower.contains(PRODUCT) {
        return Err(WeakPassword::Personal);
    }
    let characters: Vec<char> = lower.chars().collect();
    if repeats(&characters) || runs(&characters) {
        return Err(WeakPassword::Pattern);
    }
    match is_common(&lower) || is_breached(&lower) {
        true => Err(WeakPassword::Common),
        false => Ok(()),
    }
}

/// Returns whether the password is a repetition of one short piece.
fn repeats(all: &[char]) -> bool {
    (1..=all.len() / 2).any(|n| all.iter().zip(all.iter().skip(n)).all(|(a, b)| a == b))
}

/// Returns whether at least two thirds of the characters continue a sequence or a repetition: 1234,
/// aaaa, qwerty.
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

/// Returns whether the password is known from breaches, also with digits and signs added at its
/// ends, or in place of letters.
fn is_breached(lower: &str) -> bool {
    let is_added = |c: char| !c.is_alphabetic();
    let body = lower.trim_end_matches(is_added);
    let inner = body.trim_start_matches(is_added);
    [lower, body, inner, &deobfuscate(lower)].into_iter().any(|text| {
        let hash = Sha256::digest(text.as_bytes());
        let (hashes, _) = BREACHED.as_chunks::<BREACHED_BYTES>();
        hash.first_chunk().is_some_and(|hash| hashes.binary_search(hash).is_ok())
    })
}

/// Returns whether the letters form only common words, also with digits in place of letters
/// (`p4ssw0rd`).
fn is_common(lower: &str) -> bool {
    let words: Vec<&str> =
        COMMON.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let letters: String = lower.chars().filter(|c| c.is_alphabetic()).collect();
    [letters, deobfuscate(lower)].iter().any(|text| !text.is_empty() && is_made_of(text, &words))
}

/// Returns the letters, with digits and signs that look like letters replaced (leetspeak). Digits
/// and signs at the end are dropped.
fn deobfuscate(lower: &str) -> String {
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

/// Returns whether a text is a concatenation of words of the list.
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

    fn checked(password: &str) -> Result<(), WeakPassword> {
        check(password, "annabel@example.com")
    }

    #[test]
    fn strong_passwords_are_accepted() {
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
            assert_eq!(checked(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn email_address_is_no_password() {
        assert_eq!(check("Bo@example.COM", "bo@example.com"), Err(WeakPassword::Personal));
    }

    #[test]
    fn weak_passwords_are_rejected_with_a_reason() {
        for (bad, why) in [
            ("", WeakPassword::Short),
            ("elevenchars", WeakPassword::Short),
            ("password1234", WeakPassword::Common),
            ("P@ssw0rd2024!!", WeakPassword::Common),
            ("iloveyou123!", WeakPassword::Common),
            ("welcome-letmein", WeakPassword::Common),
            ("Summer 2026 !!", WeakPassword::Common),
            ("administrator1", WeakPassword::Common),
            ("annabel is here", WeakPassword::Personal),
            ("my Heliograph 1", WeakPassword::Personal),
            ("H3liograph4ever", WeakPassword::Personal),
            ("aaaaaaaaaaaaaa", WeakPassword::Pattern),
            ("abcabcabcabc", WeakPassword::Pattern),
            ("otterotterotter", WeakPassword::Pattern),
            ("123456789012", WeakPassword::Pattern),
            ("qwertyuiop12", WeakPassword::Pattern),
            ("zyxwvutsrqpo", WeakPassword::Pattern),
        ] {
            assert_eq!(checked(bad), Err(why), "{bad}");
        }
        assert_eq!(checked(&"otter velvet ".repeat(10)), Err(WeakPassword::Long));
        assert_eq!(
            check("ann and her geese", "ann@example.com"),
            Ok(()),
            "short names are not checked"
        );
    }

    #[test]
    fn passwords_from_breaches_are_rejected_also_with_digits() {
        let (hashes, rest) = BREACHED.as_chunks::<BREACHED_BYTES>();
        assert!(hashes.len() > 3_000 && rest.is_empty() && hashes.is_sorted());
        for bad in ["passwordstandard", "gfhjkm 94817263", "2026 trustno 2026", "Gfhjkm-86-42-97"] {
            assert_eq!(checked(bad), Err(WeakPassword::Common), "{bad}");
        }
    }

    #[test]
    fn the_word_list_is_lower_case_ascii() {
        let words: Vec<_> = COMMON.lines().filter(|l| !l.starts_with('#')).collect();
        assert!(words.len() > 150);
        assert!(
            words.iter().all(|w| w.len() > 1 && w.chars().all(|c| c.is_ascii_lowercase())),
            "{words:?}"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_checked_without_panic(password in any::<String>(), email in any::<String>()) {
            let _ = check(&password, &email);
        }
    }
}
