//! The filters of the log, as they stand in the address.

use crate::body::sentence;
use crate::dashboard::form::{Faults, Form};
use crate::dashboard::refusal::Refusal;
use axum::http::Uri;
use heliograph_domain::id::MessageId;
use heliograph_domain::time::Timestamp;
use heliograph_service::messages::Filter;
use std::str::FromStr;

const BAD_TIME: &str = "This is no date and time: write it like 2026-11-20T09:00.";
const NO_TIME_BETWEEN: &str = "This must be later than the beginning.";

/// What was typed, and what is wrong with it.
pub(crate) struct Typed {
    pub(crate) status: String,
    pub(crate) recipient: String,
    pub(crate) reference: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) faults: Faults,
    /// Anything was typed.
    pub(crate) any: bool,
    /// What it asks for; nothing when something is wrong.
    pub(crate) filter: Option<Filter>,
    /// What was looked at before this page.
    pub(crate) before: Option<MessageId>,
}

impl Typed {
    pub(crate) fn read(uri: &Uri) -> Result<Self, Refusal> {
        let form = Form::read(uri.query().unwrap_or_default().as_bytes())?;
        let before = Some(form.text("before")).filter(|text| !text.is_empty()).map(str::parse);
        let mut faults = Faults::default();
        let filter = Filter {
            status: field(&form, "status", &mut faults, parsed),
            recipient: field(&form, "recipient", &mut faults, parsed),
            reference: Some(form.text("reference")).filter(|r| !r.is_empty()).map(str::to_owned),
            campaign: None,
            from: field(&form, "from", &mut faults, instant),
            to: field(&form, "to", &mut faults, instant),
        };
        if filter.from.zip(filter.to).is_some_and(|(from, to)| to <= from) {
            faults.add("to", NO_TIME_BETWEEN);
        }
        let text = |name| form.text(name).to_owned();
        Ok(Self {
            status: text("status"),
            recipient: text("recipient"),
            reference: text("reference"),
            from: text("from"),
            to: text("to"),
            any: filter != Filter::default() || !faults.is_empty(),
            filter: faults.is_empty().then_some(filter),
            faults,
            before: before.transpose().map_err(|_| Refusal::not_found())?,
        })
    }

    /// Something was asked for beyond what is always in sight.
    pub(crate) fn is_special(&self) -> bool {
        [&self.reference, &self.from, &self.to].iter().any(|typed| !typed.is_empty())
    }

    /// Where the messages below `before` are that these filters let through.
    pub(crate) fn address(&self, before: Option<MessageId>) -> String {
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

/// A field that may be left out.
fn field<T>(
    form: &Form,
    name: &'static str,
    faults: &mut Faults,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Option<T> {
    let text = Some(form.text(name)).filter(|text| !text.is_empty())?;
    read(text).map_err(|why| faults.add(name, why)).ok()
}

fn parsed<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|e: T::Err| sentence(&e.to_string()))
}

/// A date and time as browsers write them, in UTC; or an instant as the API reads it.
fn instant(text: &str) -> Result<Timestamp, String> {
    let read = text.parse().or_else(|_| format!("{text}Z").parse());
    read.map_err(|_| BAD_TIME.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(query: &str) -> Typed {
        Typed::read(&format!("/messages{query}").parse().unwrap()).map_err(|_| ()).unwrap()
    }

    #[test]
    fn filters_are_read_and_written_back() {
        let query =
            "?status=FAILED&recipient=%2B44+7700+900123&reference=a%26b&from=2026-11-20T09%3A00";
        let read = typed(query);
        let filter = read.filter.as_ref().unwrap();
        assert_eq!(filter.from, "2026-11-20T09:00:00Z".parse().ok());
        assert_eq!(filter.recipient.unwrap().to_string(), "447700900123");
        assert_eq!(read.address(None), format!("/messages{query}"));
        assert!(!typed("").any && typed("").address(None) == "/messages");
    }

    #[test]
    fn wrong_filters_find_nothing() {
        for (query, field) in [
            ("?status=LOST", "status"),
            ("?recipient=077", "recipient"),
            ("?from=yesterday", "from"),
            ("?to=2026-02-30T00:00", "to"),
            ("?from=2026-11-20T09:00&to=2026-11-20T09:00", "to"),
        ] {
            let read = typed(query);
            assert!(read.filter.is_none() && !read.faults.of(field).is_empty(), "{query}");
        }
    }
}
