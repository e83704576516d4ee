//! In-process change notification: open dashboard pages of an account reload when it changes.
//!
//! A notification carries no data and reaches only pages connected to this node. Where several
//! nodes share a database, pages also poll.

use async_recursion::async_recursion as boxed;
use heliograph_domain::id::AccountId;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::{Notify, watch};

/// The change notifier of one node, with one channel for each account that has subscribers.
#[derive(Clone, Debug, Default)]
pub struct ChangeNotifier(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    accounts: RwLock<HashMap<AccountId, watch::Sender<()>>>,
    handsets: Notify,
}

impl ChangeNotifier {
    /// Subscribes to changes of an account.
    pub fn subscribe(&self, account: AccountId) -> watch::Receiver<()> {
        let mut all = self.0.accounts.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, changed| changed.receiver_count() > 0);
        all.entry(account).or_default().subscribe()
    }

    /// Returns whether anyone subscribed to any account.
    pub fn has_subscribers(&self) -> bool {
        !self.0.accounts.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Notifies the subscribers of these accounts.
    pub fn notify(&self, accounts: &BTreeSet<AccountId>) {
        if accounts.is_empty() {
            return;
        }
        let all = self.0.accounts.read().unwrap_or_else(PoisonError::into_inner);
        for changed in accounts.iter().filter_map(|account| all.get(account)) {
            changed.send_replace(());
        }
    }

    /// Notifies the engine that a reply was typed on a virtual handset.
    pub fn notify_handsets(&self) {
        self.0.handsets.notify_one();
    }

    /// Waits until a reply was typed on a virtual handset.
    #[boxed]
    pub async fn handset_reply_queued(&self) {
        self.0.handsets.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_subscribers_of_an_account_are_notified() {
        let notifier = ChangeNotifier::default();
        assert!(!notifier.has_subscribers());
        let (mut ann, bob) = (notifier.subscribe(AccountId(1)), notifier.subscribe(AccountId(2)));
        notifier.notify(&BTreeSet::from([AccountId(1), AccountId(3)]));
        assert!(ann.has_changed().unwrap() && !bob.has_changed().unwrap());
        ann.mark_unchanged();
        assert!(!ann.has_changed().unwrap() && notifier.has_subscribers());
    }
}
