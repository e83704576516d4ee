//! Submitted forms and their validation errors.

use crate::error_page::PageError;
use heliograph_domain::fields::IdempotencyKey;
use heliograph_domain::wording::sentence;
use heliograph_service::kernel::idempotency::RequestKey;
use std::collections::BTreeMap;
use std::str::FromStr;

/// The largest body of a form, in bytes.
pub(crate) const MAX_BYTES: usize = 64 << 10;
/// The largest number of fields.
const MAX_FIELDS: usize = 200;

/// The fields of a form, as submitted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// Parses a URL-encoded body.
    pub(crate) fn read(body: &[u8]) -> Result<Self, PageError> {
        let fields: Vec<_> = url::form_urlencoded::parse(body).take(MAX_FIELDS + 1).collect();
        let clean = |text: &str| !text.contains('\0');
        // The decoder replaces bytes that are not UTF-8; users did not type those.
        let replaced: usize = fields.iter().map(|(n, v)| replacements(n) + replacements(v)).sum();
        if replaced > encoded_replacements(body) {
            return Err(PageError::invalid_form());
        }
        if fields.len() > MAX_FIELDS || !fields.iter().all(|(n, v)| clean(n) && clean(v)) {
            return Err(PageError::invalid_form());
        }
        Ok(Self(fields.into_iter().map(|(n, v)| (n.into_owned(), v.into_owned())).collect()))
    }

    /// Returns a field as typed, or an empty string when it is missing.
    pub(crate) fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v.as_str())
    }

    /// Returns a field without surrounding white space.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.raw(name).trim()
    }

    /// Returns all values of a field that may occur several times.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Parses a field; adds an error if it is invalid.
    pub(crate) fn parse<T: FromStr<Err: ToString>>(
        &self,
        name: &'static str,
        errors: &mut FieldErrors,
    ) -> Option<T> {
        let parsed = self.text(name).parse();
        parsed.map_err(|e: T::Err| errors.add(name, sentence(&e.to_string()))).ok()
    }

    /// Parses a field unless it is empty; adds an error if it is invalid.
    pub(crate) fn parse_optional<T: FromStr<Err: ToString>>(
        &self,
        name: &'static str,
        errors: &mut FieldErrors,
    ) -> Option<T> {
        if self.text(name).is_empty() { None } else { self.parse(name, errors) }
    }

    /// Returns the idempotency key of the form. All its submissions are one request, whatever they
    /// contain.
    pub(crate) fn request_key(&self) -> Result<RequestKey, PageError> {
        let id = self.text("idempotency_key").parse().map_err(|_| PageError::invalid_form())?;
        Ok(RequestKey { key: IdempotencyKey::of_form(id), fingerprint: [0; 32] })
    }

    /// Returns whether a checkbox is checked.
    pub(crate) fn is_checked(&self, name: &str) -> bool {
        !self.raw(name).is_empty()
    }
}

/// Counts replacement characters (U+FFFD).
fn replacements(text: &str) -> usize {
    text.matches('\u{fffd}').count()
}

/// Counts replacement characters in the raw body, percent-encoded or plain: the user typed these.
fn encoded_replacements(body: &[u8]) -> usize {
    let escaped = body.windows(9).filter(|some| some.eq_ignore_ascii_case(b"%ef%bf%bd"));
    let plain = body.windows(3).filter(|some| *some == "\u{fffd}".as_bytes());
    escaped.count() + plain.count()
}

/// Validation errors by field, shown next to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldErrors(BTreeMap<&'static str, String>);

impl FieldErrors {
    /// Adds an error of a field; the first error of a field wins.
    pub(crate) fn add(&mut self, field: &'static str, message: impl Into<String>) {
        self.0.entry(field).or_insert_with(|| message.into());
    }

    /// Returns the error of a field, or an empty string.
    pub(crate) fn get(&self, field: &str) -> &str {
        self.0.get(field).map_or("", String::as_str)
    }

    /// Returns whether there are no errors.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heliograph_domain::fields::{ListName, MaxParts, Validity};

    #[test]
    fn forms_are_parsed() {
        let form = Form::read(b"text=+Hi+%F0%9F%91%8B+&kind=a&kind=b&on=1").unwrap();
        assert_eq!((form.raw("text"), form.text("text")), (" Hi 👋 ", "Hi 👋"));
        assert_eq!(form.all("kind").collect::<Vec<_>>(), ["a", "b"]);
        assert!(form.is_checked("on") && !form.is_checked("off") && form.raw("none").is_empty());
        assert!(Form::read(b"a=%00").is_err());
        for invalid in [&b"a=%ff%fe"[..], b"a=\xff", b"a=%EF%BF%BD%ff"] {
            assert!(Form::read(invalid).is_err(), "{invalid:?}");
        }
        for typed in ["a=%EF%BF%BD", "a=%ef%bf%bd", "a=\u{fffd}"] {
            assert_eq!(Form::read(typed.as_bytes()).unwrap().raw("a"), "\u{fffd}");
        }
        assert!(Form::read("a=&".repeat(201).as_bytes()).is_err());
    }

    #[test]
    fn invalid_fields_have_an_error() {
        let form = Form::read(b"seconds=59&parts=+2+&blank=+").unwrap();
        let mut errors = FieldErrors::default();
        assert_eq!(form.parse("parts", &mut errors), MaxParts::try_from(2).ok());
        assert_eq!(form.parse_optional::<Validity>("blank", &mut errors), None);
        assert_eq!(form.parse_optional::<Validity>("missing", &mut errors), None);
        assert!(errors.is_empty());
        assert_eq!(form.parse_optional::<Validity>("seconds", &mut errors), None);
        assert_eq!(form.parse::<ListName>("blank", &mut errors), None);
        assert_eq!(errors.get("seconds"), "The value must be between 60 and 259200.");
        assert_eq!(errors.get("blank"), "The name must not be empty.");
    }

    #[test]
    fn idempotency_key_of_a_form_is_a_uuid() {
        let id = "01a1fd13-fdac-71b5-af6a-ef0fb5c1bcea";
        let form = Form::read(format!("idempotency_key={id}").as_bytes()).unwrap();
        let key = form.request_key().map_err(|_| ()).unwrap().key;
        assert_eq!(key.as_str(), format!("page {id}"));
        assert!(Form::read(b"idempotency_key=x").unwrap().request_key().is_err());
        assert!(Form::default().request_key().is_err());
    }
}
