//! Names.

use crate::fields::rule::{TextRule, find_control, text_type};

text_type! {
    /// The name of an opt-out list: 1 to 100 printable characters. White space around it is
    /// removed.
    ListName,
    TextRule {
        field: "name",
        is_required: true,
        max_length: Some(Self::MAX_LENGTH),
        is_trimmed: true,
        find_invalid: find_control,
    }
}

impl ListName {
    /// The maximum number of characters.
    pub const MAX_LENGTH: usize = 100;
}

text_type! {
    /// The name of an API key: 1 to 100 printable characters. White space around it is removed.
    KeyName,
    TextRule {
        field: "name",
        is_required: true,
        max_length: Some(Self::MAX_LENGTH),
        is_trimmed: true,
        find_invalid: find_control,
    }
}

impl KeyName {
    /// The maximum number of characters.
    pub const MAX_LENGTH: usize = 100;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::error::FieldError;
    use crate::fields::rule::assertions::{accepts, invalid, rejects, too_long, wide};
    use proptest::prelude::*;

    #[test]
    fn names_have_1_to_100_printable_characters() {
        for text in ["x", "News & offers", "Übersicht", "👨‍👩‍👧", &wide(100)] {
            accepts::<ListName>(text);
            accepts::<KeyName>(text);
        }
        for blank in ["", " ", "\u{2003}", "\n\t "] {
            let (error, message) = (FieldError::Empty("name"), "the name must not be empty");
            rejects::<ListName>(blank, error, message);
            rejects::<KeyName>(blank, error, message);
        }
        let message = "the name must not exceed 100 characters";
        for long in [wide(101), "n".repeat(101)] {
            rejects::<ListName>(&long, too_long("name", 100), message);
            rejects::<KeyName>(&long, too_long("name", 100), message);
        }
        for character in ['\0', '\n', '\u{1b}', '\u{7f}', '\u{85}'] {
            let text = format!("a{character}b");
            let message = format!("the name must not contain the character {character:?}");
            rejects::<ListName>(&text, invalid("name", character), &message);
            rejects::<KeyName>(&text, invalid("name", character), &message);
        }
    }

    #[test]
    fn white_space_around_names_is_removed() {
        let typed = format!(" {}\n", wide(100));
        assert_eq!(typed.parse::<ListName>().unwrap().as_str(), wide(100));
        assert_eq!(KeyName::try_from(typed).unwrap().as_str(), wide(100));
    }

    proptest! {
        #[test]
        fn accepted_texts_are_accepted_again(text: String) {
            if let Ok(name) = text.parse::<ListName>() {
                prop_assert_eq!(name.as_str().parse(), Ok(name.clone()));
                prop_assert!((1..=100).contains(&name.as_str().chars().count()));
            }
        }
    }
}
