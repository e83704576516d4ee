//! Opt-outs: who wants nothing more, on which list, and how that is known.

use crate::account::Mode;
use crate::id::{AccountId, InboundId, OptoutListId};
use crate::phone::Recipient;
use crate::time::Timestamp;

/// The name of the list that each account has from the beginning, in each mode.
pub const STANDARD: &str = "default";

/// A list of numbers that messages which enforce it are not sent to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptoutList {
    /// Its id.
    pub id: OptoutListId,
    /// Whose it is.
    pub account: AccountId,
    /// In which world it holds.
    pub mode: Mode,
    /// What its owner calls it.
    pub name: String,
    /// Whether it is the account's default in its mode: the one that single sends enforce.
    pub standard: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

/// How an opt-out came about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The person wrote STOP.
    Reply,
    /// By the API.
    Api,
    /// From a file.
    Import,
}

impl Source {
    /// As stored.
    pub const fn code(self) -> i16 {
        match self {
            Self::Reply => 1,
            Self::Api => 2,
            Self::Import => 3,
        }
    }

    /// From the stored form.
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            1 => Some(Self::Reply),
            2 => Some(Self::Api),
            3 => Some(Self::Import),
            _ => None,
        }
    }

    /// As on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::Api => "api",
            Self::Import => "import",
        }
    }
}

/// One number on a list, with the evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Optout {
    /// Who wants nothing more.
    pub number: Recipient,
    /// How that is known.
    pub source: Source,
    /// The message in which they said so.
    pub message: Option<InboundId>,
    /// To whom they said so: the number that they wrote to.
    pub originator: Option<String>,
    /// What whoever added it wrote down.
    pub note: Option<String>,
    /// Since when.
    pub at: Timestamp,
}
