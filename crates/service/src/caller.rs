//! The caller: whose request it is, and what it may do.

use crate::error::{Error, Result};
use heliograph_domain::account::{Mode, Scope, Scopes};
use heliograph_domain::id::{AccountId, ApiKeyId, OptoutListId};

/// Who calls, by a key or in the dashboard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The account.
    pub account: AccountId,
    /// What it sees.
    pub mode: Mode,
    /// What it may do.
    pub scopes: Scopes,
    /// The key; none when a person asks in the dashboard.
    pub key: Option<ApiKeyId>,
    /// The account's currency, ISO 4217.
    pub currency: String,
    /// The account's default opt-out list in this mode, which is the same for good.
    pub optout_list: OptoutListId,
}

impl Caller {
    /// Refuses what the key may not do.
    ///
    /// # Errors
    /// [`Error::Scope`].
    pub fn needs(&self, scope: Scope) -> Result<()> {
        if self.scopes.allow(scope) { Ok(()) } else { Err(Error::Scope(scope.name())) }
    }
}
