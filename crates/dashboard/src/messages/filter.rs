//! The filters of the message list, as query parameters.

use crate::error_page::PageError;
use crate::form::{FieldErrors, Form};
use axum::http::Uri;
use heliograph_domain::id::MessageId;
use heliograph_domain::message::MessageStatus;
use heliograph_domain::time::Timestamp;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::context::Context;
use heliograph_service::messaging::messages::{self, MessageFilter};
use std::time::Duration;
use uuid::Uuid;

const BAD_TIME: &str = "Enter a date and time, such as 2026-11-20T09:00.";
const EMPTY_PERIOD: &str = "Must be later than “Sent after”.";
/// The longest search, in characters.
pub(crate) const SEARCH_LIMIT: usize = 100;
/// The periods before now: in the query string, and as text and duration.
pub(crate) const PERIODS: [(&str, &str, Duration); 3] = [
    ("24h", "Last 24 hours", Duration::from_secs(86_400)),
    ("7d", "Last 7 days", Duration::from_secs(7 * 86_400)),
    ("30d", "Last 30 days", Duration::from_secs(30 * 86_400)),
];

/// The filters as typed, with their errors.
pub(crate) struct MessageListQuery {
    /// A number or part of it, a message ID, a reference, or part of the text.
    pub(crate) search: String,
    pub(crate) status: String,
    /// The name of one of [`PERIODS`]; otherwise empty.
    pub(crate) period: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) errors: FieldErrors,
    /// Whether any filter is set.
    pub(crate) any: bool,
    /// The parsed filter, without the search; `None` when a field is invalid.
    pub(crate) filter: Option<MessageFilter>,
    /// The last message of the previous page.
    pub(crate) before: Option<MessageId>,
}

impl MessageListQuery {
    pub(crate) fn read(uri: &Uri, now: Timestamp) -> Result<Self, PageError> {
        let form = Form::read(uri.query().unwrap_or_default().as_bytes())?;
        let before = Some(form.text("before")).filter(|text| !text.is_empty()).map(str::parse);
        let period = PERIODS.iter().find(|(name, ..)| *name == form.text("period"));
        let mut errors = FieldErrors::default();
        let from = field(&form, "from", &mut errors, timestamp);
        let filter = MessageFilter {
            statuses: field(&form, "status", &mut errors, status).into_iter().collect(),
            from: from.or(period.map(|(.., length)| now.before(*length))),
            to: field(&form, "to", &mut errors, timestamp),
            ..MessageFilter::default()
        };
        if filter.from.zip(filter.to).is_some_and(|(from, to)| to <= from) {
            errors.add("to", EMPTY_PERIOD);
        }
        let text = |name| form.text(name).to_owned();
        let search: String = form.text("q").chars().take(SEARCH_LIMIT).collect();
        let is_filtered = filter != MessageFilter::default() || !errors.is_empty();
        Ok(Self {
            any: is_filtered || !search.is_empty(),
            search,
            status: text("status"),
            period: period.map(|(name, ..)| (*name).to_owned()).unwrap_or_default(),
            from: text("from"),
            to: text("to"),
            filter: errors.is_empty().then_some(filter),
            errors,
            before: before.transpose().map_err(|_| PageError::not_found())?,
        })
    }

    /// Returns whether a filter under “More filters” is set.
    pub(crate) fn has_advanced(&self) -> bool {
        [&self.from, &self.to].iter().any(|value| !value.is_empty())
    }

    /// Returns the URL of the page with these filters that begins after the message `before`.
    pub(crate) fn url(&self, before: Option<MessageId>) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let fields = [
            ("q", &self.search),
            ("status", &self.status),
            ("period", &self.period),
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

/// Adds a search to a filter. A whole number and a whole reference have an index; anything else is
/// searched for in the newest messages, page by page.
pub(crate) async fn with_search(
    cx: &Context,
    caller: &Caller,
    filter: &MessageFilter,
    search: &str,
) -> Result<MessageFilter, PageError> {
    let number = MessageFilter { recipient: search.parse().ok(), ..filter.clone() };
    let reference = MessageFilter { reference: Some(search.to_owned()), ..filter.clone() };
    for exact in [number, reference].into_iter().filter(|exact| exact != filter) {
        let any = MessageFilter { statuses: Vec::new(), from: None, to: None, ..exact.clone() };
        let found = messages::list(cx, caller, &any, MessageId(Uuid::max()), 1).await?;
        if !found.messages.is_empty() {
            return Ok(exact);
        }
    }
    Ok(MessageFilter { search: Some(search.to_owned()), ..filter.clone() })
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

fn status(name: &str) -> Result<MessageStatus, String> {
    name.parse().map_err(|_| "Select one of the statuses.".to_owned())
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
        let uri = format!("/messages{query}").parse().unwrap();
        MessageListQuery::read(&uri, Timestamp(1_795_165_200_000)).map_err(|_| ()).unwrap()
    }

    #[test]
    fn filters_round_trip() {
        let query = "?q=a%26b&status=FAILED&period=7d&to=2026-11-20T09%3A00";
        let read = parse(query);
        let filter = read.filter.as_ref().unwrap();
        assert_eq!(filter.from, "2026-11-13T09:00:00Z".parse().ok());
        assert_eq!(filter.to, "2026-11-20T09:00:00Z".parse().ok());
        assert_eq!(read.search, "a&b");
        assert_eq!(read.url(None), format!("/messages{query}"));
        assert!(!parse("?period=1y").any && parse("").url(None) == "/messages");
    }

    #[test]
    fn invalid_filters_match_nothing() {
        for (query, field) in [
            ("?status=LOST", "status"),
            ("?from=yesterday", "from"),
            ("?to=2026-02-30T00:00", "to"),
            ("?from=2026-11-20T09:00&to=2026-11-20T09:00", "to"),
        ] {
            let read = parse(query);
            assert!(read.filter.is_none() && !read.errors.get(field).is_empty(), "{query}");
        }
    }
}
