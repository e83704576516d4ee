//! Identifiers: UUIDv7 on the wire, 16 bytes in the database.

use crate::time::Timestamp;
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Makes ids. Handed in, so that the rules never touch a random source and tests can repeat a run.
pub trait Ids: Send + Sync + 'static {
    /// A fresh UUIDv7 whose first 48 bits are `at` in milliseconds.
    fn next(&self, at: Timestamp) -> Uuid;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub Uuid);

        impl $name {
            /// The smallest such id of this instant: ids begin with their time.
            pub fn first_at(at: Timestamp) -> Self {
                let millis = u128::try_from(at.millis()).unwrap_or(0) & 0xffff_ffff_ffff;
                Self(Uuid::from_u128(millis << 80))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(s: &str) -> Result<Self, uuid::Error> {
                Uuid::parse_str(s).map(Self)
            }
        }
    )+};
}

ids! {
    /// One message, from the request to its last receipt.
    MessageId,
    /// One API key (not its secret).
    ApiKeyId,
    /// One person who signs in.
    UserId,
    /// One sign-in of a person, from one browser (not its secret).
    SessionId,
    /// One invitation to an account (not its secret).
    InvitationId,
    /// One line of the audit log.
    AuditId,
    /// One event that webhooks tell of: the `webhook-id`, the same at every endpoint and in every attempt.
    EventId,
    /// One message that a person sent to a number of ours.
    InboundId,
    /// One opt-out list.
    OptoutListId,
}

/// An account's number inside one installation. It leads the keys of the hot tables, so it is
/// narrow; it never appears in the API.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AccountId(pub i64);

/// Names one part: whose, of which message, the how manieth.
pub type PartKey = (AccountId, MessageId, u8);

/// A carrier's number inside one installation, given to its configured name for good.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CarrierId(pub i16);

/// A node's number inside one installation: the owner written into leases.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub i32);

/// A webhook endpoint's number inside one installation. It leads the key of the deliveries, so it is narrow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EndpointId(pub i32);

impl fmt::Display for EndpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for CarrierId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
