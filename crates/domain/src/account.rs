//! Accounts: whose a thing is, in which mode, and what a key may do.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Whether a thing is real. A key sees only its own mode; test messages never reach a real carrier
/// and never cost money.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Real messages, real money.
    Live,
    /// The simulated carrier, no money.
    Test,
}

impl Mode {
    /// As stored.
    pub const fn code(self) -> i16 {
        match self {
            Self::Live => 0,
            Self::Test => 1,
        }
    }

    /// From the stored form.
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::Live),
            1 => Some(Self::Test),
            _ => None,
        }
    }

    /// As on the wire: `live` or `test`.
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

/// What a person may do in an account, from all of it down to looking on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// Everything, and who else is an owner.
    Owner,
    /// Keys, webhooks and people, but not the owners.
    Admin,
    /// Sends, and looks after lists.
    Member,
    /// Looks on.
    Viewer,
}

impl Role {
    /// All of them, the mightiest first.
    pub const ALL: [Self; 4] = [Self::Owner, Self::Admin, Self::Member, Self::Viewer];

    /// As stored.
    pub const fn code(self) -> i16 {
        match self {
            Self::Owner => 0,
            Self::Admin => 1,
            Self::Member => 2,
            Self::Viewer => 3,
        }
    }

    /// From the stored form.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.code() == code)
    }

    /// As people write it: `owner`, `admin`, `member`, `viewer`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Member => "member",
            Self::Viewer => "viewer",
        }
    }

    /// From the written form.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.name() == name)
    }

    /// Whether such a person makes keys, webhooks and invitations.
    pub const fn manages(self) -> bool {
        matches!(self, Self::Owner | Self::Admin)
    }

    /// What such a person may do of what keys can do.
    pub const fn scopes(self) -> Scopes {
        match self {
            Self::Owner | Self::Admin | Self::Member => Scopes::ALL,
            Self::Viewer => Scopes(Scope::Read.bit()),
        }
    }
}

/// One thing that a key may be allowed to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Send messages.
    Send,
    /// Read what there is.
    Read,
    /// Change contacts, lists and campaigns.
    Manage,
}

impl Scope {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Send, Self::Read, Self::Manage];

    /// As written by people: `send`, `read`, `manage`.
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

/// The set of things that a key may do, stored as bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scopes(i16);

impl Scopes {
    /// Everything: what a key gets when nothing is said.
    pub const ALL: Self = Self(7);

    /// From the stored bits.
    pub const fn from_bits(bits: i16) -> Self {
        Self(bits & 7)
    }

    /// The bits to store.
    pub const fn bits(self) -> i16 {
        self.0
    }

    /// Whether `scope` is allowed.
    pub const fn allow(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// The names, in order.
    pub fn names(self) -> Vec<&'static str> {
        Scope::ALL.into_iter().filter(|s| self.allow(*s)).map(Scope::name).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(all: I) -> Self {
        Self(all.into_iter().fold(0, |bits, s| bits | s.bit()))
    }
}
