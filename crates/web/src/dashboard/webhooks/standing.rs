//! How an endpoint stands, in words.

use crate::dashboard::moment;
use heliograph_domain::webhook::{Endpoint, OffReason};

/// Its state as a badge, and as the word on it.
pub(super) const fn state(e: &Endpoint) -> (&'static str, &'static str) {
    match (e.off, e.failing_since) {
        (Some(_), _) => ("off", "Off"),
        (None, Some(_)) => ("bad", "Failing"),
        (None, None) => ("on", "On"),
    }
}

/// Why it is not well, and what to do; empty when it is.
pub(super) fn why(e: &Endpoint) -> String {
    match (e.off, e.failing_since) {
        (Some((since, reason)), _) => {
            let (_, since) = moment::day_and_clock(since);
            let detail = reason.detail();
            let next = match reason {
                OffReason::Owner => "Once it is on again, what it missed can be replayed.",
                _ => "Mend it, send it a test, switch it on again, and replay what it missed.",
            };
            format!("Off since {since}, because {detail}. {next}")
        }
        (None, Some(since)) => {
            let (_, since) = moment::day_and_clock(since);
            format!(
                "It has only failed since {since}. What it did not take is tried again; after five days of failures it \
                 is switched off."
            )
        }
        (None, None) => String::new(),
    }
}
