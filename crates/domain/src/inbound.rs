//! Incoming messages: what a person sends, and the few words in it that mean something to us.

use crate::text::Concat;

/// What a person sent, as a carrier hands it over: a whole message, or one part of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Incoming {
    /// Who sent it, as the carrier wrote it: digits without the plus, or an alphanumeric name.
    pub from: String,
    /// The number written to, digits without the plus.
    pub to: String,
    /// The text, decoded and without NUL characters, which PostgreSQL can't store.
    pub text: String,
    /// Which part of which message it is, unless it is a whole one.
    pub concat: Option<Concat>,
    /// The label of the message that it answers. Only a simulated SMSC tells.
    pub label: Option<i64>,
}

/// What a message of one known word asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Keyword {
    /// Nothing more, please.
    Stop,
    /// More again, please.
    Start,
    /// Who are you?
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

    /// As stored.
    pub const fn code(self) -> i16 {
        match self {
            Self::Stop => 1,
            Self::Start => 2,
            Self::Help => 3,
        }
    }

    /// From the stored form.
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            1 => Some(Self::Stop),
            2 => Some(Self::Start),
            3 => Some(Self::Help),
            _ => None,
        }
    }

    /// As on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "STOP",
            Self::Start => "START",
            Self::Help => "HELP",
        }
    }
}

/// The keyword that `text` is: all of it, whatever its case and punctuation. A keyword among other
/// words is none, for "don't stop" is not "stop".
pub fn keyword(text: &str) -> Option<Keyword> {
    let words = words(text);
    let found = Keyword::ALL.iter().find(|(_, list)| list.contains(&words.as_str()));
    found.map(|(keyword, _)| *keyword)
}

/// The words of `text` in capitals, with one space between them: whatever else stands between or
/// around them counts for nothing, which makes OPT OUT of OPT-OUT.
fn words(text: &str) -> String {
    let narrow: String = text.chars().map(narrow).collect();
    // The only letter of the lists that can be written in two ways.
    let capitals = narrow.to_uppercase().replace("E\u{302}", "Ê");
    let words = capitals.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Letters as wide as an ideogram, which East Asian keyboards write, are the same letters.
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
    fn stored_codes_read_back() {
        for (keyword, code, name) in
            [(Keyword::Stop, 1, "STOP"), (Keyword::Start, 2, "START"), (Keyword::Help, 3, "HELP")]
        {
            assert_eq!((keyword.code(), keyword.name()), (code, name));
            assert_eq!(Keyword::from_code(code), Some(keyword));
        }
        assert_eq!([0, 4, -1].map(Keyword::from_code), [None; 3]);
    }

    #[test]
    fn every_word_of_the_lists_is_known() {
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
    fn case_spaces_and_punctuation_count_for_nothing() {
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
    fn a_keyword_among_other_words_is_none() {
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
            // Cyrillic, and a mathematician's.
            "ЅТОР",
            "𝐒𝐓𝐎𝐏",
            "停止",
        ] {
            assert_eq!(keyword(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_surrounds_a_word_changes_nothing(before in "[ .,!\"'()\n-]{0,9}", after in "[ .,!?\n-]{0,9}") {
            prop_assert_eq!(keyword(&format!("{before}Stop{after}")), Some(Keyword::Stop));
        }

        #[test]
        fn anything_is_read(text: String) {
            let _ = keyword(&text);
        }
    }
}
