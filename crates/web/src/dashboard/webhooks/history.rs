//! What an endpoint was told, as its page shows it.

use crate::dashboard::moment;
use crate::dashboard::webhooks::trial::took;
use axum::http::Uri;
use heliograph_domain::id::EventId;
use heliograph_domain::time::Timestamp;
use heliograph_service::webhooks::history::{self, About, Show, Standing};
use uuid::Uuid;

/// How much of an answer's body stands in a list, in characters.
const GLIMPSE: usize = 400;

/// Which deliveries are asked for in an address.
#[derive(Clone, Copy, Default)]
pub(super) struct Wanted(Option<Show>);

impl From<Show> for Wanted {
    fn from(show: Show) -> Self {
        Self(Some(show))
    }
}

impl Wanted {
    const ALL: Show = Show::All(EventId(Uuid::max()));
    const FAILED: Show = Show::Failed(Timestamp(i64::MAX));

    /// From `?show=…&before=…`; what can't be read is left out.
    pub(super) fn of(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default().as_bytes();
        let of = |name: &str| {
            let mut fields = url::form_urlencoded::parse(query);
            fields.find(|(n, _)| n == name).map(|(_, value)| value.into_owned())
        };
        let before = of("before").unwrap_or_default();
        Self(match of("show").as_deref() {
            Some("failed") => {
                Some(before.parse().map_or(Self::FAILED, |t| Show::Failed(Timestamp(t))))
            }
            Some("waiting") => Some(Show::Waiting),
            _ => before.parse().ok().map(Show::All),
        })
    }

    pub(super) fn show(self) -> Show {
        self.0.unwrap_or(Self::ALL)
    }

    /// The name of the filter.
    pub(super) fn name(self) -> &'static str {
        match self.show() {
            Show::All(_) => "all",
            Show::Failed(_) => "failed",
            Show::Waiting => "waiting",
        }
    }

    fn is_first(self) -> bool {
        let show = self.show();
        show == Self::ALL || show == Self::FAILED || show == Show::Waiting
    }

    /// The page's address, below the endpoint's.
    pub(super) fn address(self, path: &str) -> String {
        match self.show() {
            show if show == Self::ALL => path.to_owned(),
            Show::All(before) => format!("{path}?before={before}"),
            show if show == Self::FAILED => format!("{path}?show=failed"),
            Show::Failed(before) => format!("{path}?show=failed&before={}", before.millis()),
            Show::Waiting => format!("{path}?show=waiting"),
        }
    }

    /// The address of the first page; empty when this is it.
    pub(super) fn newest(self, path: &str) -> String {
        match self.show() {
            _ if self.is_first() => String::new(),
            Show::Failed(_) => Self(Some(Self::FAILED)).address(path),
            _ => path.to_owned(),
        }
    }
}

/// One event on its way to the endpoint.
pub(super) struct Delivery {
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) test: bool,
    pub(super) state: &'static str,
    pub(super) state_text: &'static str,
    pub(super) at: (String, String),
    pub(super) about: String,
    pub(super) about_href: String,
    pub(super) next: Option<(String, String)>,
    pub(super) attempts: Vec<Attempt>,
}

/// One attempt at it.
pub(super) struct Attempt {
    pub(super) state: &'static str,
    pub(super) text: String,
    pub(super) at: (String, String),
    pub(super) took: String,
    pub(super) answer: String,
}

/// A delivery as the page shows it.
pub(super) fn view(d: history::Delivery) -> Delivery {
    let (state, state_text) = match d.standing {
        Standing::Taken => ("good", "Taken"),
        Standing::Waiting => ("waiting", "Waiting"),
        Standing::Retrying => ("pending", "Retrying"),
        Standing::Failed => ("bad", "Failed"),
        Standing::Untold => ("bad", "Not sent"),
    };
    let (about, about_href) = match d.about {
        Some(About::Message(id, to)) => (format!("a message to +{to}"), format!("/messages/{id}")),
        Some(About::Received(from)) if from.bytes().all(|b| b.is_ascii_digit()) => {
            (format!("a message from +{from}"), format!("/conversations/{from}"))
        }
        Some(About::Received(from)) => (format!("a message from {from}"), String::new()),
        None => (String::new(), String::new()),
    };
    Delivery {
        id: d.event.id.to_string(),
        kind: d.event.kind.name(),
        test: d.event.test,
        state,
        state_text,
        at: moment::day_and_clock(d.event.at),
        about,
        about_href,
        next: d.next.filter(|due| due.millis() > 0).map(moment::day_and_clock),
        attempts: d.attempts.into_iter().map(attempt).collect(),
    }
}

fn attempt(a: history::Attempt) -> Attempt {
    let good = (200..300).contains(&a.outcome);
    Attempt {
        state: if good { "good" } else { "failed" },
        text: a.detail.unwrap_or_else(|| format!("it answered {}", a.outcome)),
        at: moment::day_and_clock(a.at),
        took: took(a.duration),
        answer: a.body.unwrap_or_default().chars().take(GLIMPSE).collect(),
    }
}
