//! The JSON representation of opt-out lists and their numbers.

use crate::response::{as_string, as_string_opt};
use heliograph_domain::account::Mode;
use heliograph_domain::id::{InboundId, OptoutListId};
use heliograph_domain::optout::{Optout, OptoutList, OptoutSource};
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use heliograph_service::audience::number_file::RowError;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::uuid;

/// An opt-out list: numbers that must not be sent to.
#[derive(Serialize, ToSchema)]
#[schema(as = OptoutList)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OptoutListView {
    /// The id of the list.
    #[serde(serialize_with = "as_string")]
    id: OptoutListId,
    /// The name of the list.
    name: String,
    /// True for the default list, which applies to single messages.
    default: bool,
    #[schema(value_type = Mode)]
    mode: &'static str,
    /// The time at which the list was created.
    #[serde(serialize_with = "as_string")]
    created_at: Timestamp,
}

impl OptoutListView {
    pub(crate) fn sample() -> Self {
        Self {
            id: OptoutListId(uuid!("01a1fd13-f90c-7f31-93c4-53a4d7a2c0de")),
            name: "Newsletter".to_owned(),
            default: false,
            mode: Mode::Live.name(),
            created_at: Timestamp(1_795_247_307_020),
        }
    }

    pub(crate) fn new(l: &OptoutList) -> Self {
        Self {
            id: l.id,
            name: l.name.clone(),
            default: l.standard,
            mode: l.mode.name(),
            created_at: l.created_at,
        }
    }
}

/// A number on an opt-out list, with the record of its opt-out.
#[derive(Serialize, ToSchema)]
#[schema(as = Optout)]
#[serde(rename_all = "camelCase")]
pub struct OptoutView {
    /// The number that opted out.
    #[serde(serialize_with = "as_string")]
    number: Recipient,
    #[schema(value_type = OptoutSource)]
    source: &'static str,
    /// The id of the inbound message with the opt-out, if it was a reply.
    #[serde(serialize_with = "as_string_opt")]
    inbound_message_id: Option<InboundId>,
    /// The number that the reply was sent to, if it was a reply.
    originator: Option<String>,
    /// The note that was given when the number was added.
    note: Option<String>,
    /// The time at which the number was added.
    #[serde(serialize_with = "as_string")]
    created_at: Timestamp,
}

impl OptoutView {
    pub(crate) fn sample() -> Self {
        Self {
            number: Recipient(447_700_900_123),
            source: OptoutSource::Reply.name(),
            inbound_message_id: Some(InboundId(uuid!("01a1fd14-0a04-7bdd-8caa-a6c27b412260"))),
            originator: Some("447700900000".to_owned()),
            note: None,
            created_at: Timestamp(1_795_247_311_364),
        }
    }

    /// Returns the representation of an entry.
    pub fn new(o: &Optout) -> Self {
        Self {
            number: o.number,
            source: o.source.name(),
            inbound_message_id: o.message,
            originator: o.originator.clone(),
            note: o.note.clone(),
            created_at: o.at,
        }
    }
}

/// The result of an import.
#[derive(Serialize, ToSchema)]
#[schema(as = OptoutImport)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OptoutImportView {
    /// The number of rows whose number was added.
    pub(crate) added: usize,
    /// The number of rows whose number was already on the list, or is a duplicate within the file.
    pub(crate) already_listed: usize,
    /// The number of invalid rows.
    pub(crate) invalid: usize,
    /// The first 1,000 invalid rows.
    pub(crate) errors: Vec<RowErrorView>,
}

impl OptoutImportView {
    pub(crate) fn sample() -> Self {
        let errors = vec![RowErrorView::sample()];
        Self { added: 1, already_listed: 1, invalid: 1, errors }
    }
}

/// An invalid row of a CSV file.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = RowError)]
pub(crate) struct RowErrorView {
    /// The line number in the file, starting at 1.
    row: u64,
    /// The first 50 characters of the invalid number.
    number: String,
    /// An explanation of the error for people.
    detail: String,
}

impl RowErrorView {
    pub(crate) fn sample() -> Self {
        let detail = "the number has too few digits: include the country and area code";
        Self { row: 4, number: "12".to_owned(), detail: detail.to_owned() }
    }
}

impl From<RowError> for RowErrorView {
    fn from(error: RowError) -> Self {
        Self { row: error.row, number: error.number, detail: error.detail }
    }
}
