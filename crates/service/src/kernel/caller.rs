//! The authenticated caller of a request.

use crate::kernel::error::{Error, Result};
use heliograph_domain::account::{Mode, Scope, Scopes};
use heliograph_domain::id::{AccountId, ApiKeyId, OptoutListId, UserId};

/// The account, mode and permissions of a request made by an API key or in the dashboard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The account.
    pub account: AccountId,
    /// The mode (live or test) that the caller works in.
    pub mode: Mode,
    /// The permissions.
    pub scopes: Scopes,
    /// The API key; `None` for requests of the dashboard.
    pub key: Option<ApiKeyId>,
    /// The user of the dashboard; `None` for API keys.
    pub user: Option<UserId>,
    /// The account's currency, ISO 4217.
    pub currency: String,
    /// The account's default opt-out list in this mode; it never changes.
    pub optout_list: OptoutListId,
}

impl Caller {
    /// Returns [`Error::Scope`] unless the caller has this scope.
    pub fn require_scope(&self, scope: Scope) -> Result<()> {
        if self.scopes.allow(scope) { Ok(()) } else { Err(Error::Scope(scope.name())) }
    }
}
