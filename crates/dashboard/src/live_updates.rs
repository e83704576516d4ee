//! Live updates: one watcher for each account with open pages, and the limits of event streams.

use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::id::{AccountId, SessionId};
use heliograph_http::{ClientAddress, UsageLimit, UsageShare};
use heliograph_service::identity::sessions;
use heliograph_service::kernel::context::Context;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// The shortest gap between two updates, for accounts that change all the time.
const MIN_GAP: Duration = Duration::from_millis(250);
/// The polling interval of multi-node installations: changes on other nodes are not notified here.
const POLL: Duration = Duration::from_secs(2);
/// The interval at which a watcher without changes finds out that all pages were closed.
const IDLE: Duration = Duration::from_secs(45);
/// The streams of one client address: the open pages of the people in an office. (The address of
/// the local machine has no limit.)
const MAX_PER_ADDRESS: usize = 100;

/// The sessions that may learn of changes of an account; replaced with each change.
pub(crate) type Viewers = Arc<HashSet<SessionId>>;

/// The live updates of a node; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct LiveUpdates {
    watchers: Arc<Mutex<HashMap<AccountId, watch::Sender<Viewers>>>>,
    accounts: UsageLimit<AccountId>,
    clients: UsageLimit<IpAddr>,
}

/// The place of one event stream in the limits; it is freed when this is dropped.
#[derive(Debug)]
pub(crate) struct StreamShare {
    _account: UsageShare<AccountId>,
    _client: Option<UsageShare<IpAddr>>,
}

impl LiveUpdates {
    /// Returns a place for an event stream; `None` when the account or the client has too many.
    pub(crate) fn open(
        &self,
        cx: &Context,
        account: AccountId,
        client: ClientAddress,
    ) -> Option<StreamShare> {
        let max = cx.limits.max(account, AccountLimit::EventStreams).unwrap_or(u32::MAX);
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let limited = client.limited();
        let client = limited.map(|address| self.clients.try_acquire(address, 1, MAX_PER_ADDRESS));
        let client = match client {
            Some(None) => return None,
            other => other.flatten(),
        };
        Some(StreamShare { _account: self.accounts.try_acquire(account, 1, max)?, _client: client })
    }

    /// Returns the number of open event streams of an account on this node.
    pub(crate) fn open_streams(&self, account: AccountId) -> usize {
        self.accounts.used(account)
    }

    /// Subscribes to the changes of an account, and starts its watcher if there is none.
    #[expect(
        clippy::disallowed_methods,
        reason = "a watcher ends with the last page, and holds nothing that a shutdown could lose"
    )]
    pub(crate) fn subscribe(&self, cx: &Context, account: AccountId) -> watch::Receiver<Viewers> {
        let mut watchers = self.watchers();
        if let Some(viewers) = watchers.get(&account) {
            return viewers.subscribe();
        }
        let (viewers, changes) = watch::channel(Viewers::default());
        watchers.insert(account, viewers);
        tokio::spawn(self.clone().watch(cx.clone(), account));
        changes
    }

    /// Publishes who may learn of a change, once for all pages, until the last page is closed.
    async fn watch(self, cx: Context, account: AccountId) {
        let mut changes = cx.notifier.subscribe(account);
        loop {
            sleep(MIN_GAP).await;
            let poll = if cx.db.is_shared() { POLL } else { IDLE };
            let changed = tokio::select! {
                changed = changes.changed() => changed.is_ok(),
                () = sleep(poll) => cx.db.is_shared(),
            };
            if self.remove_if_unused(account) {
                return;
            }
            if !changed {
                continue;
            }
            match sessions::viewers(&cx, account).await {
                Ok(viewers) => self.publish(account, viewers),
                Err(error) => tracing::warn!(%error, "failed to read the sessions of an account"),
            }
        }
    }

    fn publish(&self, account: AccountId, viewers: HashSet<SessionId>) {
        if let Some(watcher) = self.watchers().get(&account) {
            watcher.send_replace(Arc::new(viewers));
        }
    }

    /// Removes the watcher of an account without subscribers; returns whether it did.
    fn remove_if_unused(&self, account: AccountId) -> bool {
        let mut watchers = self.watchers();
        let unused = watchers.get(&account).is_none_or(|viewers| viewers.receiver_count() == 0);
        if unused {
            watchers.remove(&account);
        }
        unused
    }

    fn watchers(&self) -> MutexGuard<'_, HashMap<AccountId, watch::Sender<Viewers>>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
