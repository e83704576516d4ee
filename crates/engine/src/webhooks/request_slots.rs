//! The limits of concurrent webhook requests of a node: in total, to one host, and of one account.

use heliograph_domain::id::AccountId;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Concurrent requests of the node: half of the usual limit of open files.
const MAX_REQUESTS: usize = 512;
/// Concurrent requests to one host, of all endpoints and accounts: twice what one quick endpoint
/// may have.
const MAX_PER_HOST: usize = 128;

/// Counts the requests in flight; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestSlots(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    in_flight: Mutex<InFlight>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct InFlight {
    total: usize,
    accounts: HashMap<AccountId, usize>,
    hosts: HashMap<Arc<str>, usize>,
}

/// The place of one request; it is freed when this is dropped.
#[derive(Debug)]
pub(crate) struct RequestSlot {
    slots: RequestSlots,
    account: AccountId,
    host: Arc<str>,
}

impl RequestSlots {
    /// Returns a place for a request. The accounts with requests share the node equally, and the
    /// first request of an account is always allowed, so that slow endpoints of others cannot
    /// starve it. A host never gets more than its limit.
    pub(crate) fn try_acquire(&self, account: AccountId, host: &Arc<str>) -> Option<RequestSlot> {
        let mut all = self.in_flight();
        let used = all.accounts.get(&account).copied().unwrap_or(0);
        let sharing = all.accounts.len() + usize::from(used == 0);
        let full = all.total >= MAX_REQUESTS || used >= MAX_REQUESTS.div_ceil(sharing);
        let host_used = all.hosts.get(host).copied().unwrap_or(0);
        if host_used >= MAX_PER_HOST || full && used > 0 {
            return None;
        }
        all.total += 1;
        all.accounts.insert(account, used + 1);
        all.hosts.insert(host.clone(), host_used + 1);
        Some(RequestSlot { slots: self.clone(), account, host: host.clone() })
    }

    /// Waits until a request ends. One waiting worker is woken for each; a worker that still gets
    /// no place tries again when it polls.
    pub(crate) async fn freed(&self) {
        self.0.freed.notified().await;
    }

    fn in_flight(&self) -> MutexGuard<'_, InFlight> {
        self.0.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        let mut all = self.slots.in_flight();
        all.total -= 1;
        release(&mut all.accounts, &self.account);
        release(&mut all.hosts, &self.host);
        drop(all);
        self.slots.0.freed.notify_one();
    }
}

fn release<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: AccountId = AccountId(1);
    const BOB: AccountId = AccountId(2);

    /// Acquires places at a host of its own for each request, until there is none.
    fn fill(slots: &RequestSlots, account: AccountId) -> Vec<RequestSlot> {
        let host = |n: usize| Arc::from(format!("{n}.{account}.example"));
        (0..2 * MAX_REQUESTS).map_while(|n| slots.try_acquire(account, &host(n))).collect()
    }

    #[test]
    fn accounts_share_the_node_equally() {
        let slots = RequestSlots::default();
        let mut ann = fill(&slots, ANN);
        assert_eq!(ann.len(), MAX_REQUESTS, "alone");
        let mut bob = fill(&slots, BOB);
        assert_eq!(bob.len(), 1, "the first request of an account is always allowed");
        ann.truncate(MAX_REQUESTS - 100);
        assert!(slots.try_acquire(ANN, &Arc::from("ann.example")).is_none(), "above its share");
        bob.extend(fill(&slots, BOB));
        assert_eq!(bob.len(), 100);
        ann.clear();
        bob.extend(fill(&slots, BOB));
        assert_eq!(bob.len(), MAX_REQUESTS);
        drop(bob);
        let all = slots.in_flight();
        assert!(all.total == 0 && all.accounts.is_empty() && all.hosts.is_empty());
    }

    #[test]
    fn a_host_never_gets_more_than_its_limit() {
        let slots = RequestSlots::default();
        let host: Arc<str> = Arc::from("victim.example");
        let all: Vec<_> = (0..2 * MAX_PER_HOST)
            .filter_map(|n| slots.try_acquire(AccountId(n.try_into().unwrap()), &host))
            .collect();
        assert_eq!(all.len(), MAX_PER_HOST);
        assert!(slots.try_acquire(ANN, &Arc::from("other.example")).is_some());
    }

    #[tokio::test]
    async fn an_ended_request_wakes_a_waiting_worker() {
        let slots = RequestSlots::default();
        let slot = slots.try_acquire(ANN, &Arc::from("ann.example")).unwrap();
        let freed = slots.freed();
        drop(slot);
        freed.await;
    }
}
