//! The checkboxes for event types.

use crate::form::{FieldErrors, Form};
use heliograph_domain::event::EventKind;
use heliograph_domain::webhook::EventKinds;

/// The state of the checkboxes, with an error.
pub(super) struct SelectedKinds {
    pub(super) delivered: bool,
    pub(super) failed: bool,
    pub(super) received: bool,
    pub(super) error: String,
}

impl SelectedKinds {
    pub(super) const ALL: Self =
        Self { delivered: true, failed: true, received: true, error: String::new() };

    /// Reads them from a submitted form.
    pub(super) fn from_form(form: &Form, errors: &FieldErrors) -> Self {
        let error = errors.get("kinds").to_owned();
        Self { error, ..Self::from_kinds(checked(form)) }
    }

    /// Takes them from an endpoint.
    pub(super) const fn from_kinds(kinds: EventKinds) -> Self {
        Self {
            delivered: kinds.contains(EventKind::MessageDelivered),
            failed: kinds.contains(EventKind::MessageFailed),
            received: kinds.contains(EventKind::MessageReceived),
            error: String::new(),
        }
    }
}

fn checked(form: &Form) -> EventKinds {
    form.all("kind").filter_map(EventKind::from_name).collect()
}

/// Returns the selected event types, or adds an error when there are none.
pub(super) fn parse(form: &Form, errors: &mut FieldErrors) -> Option<EventKinds> {
    let kinds = checked(form);
    if kinds.names().is_empty() {
        errors.add("kinds", "Select at least one event type.");
        return None;
    }
    Some(kinds)
}
