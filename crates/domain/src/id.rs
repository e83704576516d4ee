//! Identifiers: UUIDv7 for what the API shows (16 bytes in the database), small integers for
//! internal keys.

use crate::time::Timestamp;
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Generates ids. Injected, so that the rules use no random source and tests are reproducible.
pub trait Ids: Send + Sync + 'static {
    /// Returns a new UUIDv7 whose first 48 bits are `at` in milliseconds.
    fn next(&self, at: Timestamp) -> Uuid;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Returns the smallest id of a point in time, because ids sort by their timestamp.
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
    /// The id of a message.
    MessageId,
    /// The id of an API key (not its secret).
    ApiKeyId,
    /// The id of a user, a person who signs in.
    UserId,
    /// The id of a session, one sign-in from one browser (not its secret).
    SessionId,
    /// The id of an invitation to an account (not its secret).
    InvitationId,
    /// The id of an entry of the audit log.
    AuditId,
    /// The id of a webhook event: the `webhook-id` header, the same for every endpoint and every
    /// attempt, so that receivers can use it as an idempotency key.
    EventId,
    /// The id of an inbound message.
    InboundId,
    /// The id of an opt-out list.
    OptoutListId,
}

/// The ID of an account within an installation, by which operators name it: a number that is never
/// used again. It is the leading key column of the busiest tables, so it is small.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AccountId(pub i64);

/// The key of a message part: account, message, and sequence number of the part from 1. The number
/// is 0 for a message of one part, and can be [`ALL_PARTS`].
pub type PartKey = (AccountId, MessageId, u8);

/// The number that stands for all parts of a message of several.
pub const ALL_PARTS: u8 = u8::MAX;

/// The number of a carrier within an installation, assigned permanently to its configured name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CarrierId(pub i16);

/// The number of a node within an installation: the owner of a lease.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub i32);

/// The number of a webhook endpoint within an installation. It is the leading key column of the
/// deliveries, so it is small.
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
