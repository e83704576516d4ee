//! The filters of the message list, as query parameters.

use crate::error_page::PageError;
use crate::form::{FieldErrors, Form};
use axum::http::Uri;
use heliograph_domain::id::MessageId;
use heliograph_domain::time::Timestamp;
use heliograph_domain::wording::sentence;
use heliograph_service::messaging::messages::MessageFilter;
use std::str::FromStr;

const BAD_TIME: &str = "Enter a date and time, such as 2026-11-20T09:00.";
const EMPTY_PERIOD: &str = "Must be later than “Sent after”.";

/// The filters as typed, with their errors.
pub(crate) struct MessageListQuery {
    pub(crate) status: String,
    pub(crate) recipient: String,
    pub(crate) reference: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) errors: FieldErrors,
    /// Whether any filter is set.
    pub(crate) any: bool,
    /// The parsed filter; `None` when a field is invalid.
    pub(crate) filter: Option<MessageFilter>,
    /// The last message of the previous page.
    pub(crate) before: Option<MessageId>,
}

impl MessageListQuery {
    pub(crate) fn read(uri: &Uri) -> Result<Self, PageError> {
        let form = Form::read(uri.query().unwrap_or_default().as_bytes())?;
        let before = Some(form.text("before")).filter(|text| !text.is_empty()).map(str::parse);
        let mut errors = FieldErrors::default();
        let filter = MessageFilter {
            statuses: field(&form, "status", &mut errors, parsed).into_iter().collect(),
            recipient: field(&form, "recipient", &mut errors, parsed),
            reference: Some(form.text("reference")).filter(|r| !r.is_empty()).map(str::to_owned),
            originator: None,
            campaign: None,
            from: field(&form, "from", &mut errors, timestamp),
            to: field(&form, "to", &mut errors, timestamp),
        };
        if filter.from.zip(filter.to).is_some_and(|(from, to)| to <= from) {
            errors.add("to", EMPTY_PERIOD);
        }
        let text = |name| form.text(name).to_owned();
        Ok(Self {
            status: text("status"),
            recipient: text("recipient"),
            reference: text("reference"),
            from: text("from"),
            to: text("to"),
            any: filter != MessageFilter::default() || !errors.is_empty(),
            filter: errors.is_empty().then_some(filter),
            errors,
            before: before.transpose().map_err(|_| PageError::not_found())?,
        })
    }

    /// Returns whether a filter under “More filters” is set.
    pub(crate) fn has_advanced(&self) -> bool {
        [&self.reference, &self.from, &self.to].iter().any(|value| !value.is_empty())
    }

    /// Returns the URL of the page with these filters that begins after the message `before`.
    pub(crate) fn url(&self, before: Option<MessageId>) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let fields = [
            ("status", &self.status),
            ("recipient", &self.recipient),
            ("reference", &self.reference),
            ("from", &self.from),
            ("to", &self.to),
        ];
        for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
            query.append_pair(name, value);
        }
        if let Some(before) = before {
            query.append_pair("before", &before.to_string());
        }
        let query = query.finish();
        if query.is_empty() { "/messages".to_owned() } else { format!("/messages?{query}") }
    }
}

/// Reads an optional field.
fn field<T>(
    form: &Form,
    name: &'static str,
    errors: &mut FieldErrors,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Option<T> {
    let text = Some(form.text(name)).filter(|text| !text.is_empty())?;
    read(text).map_err(|why| errors.add(name, why)).ok()
}

fn parsed<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|e: T::Err| sentence(&e.to_string()))
}

/// Reads a UTC date and time as submitted by browsers (`datetime-local`), or an RFC 3339 timestamp.
fn timestamp(text: &str) -> Result<Timestamp, String> {
    let read = text.parse().or_else(|_| format!("{text}Z").parse());
    read.map_err(|_| BAD_TIME.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> MessageListQuery {
        MessageListQuery::read(&format!("/messages{query}").parse().unwrap())
            .map_err(|_| ())
            .unwrap()
    }

    #[test]
    fn filters_round_trip() {
        let query =
            "?status=FAILED&recipient=%2B44+7700+900123&reference=a%26b&from=2026-11-20T09%3A00";
        let read = parse(query);
        let filter = read.filter.as_ref().unwrap();
        assert_eq!(filter.from, "2026-11-20T09:00:00Z".parse().ok());
        assert_eq!(filter.recipient.unwrap().to_string(), "447700900123");
        assert_eq!(read.url(None), format!("/messages{query}"));
        assert!(!parse("").any && parse("").url(None) == "/messages");
    }

    #[test]
    fn invalid_filters_match_nothing() {
        for (query, field) in [
            ("?status=LOST", "status"),
            ("?recipient=077", "recipient"),
            ("?from=yesterday", "from"),
            ("?to=2026-02-30T00:00", "to"),
            ("?from=2026-11-20T09:00&to=2026-11-20T09:00", "to"),
        ] {
            let read = parse(query);
            assert!(read.filter.is_none() && !read.errors.get(field).is_empty(), "{query}");
        }
    }
}
