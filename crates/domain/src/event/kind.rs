//! The kinds of events.

/// The kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EventKind {
    /// A message was delivered.
    MessageDelivered,
    /// A message failed and will not be delivered.
    MessageFailed,
    /// An inbound message arrived at a number of the account.
    MessageReceived,
}

impl EventKind {
    /// All kinds, which endpoints can subscribe to.
    pub const ALL: [Self; 3] = [Self::MessageDelivered, Self::MessageFailed, Self::MessageReceived];

    /// Returns the stored code.
    pub const fn code(self) -> i16 {
        match self {
            Self::MessageDelivered => 1,
            Self::MessageFailed => 2,
            Self::MessageReceived => 3,
        }
    }

    /// Returns the value of a stored code.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.code() == code)
    }

    /// Returns the name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MessageDelivered => "message.delivered",
            Self::MessageFailed => "message.failed",
            Self::MessageReceived => "message.received",
        }
    }

    /// Returns the kind of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.name() == name)
    }
}
