//! Inbound SMS as carriers deliver them, and the keywords STOP, START and HELP.

use crate::text::Concat;

/// An inbound SMS as a carrier delivers it (`deliver_sm`): a whole message, or one part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IncomingSms {
    /// The sender as the carrier reports it: digits without the plus, or an alphanumeric name.
    pub from: String,
    /// The number that the message was sent to, as digits without the plus.
    pub to: String,
    /// The decoded text, without NUL characters, which PostgreSQL cannot store.
    pub text: String,
    /// The concatenation header if this is one of several parts.
    pub concat: Option<Concat>,
    /// The label of the message that it replies to. Only the simulated SMSC provides it.
    pub label: Option<i64>,
}

/// The request of an inbound message that consists of a keyword.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Keyword {
    /// Opt out: send no more messages.
    Stop,
    /// Opt in again.
    Start,
    /// Ask who the sender is.
    Help,
}

const STOP: &[&str] = &[
    "STOP",
    "STOPALL",
    "STOP ALL",
    "UNSUBSCRIBE",
    "CANCEL",
    "END",
    "QUIT",
    "REVOKE",
    "OPTOUT",
    "OPT OUT",
    "REMOVE",
    "ARRET",
    "ARRÊT",
];
const START: &[&str] = &["START", "UNSTOP"];
const HELP: &[&str] = &["HELP", "INFO"];

impl Keyword {
    const ALL: [(Self, &[&str]); 3] =
        [(Self::Stop, STOP), (Self::Start, START), (Self::Help, HELP)];

    /// Returns the stored code.
    pub const fn code(self) -> i16 {
        match self {
            Self::Stop => 1,
            Self::Start => 2,
            Self::Help => 3,
        }
    }

    /// Returns the value of a stored code.
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            1 => Some(Self::Stop),
            2 => Some(Self::Start),
            3 => Some(Self::Help),
            _ => None,
        }
    }

    /// Returns the name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "STOP",
            Self::Start => "START",
            Self::Help => "HELP",
        }
    }
}

/// Returns the keyword if the whole text is one, regardless of case and punctuation. A keyword
/// among other words does not count: "don't stop" is not "stop".
pub fn keyword(text: &str) -> Option<Keyword> {
    let words = words(text);
    let found = Keyword::ALL.iter().find(|(_, list)| list.contains(&words.as_str()));
    found.map(|(keyword, _)| *keyword)
}

/// Returns the words of `text` in upper case, separated by single spaces. All other characters are
/// separators, so OPT-OUT becomes OPT OUT.
fn words(text: &str) -> String {
    let narrow: String = text.chars().map(narrow).collect();
    // The only letter of the lists with a decomposed form.
    let capitals = narrow.to_uppercase().replace("E\u{302}", "Ê");
    let words = capitals.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Maps full-width letters, which East Asian keyboards produce, to ASCII.
fn narrow(c: char) -> char {
    match u32::from(c) {
        wide @ 0xFF01..=0xFF5E => char::from_u32(wide - 0xFEE0).unwrap_or(c),
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stored_codes_round_trip() {
        for (keyword, code, name) in
            [(Keyword::Stop, 1, "STOP"), (Keyword::Start, 2, "START"), (Keyword::Help, 3, "HELP")]
        {
            assert_eq!((keyword.code(), keyword.name()), (code, name));
            assert_eq!(Keyword::from_code(code), Some(keyword));
        }
        assert_eq!([0, 4, -1].map(Keyword::from_code), [None; 3]);
    }

    #[test]
    fn every_listed_keyword_is_recognized() {
        let stop = "STOP,STOPALL,STOP ALL,UNSUBSCRIBE,CANCEL,END,QUIT,REVOKE,OPTOUT,OPT OUT,OPT-OUT,REMOVE,ARRET,ARRÊT";
        for (list, expected) in
            [(stop, Keyword::Stop), ("START,UNSTOP", Keyword::Start), ("HELP,INFO", Keyword::Help)]
        {
            for word in list.split(',') {
                assert_eq!(keyword(word), Some(expected), "{word}");
                assert_eq!(keyword(&word.to_lowercase()), Some(expected), "{word}");
                assert_eq!(keyword(&format!(" \"{word}\"!\r\n")), Some(expected), "{word}");
            }
        }
    }

    #[test]
    fn case_spaces_and_punctuation_are_ignored() {
        for text in [
            "Stop!",
            "\"STOP\".",
            "  stop  ",
            "\tsToP\n",
            "«Stop»",
            "(stop)",
            "¡stop!",
            "*stop*",
            "stop…",
            "“Stop”",
            "STOP 🛑",
            "\u{feff}stop\u{200b}",
            "stop\u{a0}all",
            "Stop \n  All.",
            "opt-out",
            "opt\u{2011}out",
            "Opt – out",
            "arrêt",
            "arre\u{302}t",
            "ARRE\u{302}T",
            "Arret.",
            "ｓｔｏｐ",
            "ＳＴＯＰ！",
            "ＯＰＴ－ＯＵＴ",
            "ＳＴＯＰ\u{3000}ＡＬＬ",
            "ſtop",
            "ﬆop",
        ] {
            assert_eq!(keyword(text), Some(Keyword::Stop), "{text:?}");
        }
        assert_eq!(keyword("Help?"), Some(Keyword::Help));
        assert_eq!(keyword("un-stop"), None);
    }

    #[test]
    fn keywords_among_other_words_are_ignored() {
        for text in [
            "",
            " ",
            "!?",
            "please stop",
            "stop it",
            "stop stop",
            "don't stop",
            "all stop",
            "stopping",
            "stop1",
            "1 stop",
            "s t o p",
            "s.t.o.p",
            "STOP START",
            "opt out please",
            "arrête",
            "arrèt",
            "arre\u{300}t",
            "the end",
            "informer",
            // Cyrillic and mathematical lookalikes.
            "ЅТОР",
            "𝐒𝐓𝐎𝐏",
            "停止",
        ] {
            assert_eq!(keyword(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn surrounding_punctuation_is_ignored(before in "[ .,!\"'()\n-]{0,9}", after in "[ .,!?\n-]{0,9}") {
            prop_assert_eq!(keyword(&format!("{before}Stop{after}")), Some(Keyword::Stop));
        }

        #[test]
        fn any_text_is_parsed_without_panic(text: String) {
            let _ = keyword(&text);
        }
    }
}
