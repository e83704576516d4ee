//! Idempotency keys.

use crate::fields::rule::{TextRule, find_non_printable_ascii, text_type};
use uuid::Uuid;

text_type! {
    /// An idempotency key, which makes a request safe to repeat: 1 to 255 printable ASCII
    /// characters.
    IdempotencyKey,
    TextRule {
        field: "idempotency key",
        is_required: true,
        max_length: Some(Self::MAX_LENGTH),
        is_trimmed: false,
        find_invalid: find_non_printable_ascii,
    }
}

impl IdempotencyKey {
    /// The maximum number of characters.
    pub const MAX_LENGTH: usize = 255;

    /// Returns the key of a form in the dashboard. The prefix separates it from the keys of API
    /// clients.
    pub fn of_form(id: Uuid) -> Self {
        Self(format!("page {id}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::error::FieldError;
    use crate::fields::rule::assertions::{accepts, invalid, rejects, too_long};

    #[test]
    fn idempotency_key_has_1_to_255_printable_ascii_characters() {
        for text in ["k", " ", "!~", "a b", &"k".repeat(255)] {
            accepts::<IdempotencyKey>(text);
        }
        let message = "the idempotency key must not be empty";
        rejects::<IdempotencyKey>("", FieldError::Empty("idempotency key"), message);
        let message = "the idempotency key must not exceed 255 characters";
        rejects::<IdempotencyKey>(&"k".repeat(256), too_long("idempotency key", 255), message);
        for character in ['\0', '\t', '\n', '\u{7f}', 'é', '短'] {
            let message =
                format!("the idempotency key must not contain the character {character:?}");
            let error = invalid("idempotency key", character);
            rejects::<IdempotencyKey>(&format!("k{character}"), error, &message);
        }
    }

    #[test]
    fn key_of_a_form_is_valid() {
        let key = IdempotencyKey::of_form(Uuid::nil());
        assert_eq!(key.as_str().parse(), Ok(key.clone()));
    }
}
