//! Texts of a message.

use crate::fields::rule::{TextRule, find_nul, text_type};
use crate::text;

text_type! {
    /// The text of a message: not empty, and without the character NUL. The number of parts, which
    /// depends on the encoding, limits its length: see [`text::measure`].
    MessageText,
    TextRule {
        field: "text",
        is_required: true,
        max_length: None,
        is_trimmed: false,
        find_invalid: find_nul,
    }
}

impl MessageText {
    /// The length of the longest text that can be sent, in characters: with a character outside of
    /// the GSM alphabet, fewer characters fit into the same number of parts.
    pub const LONGEST: usize = text::MAX_CHARACTERS;
}

text_type! {
    /// A client's own reference of a message: up to 255 characters, without the character NUL.
    Reference,
    TextRule {
        field: "reference",
        is_required: false,
        max_length: Some(Self::MAX_LENGTH),
        is_trimmed: false,
        find_invalid: find_nul,
    }
}

impl Reference {
    /// The maximum number of characters.
    pub const MAX_LENGTH: usize = 255;
}

text_type! {
    /// A reply that is typed on a virtual handset: 1 to 1,000 characters, without the character NUL.
    /// White space around it is removed.
    ReplyText,
    TextRule {
        field: "reply",
        is_required: true,
        max_length: Some(Self::MAX_LENGTH),
        is_trimmed: true,
        find_invalid: find_nul,
    }
}

impl ReplyText {
    /// The maximum number of characters.
    pub const MAX_LENGTH: usize = 1_000;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::error::FieldError;
    use crate::fields::rule::assertions::{accepts, invalid, rejects, too_long, wide};

    #[test]
    fn text_of_a_message_is_not_empty() {
        for text in [" ", "a", "two\nlines\t", "👋", &wide(100_000)] {
            accepts::<MessageText>(text);
        }
        rejects::<MessageText>("", FieldError::Empty("text"), "the text must not be empty");
        let message = "the text must not contain the character '\\0'";
        rejects::<MessageText>("a\0b", invalid("text", '\0'), message);
    }

    #[test]
    fn longest_text_fills_all_parts() {
        let longest = text::measure(&"a".repeat(MessageText::LONGEST));
        assert_eq!(longest.parts, text::MAX_PARTS);
        for letter in ["a", "短", "€", "😀"] {
            let longer = text::measure(&letter.repeat(MessageText::LONGEST + 1));
            assert!(longer.parts > text::MAX_PARTS, "{letter}");
        }
    }

    #[test]
    fn reference_has_up_to_255_characters() {
        for text in ["", " ", " order 7 ", "a\nb", &wide(255), &"r".repeat(255)] {
            accepts::<Reference>(text);
        }
        for text in [wide(256), "r".repeat(256), "r".repeat(1 << 20)] {
            let message = "the reference must not exceed 255 characters";
            rejects::<Reference>(&text, too_long("reference", 255), message);
        }
        let message = "the reference must not contain the character '\\0'";
        rejects::<Reference>("\0", invalid("reference", '\0'), message);
    }

    #[test]
    fn reply_of_a_handset_has_1_to_1000_characters() {
        for text in ["STOP", "a\nb", &wide(1_000)] {
            accepts::<ReplyText>(text);
        }
        for blank in ["", " \n"] {
            rejects::<ReplyText>(blank, FieldError::Empty("reply"), "the reply must not be empty");
        }
        let message = "the reply must not exceed 1000 characters";
        rejects::<ReplyText>(&wide(1_001), too_long("reply", 1_000), message);
        let message = "the reply must not contain the character '\\0'";
        rejects::<ReplyText>("a\0b", invalid("reply", '\0'), message);
    }
}
