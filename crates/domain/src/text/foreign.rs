//! Characters that the GSM alphabet lacks: where they stand, what they are called, and what says the same in it.

use crate::text::gsm7;

/// A stretch of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stretch<'a> {
    /// The GSM alphabet has all of it.
    Gsm(&'a str),
    /// The GSM alphabet has none of it: with it, the whole text is sent as UCS-2.
    Foreign(&'a str),
}

/// What people mean by characters that word processors and web pages put in their place, and what they are called.
#[rustfmt::skip]
const KNOWN: &[(char, &str, &str)] = &[
    ('\t', "tabulator", " "),
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

/// What a character is called, if it is one that people write without meaning to.
pub fn name(c: char) -> Option<&'static str> {
    known(c).map(|(name, _)| name)
}

/// What says the same in the GSM alphabet; it may be nothing at all.
pub fn plain(c: char) -> Option<&'static str> {
    known(c).map(|(_, plain)| plain)
}

/// A text with all that has a plain form in it.
pub fn plainly(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for c in text.chars() {
        match plain(c) {
            Some(plain) => all.push_str(plain),
            None => all.push(c),
        }
    }
    all
}

/// A text in stretches, by turns of either kind. Characters that stand together stay so: an emoji may be several.
pub fn stretches(text: &str) -> Vec<Stretch<'_>> {
    let is_foreign = |c: char| gsm7::septets(c).is_none();
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = is_foreign(first);
        let end = rest.find(|c| is_foreign(c) != kind).unwrap_or(rest.len());
        let (stretch, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        all.push(if kind { Stretch::Foreign(stretch) } else { Stretch::Gsm(stretch) });
        rest = after;
    }
    all
}

/// The characters of a text that force it into UCS-2, each once, in the order in which they first stand there.
pub fn culprits(text: &str) -> Vec<char> {
    let mut all = Vec::new();
    for c in text.chars().filter(|c| gsm7::septets(*c).is_none()) {
        if !all.contains(&c) {
            all.push(c);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Encoding, measure};
    use proptest::prelude::*;

    #[test]
    fn the_table_is_in_order_and_leads_into_the_alphabet() {
        assert!(KNOWN.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (c, _, plain) in KNOWN {
            assert!(gsm7::septets(*c).is_none(), "{c:?}");
            assert!(gsm7::count(plain).is_some(), "{plain:?}");
        }
    }

    #[test]
    fn each_culprit_is_marked_and_named() {
        use Stretch::{Foreign, Gsm};
        for (text, expected) in [
            ("", &[][..]),
            ("plain [€]", &[Gsm("plain [€]")]),
            ("it’s", &[Gsm("it"), Foreign("’"), Gsm("s")]),
            ("“Да”", &[Foreign("“Да”")]),
            ("hi 👩‍👧 ok", &[Gsm("hi "), Foreign("👩‍👧"), Gsm(" ok")]),
        ] {
            assert_eq!(stretches(text), expected, "{text:?}");
        }
        assert_eq!(culprits("“a” – “b” 😀"), ['“', '”', '–', '😀']);
        assert_eq!((name('’'), plain('…')), (Some("right single quotation mark"), Some("...")));
        assert_eq!((name('😀'), plain('Д'), name('a')), (None, None, None));
    }

    #[test]
    fn what_has_a_plain_form_can_be_said_plainly() {
        let typed = "“It’s\u{a0}9–10…”\u{200b}";
        assert_eq!(plainly(typed), "\"It's 9-10...\"");
        assert_eq!(measure(&plainly(typed)).encoding, Encoding::Gsm7);
        assert_eq!(plainly("Да 😀 ç"), "Да 😀 ç");
    }

    proptest! {
        #[test]
        fn stretches_are_the_whole_text_by_turns(text: String) {
            let all = stretches(&text);
            let joined: String = all.iter().map(|s| match s { Stretch::Gsm(t) | Stretch::Foreign(t) => *t }).collect();
            prop_assert_eq!(&joined, &text);
            let kinds: Vec<_> = all.iter().map(|s| matches!(s, Stretch::Foreign(_))).collect();
            prop_assert!(kinds.windows(2).all(|pair| pair[0] != pair[1]));
            prop_assert_eq!(culprits(&text).is_empty(), measure(&text).encoding == Encoding::Gsm7);
            prop_assert!(culprits(&plainly(&text)).iter().all(|c| plain(*c).is_none()));
        }
    }
}
