//! Accounts: live and test mode, roles of members, and scopes of API keys.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The mode of an account's data. Live and test data are separate: an API key sees only its own
/// mode. Test mode is a sandbox: its messages reach only the simulated carrier and cost nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Real messages, which cost money.
    Live,
    /// The sandbox: the simulated carrier, free of charge.
    Test,
}

impl Mode {
    /// Returns the stored code.
    pub const fn code(self) -> i16 {
        match self {
            Self::Live => 0,
            Self::Test => 1,
        }
    }

    /// Returns the value of a stored code.
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::Live),
            1 => Some(Self::Test),
            _ => None,
        }
    }

    /// Returns the name on the wire: `live` or `test`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Test => "test",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The role of a member of an account, from the most to the least powerful.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// May do everything, including adding and removing owners.
    Owner,
    /// Manages API keys, webhooks and members, except owners.
    Admin,
    /// Sends messages and maintains opt-out lists.
    Member,
    /// Has read-only access.
    Viewer,
}

impl Role {
    /// All roles, the most powerful first.
    pub const ALL: [Self; 4] = [Self::Owner, Self::Admin, Self::Member, Self::Viewer];

    /// Returns the stored code.
    pub const fn code(self) -> i16 {
        match self {
            Self::Owner => 0,
            Self::Admin => 1,
            Self::Member => 2,
            Self::Viewer => 3,
        }
    }

    /// Returns the value of a stored code.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.code() == code)
    }

    /// Returns the name: `owner`, `admin`, `member` or `viewer`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Member => "member",
            Self::Viewer => "viewer",
        }
    }

    /// Returns the role of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.name() == name)
    }

    /// Returns whether the role may manage API keys, webhooks and members.
    pub const fn manages(self) -> bool {
        matches!(self, Self::Owner | Self::Admin)
    }

    /// Returns whether the role may give another role to somebody, or take it away: only owners
    /// manage owners.
    pub fn may_give(self, role: Self) -> bool {
        self == Self::Owner || self.manages() && role != Self::Owner
    }

    /// Returns the scopes that the role has in the dashboard, as an API key would.
    pub const fn scopes(self) -> Scopes {
        match self {
            Self::Owner | Self::Admin | Self::Member => Scopes::ALL,
            Self::Viewer => Scopes(Scope::Read.bit()),
        }
    }
}

/// A permission of an API key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Sends messages.
    Send,
    /// Reads data.
    Read,
    /// Changes contacts, lists and campaigns.
    Manage,
}

impl Scope {
    /// All scopes, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Send, Self::Read, Self::Manage];

    /// Returns the name: `send`, `read` or `manage`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Read => "read",
            Self::Manage => "manage",
        }
    }

    const fn bit(self) -> i16 {
        match self {
            Self::Send => 1,
            Self::Read => 2,
            Self::Manage => 4,
        }
    }
}

/// A set of scopes, stored as a bit set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scopes(i16);

impl Scopes {
    /// All scopes: the default of a new API key.
    pub const ALL: Self = Self(7);

    /// Returns the set of stored bits; unknown bits are ignored.
    pub const fn from_bits(bits: i16) -> Self {
        Self(bits & 7)
    }

    /// Returns the bits to store.
    pub const fn bits(self) -> i16 {
        self.0
    }

    /// Returns whether the set contains `scope`.
    pub const fn allow(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Returns the names of the scopes, in listing order.
    pub fn names(self) -> Vec<&'static str> {
        Scope::ALL.into_iter().filter(|s| self.allow(*s)).map(Scope::name).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(all: I) -> Self {
        Self(all.into_iter().fold(0, |bits, s| bits | s.bit()))
    }
}
