//! The delivery log of a webhook endpoint.

use crate::format;
use axum::http::Uri;
use heliograph_domain::id::EventId;
use heliograph_domain::time::Timestamp;
use heliograph_domain::wording::{capitalized, deliveries};
use heliograph_service::webhooks::history::{self, DeliveryStatus, EventSubject, HistoryFilter};
use uuid::Uuid;

/// The length of a response body in the log, in characters.
const PREVIEW: usize = 400;

/// The filter and the page of the delivery log, as query parameters.
#[derive(Clone, Copy, Default)]
pub(super) struct DeliveryFilter(Option<HistoryFilter>);

impl From<HistoryFilter> for DeliveryFilter {
    fn from(show: HistoryFilter) -> Self {
        Self(Some(show))
    }
}

impl DeliveryFilter {
    const ALL: HistoryFilter = HistoryFilter::All(EventId(Uuid::max()));
    const FAILED: HistoryFilter = HistoryFilter::Failed(Timestamp(i64::MAX));

    /// Reads `?show=…&before=…`, and ignores invalid values.
    pub(super) fn from_uri(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default().as_bytes();
        let param = |name: &str| {
            let mut fields = url::form_urlencoded::parse(query);
            fields.find(|(n, _)| n == name).map(|(_, value)| value.into_owned())
        };
        let before = param("before").unwrap_or_default();
        Self(match param("show").as_deref() {
            Some("failed") => {
                Some(before.parse().map_or(Self::FAILED, |t| HistoryFilter::Failed(Timestamp(t))))
            }
            Some("pending") => Some(HistoryFilter::Waiting),
            _ => before.parse().ok().map(HistoryFilter::All),
        })
    }

    pub(super) fn show(self) -> HistoryFilter {
        self.0.unwrap_or(Self::ALL)
    }

    /// Returns the name of the filter.
    pub(super) fn name(self) -> &'static str {
        match self.show() {
            HistoryFilter::All(_) => "all",
            HistoryFilter::Failed(_) => "failed",
            HistoryFilter::Waiting => "pending",
        }
    }

    fn is_first(self) -> bool {
        let show = self.show();
        show == Self::ALL || show == Self::FAILED || show == HistoryFilter::Waiting
    }

    /// Returns the URL of the page.
    pub(super) fn url(self, path: &str) -> String {
        match self.show() {
            show if show == Self::ALL => path.to_owned(),
            HistoryFilter::All(before) => format!("{path}?before={before}"),
            show if show == Self::FAILED => format!("{path}?show=failed"),
            HistoryFilter::Failed(before) => {
                format!("{path}?show=failed&before={}", before.millis())
            }
            HistoryFilter::Waiting => format!("{path}?show=pending"),
        }
    }

    /// Returns the URL of the first page; empty on the first page.
    pub(super) fn newest(self, path: &str) -> String {
        match self.show() {
            _ if self.is_first() => String::new(),
            HistoryFilter::Failed(_) => Self(Some(Self::FAILED)).url(path),
            _ => path.to_owned(),
        }
    }
}

/// A delivery in the log.
pub(super) struct DeliveryRow {
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) test: bool,
    pub(super) state: &'static str,
    pub(super) state_text: &'static str,
    pub(super) at: (String, String),
    pub(super) subject: String,
    pub(super) subject_href: String,
    pub(super) next: Option<(String, String)>,
    pub(super) attempts: Vec<AttemptRow>,
    /// The body of the requests, and the id of its element.
    pub(super) payload: String,
    pub(super) payload_id: String,
}

/// A delivery attempt in the log.
pub(super) struct AttemptRow {
    pub(super) state: &'static str,
    pub(super) text: String,
    pub(super) at: (String, String),
    pub(super) duration: String,
    pub(super) response: String,
}

/// Returns a delivery as a row of the log.
pub(super) fn row(d: history::WebhookDelivery) -> DeliveryRow {
    let (state, state_text) = match d.status {
        DeliveryStatus::Delivered => ("good", "Delivered"),
        DeliveryStatus::Pending => ("waiting", "Pending"),
        DeliveryStatus::Retrying => ("pending", "Retrying"),
        DeliveryStatus::Failed => ("bad", "Failed"),
        DeliveryStatus::NotSent => ("bad", "Not sent"),
    };
    let (subject, subject_href) = match d.about {
        Some(EventSubject::Message(id, to)) => {
            (format!("Message to +{to}"), format!("/messages/{id}"))
        }
        Some(EventSubject::Received(from)) if from.bytes().all(|b| b.is_ascii_digit()) => {
            (format!("Message from +{from}"), format!("/conversations/{from}"))
        }
        Some(EventSubject::Received(from)) => (format!("Message from {from}"), String::new()),
        None => (String::new(), String::new()),
    };
    DeliveryRow {
        id: d.event.id.to_string(),
        kind: d.event.kind.name(),
        test: d.event.test,
        state,
        state_text,
        at: format::date_time(d.event.at),
        subject,
        subject_href,
        next: d.next.filter(|due| due.millis() > 0).map(format::date_time),
        attempts: d.attempts.into_iter().map(attempt).collect(),
        payload: d.payload,
        payload_id: format!("payload-{}", d.event.id),
    }
}

fn attempt(a: history::DeliveryAttempt) -> AttemptRow {
    let text = deliveries::outcome(a.outcome, a.detail.as_deref().unwrap_or_default());
    AttemptRow {
        state: if a.outcome.is_success() { "good" } else { "failed" },
        text: capitalized(&text),
        at: format::date_time(a.at),
        duration: format::millis(a.duration),
        response: a.body.unwrap_or_default().chars().take(PREVIEW).collect(),
    }
}
