//! Characters outside the GSM alphabet (non-GSM characters): their positions in a text, names and
//! replacements. A single one forces the whole text into UCS-2, which more than halves the
//! characters per part.

use crate::text::gsm7;

/// A span of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Span<'a> {
    /// All characters are in the GSM alphabet.
    Gsm(&'a str),
    /// No character is in the GSM alphabet, so the whole text is sent as UCS-2.
    NonGsm(&'a str),
}

/// Characters that word processors and web pages insert, with their names and GSM replacements;
/// sorted by character.
#[rustfmt::skip]
const KNOWN: &[(char, &str, &str)] = &[
    ('\t', "tab", " "),
    ('`', "grave accent", "'"),
    ('\u{a0}', "no-break space", " "),
    ('«', "left angle quotation mark", "\""),
    ('\u{ad}', "soft hyphen", ""),
    ('´', "acute accent", "'"),
    ('·', "middle dot", "."),
    ('»', "right angle quotation mark", "\""),
    ('½', "one half", "1/2"),
    ('×', "multiplication sign", "x"),
    ('\u{2002}', "en space", " "),
    ('\u{2003}', "em space", " "),
    ('\u{2009}', "thin space", " "),
    ('\u{200a}', "hair space", " "),
    ('\u{200b}', "zero-width space", ""),
    ('\u{2010}', "hyphen", "-"),
    ('\u{2011}', "no-break hyphen", "-"),
    ('\u{2012}', "figure dash", "-"),
    ('–', "en dash", "-"),
    ('—', "em dash", "-"),
    ('\u{2015}', "horizontal bar", "-"),
    ('‘', "left single quotation mark", "'"),
    ('’', "right single quotation mark", "'"),
    ('‚', "low single quotation mark", "'"),
    ('‛', "reversed single quotation mark", "'"),
    ('“', "left double quotation mark", "\""),
    ('”', "right double quotation mark", "\""),
    ('„', "low double quotation mark", "\""),
    ('‟', "reversed double quotation mark", "\""),
    ('•', "bullet", "-"),
    ('…', "ellipsis", "..."),
    ('\u{2028}', "line separator", "\n"),
    ('\u{2029}', "paragraph separator", "\n"),
    ('\u{202f}', "narrow no-break space", " "),
    ('′', "prime", "'"),
    ('″', "double prime", "\""),
    ('‹', "left single angle quotation mark", "'"),
    ('›', "right single angle quotation mark", "'"),
    ('⁄', "fraction slash", "/"),
    ('™', "trade mark sign", "(TM)"),
    ('−', "minus sign", "-"),
    ('\u{feff}', "zero-width no-break space", ""),
];

fn known(c: char) -> Option<(&'static str, &'static str)> {
    let at = KNOWN.binary_search_by_key(&c, |(known, ..)| *known).ok()?;
    KNOWN.get(at).map(|(_, name, plain)| (*name, *plain))
}

/// Returns the name of a character that is often inserted unintentionally.
pub fn char_name(c: char) -> Option<&'static str> {
    known(c).map(|(name, _)| name)
}

/// Returns the equivalent in the GSM alphabet, if any; it may be empty.
pub fn replacement(c: char) -> Option<&'static str> {
    known(c).map(|(_, plain)| plain)
}

/// Replaces all characters that have a replacement.
pub fn replace_all(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for c in text.chars() {
        match replacement(c) {
            Some(plain) => all.push_str(plain),
            None => all.push(c),
        }
    }
    all
}

/// Splits a text into alternating spans of both kinds. Adjacent non-GSM characters stay together,
/// because an emoji may consist of several.
pub fn spans(text: &str) -> Vec<Span<'_>> {
    let is_non_gsm = |c: char| gsm7::septets(c).is_none();
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = is_non_gsm(first);
        let end = rest.find(|c| is_non_gsm(c) != kind).unwrap_or(rest.len());
        let (span, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        all.push(if kind { Span::NonGsm(span) } else { Span::Gsm(span) });
        rest = after;
    }
    all
}

/// Returns the distinct user-perceived characters of a text with a non-GSM character, in order of
/// first occurrence. An emoji with its modifiers is one of them.
pub fn non_gsm_graphemes(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    for grapheme in graphemes(text) {
        if gsm7::count(grapheme).is_none() && !all.contains(&grapheme) {
            all.push(grapheme);
        }
    }
    all
}

/// Splits a text into user-perceived characters: the rules of UAX #29 for emoji, flags and
/// combining marks. Scripts with syllable clusters are split further.
fn graphemes(text: &str) -> Vec<&str> {
    let (mut all, mut begin) = (Vec::new(), 0);
    let mut previous = None;
    let mut regional = 0;
    for (at, c) in text.char_indices() {
        let joins =
            extends(c) || previous == Some(ZERO_WIDTH_JOINER) || (is_regional(c) && regional == 1);
        if at > 0 && !joins {
            all.extend(text.get(begin..at));
            (begin, regional) = (at, 0);
        }
        regional += usize::from(is_regional(c));
        previous = Some(c);
    }
    all.extend(text.get(begin..).filter(|rest| !rest.is_empty()));
    all
}

const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// Returns whether a character belongs to the one before it.
const fn extends(c: char) -> bool {
    matches!(
        c,
        ZERO_WIDTH_JOINER
            | '\u{300}'..='\u{36f}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{1f3fb}'..='\u{1f3ff}'
            | '\u{e0020}'..='\u{e007f}'
    )
}

/// Returns whether a character is one of the two that make a flag.
const fn is_regional(c: char) -> bool {
    matches!(c, '\u{1f1e6}'..='\u{1f1ff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Encoding, measure};
    use proptest::prelude::*;

    #[test]
    fn the_table_is_sorted_and_replacements_are_gsm() {
        assert!(KNOWN.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (c, _, plain) in KNOWN {
            assert!(gsm7::septets(*c).is_none(), "{c:?}");
            assert!(gsm7::count(plain).is_some(), "{plain:?}");
        }
    }

    #[test]
    fn an_emoji_with_its_modifiers_is_one_character() {
        for (text, expected) in [
            ("Hi 👍🏽!", &["👍🏽"][..]),
            ("👩‍👩‍👧 and ❤️", &["👩‍👩‍👧", "❤️"]),
            ("🇬🇧🇸🇬", &["🇬🇧", "🇸🇬"]),
            ("1️⃣ e\u{301} x", &["1️⃣", "e\u{301}"]),
            ("Да, да", &["Д", "а", "д"]),
            ("plain", &[]),
        ] {
            assert_eq!(non_gsm_graphemes(text), expected, "{text}");
        }
    }

    #[test]
    fn non_gsm_characters_are_found_and_named() {
        use Span::{Gsm, NonGsm};
        for (text, expected) in [
            ("", &[][..]),
            ("plain [€]", &[Gsm("plain [€]")]),
            ("it’s", &[Gsm("it"), NonGsm("’"), Gsm("s")]),
            ("“Да”", &[NonGsm("“Да”")]),
            ("hi 👩‍👧 ok", &[Gsm("hi "), NonGsm("👩‍👧"), Gsm(" ok")]),
        ] {
            assert_eq!(spans(text), expected, "{text:?}");
        }
        assert_eq!(non_gsm_graphemes("“a” – “b” 😀"), ["“", "”", "–", "😀"]);
        assert_eq!(
            (char_name('’'), replacement('…')),
            (Some("right single quotation mark"), Some("..."))
        );
        assert_eq!((char_name('😀'), replacement('Д'), char_name('a')), (None, None, None));
    }

    #[test]
    fn replacements_make_a_text_gsm() {
        let typed = "“It’s\u{a0}9–10…”\u{200b}";
        assert_eq!(replace_all(typed), "\"It's 9-10...\"");
        assert_eq!(measure(&replace_all(typed)).encoding, Encoding::Gsm7);
        assert_eq!(replace_all("Да 😀 ç"), "Да 😀 ç");
    }

    proptest! {
        #[test]
        fn spans_alternate_and_cover_the_text(text: String) {
            let all = spans(&text);
            let joined: String = all.iter().map(|s| match s { Span::Gsm(t) | Span::NonGsm(t) => *t }).collect();
            prop_assert_eq!(&joined, &text);
            let kinds: Vec<_> = all.iter().map(|s| matches!(s, Span::NonGsm(_))).collect();
            prop_assert!(kinds.windows(2).all(|pair| pair[0] != pair[1]));
            prop_assert_eq!(non_gsm_graphemes(&text).is_empty(), measure(&text).encoding == Encoding::Gsm7);
            prop_assert!(replace_all(&text).chars().all(|c| replacement(c).is_none()));
        }
    }
}
