//! Opt-outs: lists of numbers that must not receive messages, with the evidence for each.

use crate::account::Mode;
use crate::id::{AccountId, InboundId, OptoutListId};
use crate::phone::Recipient;
use crate::time::Timestamp;

/// The name of the list that every account has from the start, in each mode.
pub const DEFAULT_LIST: &str = "default";

/// A list of numbers that receive no messages which enforce this list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptoutList {
    /// The id.
    pub id: OptoutListId,
    /// The account that owns the list.
    pub account: AccountId,
    /// The mode in which the list applies.
    pub mode: Mode,
    /// The name given by the account.
    pub name: String,
    /// True if this is the default list of the account in its mode, which single messages enforce.
    pub standard: bool,
    /// When the list was created.
    pub created_at: Timestamp,
}

/// The source of an opt-out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptoutSource {
    /// The person replied STOP.
    Reply,
    /// The number was added through the API or the dashboard.
    Api,
    /// The number was imported from a file.
    Import,
}

impl OptoutSource {
    /// Returns the stored code.
    pub const fn code(self) -> i16 {
        match self {
            Self::Reply => 1,
            Self::Api => 2,
            Self::Import => 3,
        }
    }

    /// Returns the value of a stored code.
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            1 => Some(Self::Reply),
            2 => Some(Self::Api),
            3 => Some(Self::Import),
            _ => None,
        }
    }

    /// Returns the name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::Api => "api",
            Self::Import => "import",
        }
    }
}

/// A number on an opt-out list, with the evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Optout {
    /// The number that opted out.
    pub number: Recipient,
    /// The source of the opt-out.
    pub source: OptoutSource,
    /// The inbound message that opted out.
    pub message: Option<InboundId>,
    /// The number that the inbound message was sent to.
    pub originator: Option<String>,
    /// The note of the user who added the number.
    pub note: Option<String>,
    /// When the number opted out.
    pub at: Timestamp,
}
