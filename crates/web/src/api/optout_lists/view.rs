//! How opt-out lists and the numbers on them look in answers.

use crate::import;
use crate::view::{shown, shown_if};
use heliograph_domain::account::Mode;
use heliograph_domain::id::{InboundId, OptoutListId};
use heliograph_domain::optout::{Optout, OptoutList, Source};
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::uuid;

/// A list of numbers that messages which enforce it are not sent to.
#[derive(Serialize, ToSchema)]
#[schema(as = OptoutList)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListView {
    /// Its id.
    #[serde(serialize_with = "shown")]
    id: OptoutListId,
    /// What you call it.
    name: String,
    /// Whether it is the default list: the one that single messages enforce.
    default: bool,
    #[schema(value_type = Mode)]
    mode: &'static str,
    /// When it was made.
    #[serde(serialize_with = "shown")]
    created_at: Timestamp,
}

impl ListView {
    pub(crate) fn sample() -> Self {
        Self {
            id: OptoutListId(uuid!("01a1fd13-f90c-7f31-93c4-53a4d7a2c0de")),
            name: "Newsletter".to_owned(),
            default: false,
            mode: Mode::Live.name(),
            created_at: Timestamp(1_795_247_307_020),
        }
    }

    pub(crate) fn of(l: &OptoutList) -> Self {
        Self {
            id: l.id,
            name: l.name.clone(),
            default: l.standard,
            mode: l.mode.name(),
            created_at: l.created_at,
        }
    }
}

/// A number on a list, with the evidence.
#[derive(Serialize, ToSchema)]
#[schema(as = Optout)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NumberView {
    /// Who wants nothing more.
    #[serde(serialize_with = "shown")]
    number: Recipient,
    #[schema(value_type = Source)]
    source: &'static str,
    /// The message in which they said so.
    #[serde(serialize_with = "shown_if")]
    inbound_message_id: Option<InboundId>,
    /// To whom they said so: the number that they wrote to.
    originator: Option<String>,
    /// What whoever added it wrote down.
    note: Option<String>,
    /// Since when it is there.
    #[serde(serialize_with = "shown")]
    created_at: Timestamp,
}

impl NumberView {
    pub(crate) fn sample() -> Self {
        Self {
            number: Recipient(447_700_900_123),
            source: Source::Reply.name(),
            inbound_message_id: Some(InboundId(uuid!("01a1fd14-0a04-7bdd-8caa-a6c27b412260"))),
            originator: Some("447700900000".to_owned()),
            note: None,
            created_at: Timestamp(1_795_247_311_364),
        }
    }

    pub(crate) fn of(o: &Optout) -> Self {
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

/// What became of a file.
#[derive(Serialize, ToSchema)]
#[schema(as = OptoutImport)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Imported {
    /// Rows whose number is on the list now.
    pub(crate) added: usize,
    /// Rows whose number was there already, or stands in the file twice.
    pub(crate) already_listed: usize,
    /// Rows that can't be used.
    pub(crate) invalid: usize,
    /// The first 1,000 of those.
    pub(crate) errors: Vec<import::RowError>,
}

impl Imported {
    pub(crate) fn sample() -> Self {
        let errors = vec![import::RowError::sample()];
        Self { added: 1, already_listed: 1, invalid: 1, errors }
    }
}
