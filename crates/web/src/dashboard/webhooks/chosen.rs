//! The kinds of events in a form, as boxes to tick.

use crate::dashboard::form::{Faults, Form};
use heliograph_domain::event::Kind;
use heliograph_domain::webhook::Kinds;

/// Which boxes are ticked, and what is wrong with that.
pub(super) struct Chosen {
    pub(super) delivered: bool,
    pub(super) failed: bool,
    pub(super) received: bool,
    pub(super) error: String,
}

impl Chosen {
    pub(super) const ALL: Self =
        Self { delivered: true, failed: true, received: true, error: String::new() };

    /// As a form has them.
    pub(super) fn typed(form: &Form, faults: &Faults) -> Self {
        let error = faults.of("kinds").to_owned();
        Self { error, ..Self::of(ticked(form)) }
    }

    /// As an endpoint has them.
    pub(super) const fn of(kinds: Kinds) -> Self {
        Self {
            delivered: kinds.has(Kind::MessageDelivered),
            failed: kinds.has(Kind::MessageFailed),
            received: kinds.has(Kind::MessageReceived),
            error: String::new(),
        }
    }
}

fn ticked(form: &Form) -> Kinds {
    form.all("kind").filter_map(Kind::from_name).collect()
}

/// The kinds that were ticked, if there is one.
pub(super) fn kinds(form: &Form, faults: &mut Faults) -> Option<Kinds> {
    let kinds = ticked(form);
    if kinds.names().is_empty() {
        faults.add("kinds", "choose at least one: an endpoint that is told nothing is of no use");
        return None;
    }
    Some(kinds)
}
