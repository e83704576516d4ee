//! The share of each account in what a node can serve at a time, so that no account can use up the
//! places and the memory of the others.

use crate::error::Problem;
use heliograph_domain::id::AccountId;
use heliograph_http::{UsageLimit, UsageShare};

/// The memory for request bodies of one account that are being received, in bytes.
const MAX_BODY_MEMORY: usize = 64 << 20;

/// Counts the open requests of each account, and the memory that their bodies may need.
#[derive(Debug, Default)]
pub(crate) struct AccountShares {
    requests: UsageLimit<AccountId>,
    memory: UsageLimit<AccountId>,
}

/// The share of one request of an account; it is freed when this is dropped.
#[derive(Debug)]
pub(crate) struct AccountShare {
    account: AccountId,
    memory: UsageLimit<AccountId>,
    _request: UsageShare<AccountId>,
}

impl AccountShares {
    /// Counts a request of an account that may have `max` open requests.
    pub(crate) fn open(&self, account: AccountId, max: usize) -> Result<AccountShare, Problem> {
        let request = self.requests.try_acquire(account, 1, max);
        let request = request.ok_or_else(Problem::too_many_open_requests)?;
        Ok(AccountShare { account, memory: self.memory.clone(), _request: request })
    }
}

impl AccountShare {
    /// Counts a body of at most this many bytes.
    pub(crate) fn memory(&self, length: usize) -> Result<UsageShare<AccountId>, Problem> {
        let memory = self.memory.try_acquire(self.account, length, MAX_BODY_MEMORY);
        memory.ok_or_else(Problem::too_many_open_requests)
    }
}
