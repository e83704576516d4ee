//! CSRF tokens: a form proves that it comes from a page of this session.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use heliograph_domain::secret::Token;

const SIZE: usize = 32;

/// Returns the token for a form. A random mask makes it different each time, so that compression
/// does not leak it (BREACH).
pub(crate) fn field(session: &Token, mask: &[u8; SIZE]) -> String {
    let mut bytes = mask.to_vec();
    bytes.extend(session.derive("csrf").iter().zip(mask).map(|(secret, mask)| secret ^ mask));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns whether a token belongs to this session. The comparison takes constant time.
pub(crate) fn is_good(session: &Token, field: &str) -> bool {
    let Ok(bytes) = URL_SAFE_NO_PAD.decode(field) else { return false };
    let Some((mask, hidden)) = bytes.split_at_checked(SIZE) else { return false };
    let secret = session.derive("csrf");
    let pairs = mask.iter().zip(hidden).zip(secret);
    let differing = pairs.fold(0, |all, ((mask, hidden), secret)| all | (mask ^ hidden ^ secret));
    hidden.len() == SIZE && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_valid_for_their_session_only() {
        let (mine, other) = (Token::from_random(&[1; 32]), Token::from_random(&[2; 32]));
        let (one, two) = (field(&mine, &[9; 32]), field(&mine, &[8; 32]));
        assert_ne!(one, two);
        assert!(is_good(&mine, &one) && is_good(&mine, &two) && !is_good(&other, &one));
        for wrong in ["", "AAAA", &one[1..], &format!("{one}AA")] {
            assert!(!is_good(&mine, wrong), "{wrong}");
        }
    }
}
