//! The memory for request bodies that are being received: so much for all clients together, and a
//! share of it for each.

use crate::limits::{MAX_BUFFERED, MAX_BUFFERED_PER_CLIENT};
use crate::usage_limit::{UsageLimit, UsageShare};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the bytes of all request bodies in memory.
#[derive(Clone, Default)]
pub(crate) struct BodyBudget {
    total: Arc<AtomicUsize>,
    clients: UsageLimit<IpAddr>,
}

/// The bytes of one request. Dropping it frees them.
pub(crate) struct BufferedBytes {
    budget: BodyBudget,
    client: Option<IpAddr>,
    share: Option<UsageShare<IpAddr>>,
    length: usize,
}

impl BodyBudget {
    /// Returns the empty share of a new request. Requests without a `client` are limited only
    /// together.
    pub(crate) fn request(&self, client: Option<IpAddr>) -> BufferedBytes {
        BufferedBytes { budget: self.clone(), client, share: None, length: 0 }
    }
}

impl BufferedBytes {
    /// Adds bytes, unless they exceed a limit.
    pub(crate) fn grow(&mut self, length: usize) -> bool {
        self.length += length;
        let total = self.budget.total.fetch_add(length, Ordering::Relaxed) + length;
        let fits = match (&mut self.share, self.client) {
            (_, None) => true,
            (Some(share), _) => share.grow(length, MAX_BUFFERED_PER_CLIENT),
            (share @ None, Some(client)) => {
                let limit = MAX_BUFFERED_PER_CLIENT;
                *share = self.budget.clients.try_acquire(client, length, limit);
                share.is_some()
            }
        };
        fits && total <= MAX_BUFFERED
    }

    /// Frees all bytes.
    pub(crate) fn release(&mut self) {
        self.budget.total.fetch_sub(std::mem::take(&mut self.length), Ordering::Relaxed);
        self.share = None;
    }
}

impl Drop for BufferedBytes {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_a_share_of_the_memory() {
        let budget = BodyBudget::default();
        let (one, two) = ("192.0.2.1".parse().ok(), "192.0.2.2".parse().ok());
        let mut first = budget.request(one);
        assert!(first.grow(MAX_BUFFERED_PER_CLIENT - 1) && first.grow(1));
        assert!(!budget.request(one).grow(1), "the share is used up");
        assert!(budget.request(two).grow(1), "another client has its own share");
        drop(first);
        assert!(budget.request(one).grow(1));
        assert_eq!(budget.total.load(Ordering::Relaxed), 0, "everything is freed");
    }

    #[test]
    fn all_clients_share_the_memory() {
        let budget = BodyBudget::default();
        let mut all: Vec<_> = (0..4).map(|_| budget.request(None)).collect();
        assert!(all.iter_mut().all(|request| request.grow(MAX_BUFFERED / 4)));
        assert!(!budget.request(None).grow(1));
        all.pop();
        assert!(budget.request(None).grow(1));
    }
}
