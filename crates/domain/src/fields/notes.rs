//! Notes.

use crate::fields::rule::{TextRule, find_nul, text_type};

text_type! {
    /// A note on a number of an opt-out list: up to 255 characters, without the character NUL.
    Note,
    TextRule {
        field: "note",
        is_required: false,
        max_length: Some(Self::MAX_LENGTH),
        is_trimmed: false,
        find_invalid: find_nul,
    }
}

impl Note {
    /// The maximum number of characters.
    pub const MAX_LENGTH: usize = 255;

    /// Returns a note with the beginning of a text that may be too long.
    pub fn truncated(text: &str) -> Self {
        Self(text.chars().filter(|c| *c != '\0').take(Self::MAX_LENGTH).collect())
    }
}

text_type! {
    /// The reason for a change of a balance, kept in the ledger: up to 200 characters, without the
    /// character NUL.
    #[derive(Default)]
    CreditNote,
    TextRule {
        field: "note",
        is_required: false,
        max_length: Some(Self::MAX_LENGTH),
        is_trimmed: false,
        find_invalid: find_nul,
    }
}

impl CreditNote {
    /// The maximum number of characters.
    pub const MAX_LENGTH: usize = 200;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::rule::assertions::{accepts, invalid, rejects, too_long, wide};
    use proptest::prelude::*;

    #[test]
    fn notes_have_a_limit_and_may_be_empty() {
        for text in ["", " ", "by phone\n", &wide(200)] {
            accepts::<Note>(text);
            accepts::<CreditNote>(text);
        }
        accepts::<Note>(&wide(255));
        let message = "the note must not exceed 255 characters";
        rejects::<Note>(&wide(256), too_long("note", 255), message);
        let message = "the note must not exceed 200 characters";
        rejects::<CreditNote>(&wide(201), too_long("note", 200), message);
        let message = "the note must not contain the character '\\0'";
        rejects::<Note>("a\0", invalid("note", '\0'), message);
        rejects::<CreditNote>("a\0", invalid("note", '\0'), message);
        assert_eq!(CreditNote::default().as_str(), "");
    }

    #[test]
    fn long_text_can_be_truncated_to_a_note() {
        assert_eq!(Note::truncated("by phone").as_str(), "by phone");
        assert_eq!(Note::truncated(&wide(300)).into_string(), wide(255));
        assert_eq!(Note::truncated("a\0b").as_str(), "ab");
    }

    proptest! {
        #[test]
        fn truncated_notes_are_valid(text: String) {
            let note = Note::truncated(&text);
            prop_assert_eq!(note.as_str().parse(), Ok(note.clone()));
        }
    }
}
