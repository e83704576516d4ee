//! What a person filled in, and what is wrong with it.

use crate::dashboard::refusal::Refusal;
use std::collections::BTreeMap;

/// The longest form: a long text and its fields.
pub(crate) const LONGEST: usize = 64 << 10;
/// The most fields.
const MOST: usize = 200;

/// The fields of a form as they were sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads a body.
    pub(crate) fn read(body: &[u8]) -> Result<Self, Refusal> {
        let fields: Vec<_> = url::form_urlencoded::parse(body).take(MOST + 1).collect();
        let clean = |text: &str| !text.contains('\0');
        // What is not UTF-8 was replaced: nobody typed it.
        let replaced: usize = fields.iter().map(|(n, v)| strange(n) + strange(v)).sum();
        if replaced > spelled(body) {
            return Err(Refusal::bad_form());
        }
        if fields.len() > MOST || !fields.iter().all(|(n, v)| clean(n) && clean(v)) {
            return Err(Refusal::bad_form());
        }
        Ok(Self(fields.into_iter().map(|(n, v)| (n.into_owned(), v.into_owned())).collect()))
    }

    /// A field as it was typed; empty when it is not there.
    pub(crate) fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v.as_str())
    }

    /// A field without the spaces around it.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.raw(name).trim()
    }

    /// All values of a field that may stand there several times.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Whether a box is ticked.
    pub(crate) fn ticked(&self, name: &str) -> bool {
        !self.raw(name).is_empty()
    }
}

/// How often the character stands there that is put in the place of what is no text.
fn strange(text: &str) -> usize {
    text.matches('\u{fffd}').count()
}

/// How often somebody did type it: as browsers send it, and as programs may.
fn spelled(body: &[u8]) -> usize {
    let escaped = body.windows(9).filter(|some| some.eq_ignore_ascii_case(b"%ef%bf%bd"));
    let plain = body.windows(3).filter(|some| *some == "\u{fffd}".as_bytes());
    escaped.count() + plain.count()
}

/// What is wrong, by field: said beside it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(BTreeMap<&'static str, String>);

impl Faults {
    /// Notes what is wrong with a field; the first word stands.
    pub(crate) fn add(&mut self, field: &'static str, why: impl Into<String>) {
        self.0.entry(field).or_insert_with(|| why.into());
    }

    /// What is wrong with a field, or nothing.
    pub(crate) fn of(&self, field: &str) -> &str {
        self.0.get(field).map_or("", String::as_str)
    }

    /// Whether all is well.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_it_was_typed() {
        let form = Form::read(b"text=+Hi+%F0%9F%91%8B+&kind=a&kind=b&on=1").unwrap();
        assert_eq!((form.raw("text"), form.text("text")), (" Hi 👋 ", "Hi 👋"));
        assert_eq!(form.all("kind").collect::<Vec<_>>(), ["a", "b"]);
        assert!(form.ticked("on") && !form.ticked("off") && form.raw("none").is_empty());
        assert!(Form::read(b"a=%00").is_err());
        for no_text in [&b"a=%ff%fe"[..], b"a=\xff", b"a=%EF%BF%BD%ff"] {
            assert!(Form::read(no_text).is_err(), "{no_text:?}");
        }
        for typed in ["a=%EF%BF%BD", "a=%ef%bf%bd", "a=\u{fffd}"] {
            assert_eq!(Form::read(typed.as_bytes()).unwrap().raw("a"), "\u{fffd}");
        }
        assert!(Form::read("a=&".repeat(201).as_bytes()).is_err());
    }
}
