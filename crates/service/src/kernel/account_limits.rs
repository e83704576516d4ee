//! The limits of accounts as this node knows them, so that looking one up costs no query.
//!
//! The whole table of overrides is in memory: it has a row for each limit that the operator has
//! changed. [`refresh`] reads it again every few seconds, because another node or a command may
//! have written it. What accounts have used is counted in memory as well, from figures that are
//! read at most once a minute for each account; several nodes may so exceed a limit by what they
//! accept within that minute.

use crate::kernel::error::{Error, Result};
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::Mode;
use heliograph_domain::account_limit::{AccountLimit, AccountLimits};
use heliograph_domain::id::AccountId;
use heliograph_domain::stats::{HOURS_PER_DAY, Measure, hour_of, hour_start};
use heliograph_domain::time::Timestamp;
use heliograph_store::audience::optouts;
use heliograph_store::identity::{account_limits, accounts};
use heliograph_store::messaging::messages;
use heliograph_store::operations::stats;
use heliograph_store::{Conn, Db, StoreResult};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

/// The time for which the figures of an account are counted on without reading them again.
const USAGE_AGE: Duration = Duration::from_secs(60);
/// The number of accounts whose figures a node keeps; beyond it all are dropped and read again.
const MAX_ACCOUNTS: usize = 10_000;

/// The limits that differ from the defaults, by account.
type Overrides = HashMap<AccountId, HashMap<AccountLimit, u32>>;

/// The limits of all accounts; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct LimitTable(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    defaults: AccountLimits,
    overrides: RwLock<Overrides>,
    usage: Mutex<HashMap<AccountId, AccountUsage>>,
}

/// What an account has used of the limits that are counted for each message.
#[derive(Debug)]
struct AccountUsage {
    read_at: Timestamp,
    test_messages: Count,
    stored_rows: Count,
}

/// A figure and its limit.
#[derive(Debug)]
struct Count {
    /// `None` means no limit.
    max: Option<u32>,
    used: u64,
}

impl Count {
    fn has_room(&self) -> bool {
        self.max.is_none_or(|max| self.used < u64::from(max))
    }
}

impl LimitTable {
    /// Creates the table with the operator's defaults and without overrides.
    pub fn new(defaults: AccountLimits) -> Self {
        Self(Arc::new(Shared { defaults, ..Shared::default() }))
    }

    /// Returns the default of a limit; 0 means no limit.
    pub fn default_of(&self, limit: AccountLimit) -> u32 {
        self.0.defaults.get(limit)
    }

    /// Returns the value that the operator has set for an account; `None` if it has the default.
    pub fn override_of(&self, account: AccountId, limit: AccountLimit) -> Option<u32> {
        self.overrides().get(&account)?.get(&limit).copied()
    }

    /// Returns a limit of an account; `None` means no limit. Limits that only accounts have that
    /// were opened by signing up are for [`LimitTable::max_if`].
    pub fn max(&self, account: AccountId, limit: AccountLimit) -> Option<u32> {
        self.max_if(account, limit, false)
    }

    /// Returns a limit of an account; `None` means no limit.
    pub fn max_if(
        &self,
        account: AccountId,
        limit: AccountLimit,
        self_registered: bool,
    ) -> Option<u32> {
        let value = self.override_of(account, limit).unwrap_or_else(|| {
            let without = limit.only_self_registered() && !self_registered;
            if without { 0 } else { self.default_of(limit) }
        });
        (value > 0).then_some(value)
    }

    /// Returns whether any account has this limit.
    pub fn is_used(&self, limit: AccountLimit) -> bool {
        self.default_of(limit) > 0 || !self.overrides().is_empty()
    }

    /// Counts a test message, unless the account has reached a limit, which is returned. The
    /// caller has called [`load_usage`] before.
    pub fn admit_test_message(&self, account: AccountId) -> std::result::Result<(), AccountLimit> {
        let mut usage = self.usage();
        let Some(used) = usage.get_mut(&account) else { return Ok(()) };
        if !used.test_messages.has_room() {
            return Err(AccountLimit::TestMessagesPerDay);
        }
        if !used.stored_rows.has_room() {
            return Err(AccountLimit::StoredRows);
        }
        used.test_messages.used += 1;
        used.stored_rows.used += 1;
        Ok(())
    }

    /// Counts rows that were stored after [`require_row_room`].
    pub fn count_rows(&self, account: AccountId, more: usize) {
        if let Some(used) = self.usage().get_mut(&account) {
            used.stored_rows.used += u64::try_from(more).unwrap_or(u64::MAX);
        }
    }

    /// Returns the error of an account that has reached a limit.
    pub fn reached(&self, account: AccountId, limit: AccountLimit) -> Error {
        let counted = self.usage().get(&account).and_then(|used| match limit {
            AccountLimit::TestMessagesPerDay => used.test_messages.max,
            AccountLimit::StoredRows => used.stored_rows.max,
            _ => None,
        });
        let max = counted.or_else(|| self.max(account, limit));
        Error::LimitReached { limit, max: max.unwrap_or_else(|| self.default_of(limit)) }
    }

    fn overrides(&self) -> RwLockReadGuard<'_, Overrides> {
        self.0.overrides.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn usage(&self) -> MutexGuard<'_, HashMap<AccountId, AccountUsage>> {
        self.0.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the overrides of all accounts again.
#[boxed]
pub async fn refresh(db: &Db, limits: &LimitTable) -> StoreResult<()> {
    let mut all = Overrides::new();
    for (account, limit, value) in account_limits::all(&mut db.read().await?).await? {
        all.entry(account).or_default().insert(limit, value);
    }
    let shared = &limits.0;
    let mut overrides = shared.overrides.write().unwrap_or_else(PoisonError::into_inner);
    if *overrides != all {
        *overrides = all;
        // The limits are among the figures.
        limits.usage().clear();
    }
    Ok(())
}

/// Reads what an account has used, unless this node has read it within the last minute.
#[boxed]
pub async fn load_usage(db: &Db, limits: &LimitTable, account: AccountId) -> Result<()> {
    let now = db.now();
    let is_fresh = |used: &AccountUsage| {
        used.read_at >= now.before(USAGE_AGE) && used.read_at >= day_start(now)
    };
    if limits.usage().get(&account).is_some_and(is_fresh) {
        return Ok(());
    }
    let mut conn = db.read().await?;
    let self_registered = accounts::is_self_registered(&mut conn, account).await?;
    let max = |limit| limits.max_if(account, limit, self_registered);
    let mut count = AccountUsage {
        read_at: now,
        test_messages: Count { max: max(AccountLimit::TestMessagesPerDay), used: 0 },
        stored_rows: Count { max: max(AccountLimit::StoredRows), used: 0 },
    };
    if count.test_messages.max.is_some() {
        count.test_messages.used = test_messages_today(&mut conn, account, now).await?;
    }
    if let Some(max) = count.stored_rows.max {
        count.stored_rows.used = stored_rows(&mut conn, account, max).await?;
    }
    let mut all = limits.usage();
    if all.len() >= MAX_ACCOUNTS {
        all.clear();
    }
    all.insert(account, count);
    Ok(())
}

/// Returns the start of the day in UTC.
pub fn day_start(now: Timestamp) -> Timestamp {
    hour_start(hour_of(now).div_euclid(HOURS_PER_DAY) * HOURS_PER_DAY)
}

/// Returns the number of test messages that an account has sent today.
pub async fn test_messages_today(
    conn: &mut Conn,
    account: AccountId,
    now: Timestamp,
) -> StoreResult<u64> {
    let today = stats::since(conn, (account, Mode::Test), hour_of(day_start(now))).await?;
    let accepted = today.into_iter().filter(|(_, measure, _)| *measure == Measure::Accepted);
    Ok(accepted.map(|(_, _, total)| u64::try_from(total).unwrap_or(0)).sum())
}

/// Returns the number of rows that [`AccountLimit::StoredRows`] counts, up to `max`.
pub async fn stored_rows(conn: &mut Conn, account: AccountId, max: u32) -> StoreResult<u64> {
    let messages = messages::count_test(conn, account, max.into()).await?;
    let optouts = optouts::count(conn, account, max.into()).await?;
    Ok(u64::try_from(messages + optouts).unwrap_or(0))
}

/// Checks that an account may store more rows.
///
/// # Errors
/// [`Error::LimitReached`].
#[boxed]
pub async fn require_row_room(
    db: &Db,
    limits: &LimitTable,
    account: AccountId,
    more: usize,
) -> Result<()> {
    load_usage(db, limits, account).await?;
    let more = u64::try_from(more).unwrap_or(u64::MAX);
    let full = limits.usage().get(&account).is_some_and(|used| {
        let Count { max, used } = used.stored_rows;
        max.is_some_and(|max| used.saturating_add(more) > u64::from(max))
    });
    if full { Err(limits.reached(account, AccountLimit::StoredRows)) } else { Ok(()) }
}
