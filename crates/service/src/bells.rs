//! Bells: who looks at an account is told that something of it changed, and reads again.
//!
//! They carry no news of their own, and reach who is connected to this node. Where several nodes share a database,
//! pages also read again from time to time.

use heliograph_domain::id::AccountId;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::{Notify, watch};

/// The bells of one node, one for each account that somebody looks at.
#[derive(Clone, Debug, Default)]
pub struct Bells(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    accounts: RwLock<HashMap<AccountId, watch::Sender<()>>>,
    handsets: Notify,
}

impl Bells {
    /// Hears of an account's changes from now on.
    pub fn listen(&self, account: AccountId) -> watch::Receiver<()> {
        let mut all = self.0.accounts.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, bell| bell.receiver_count() > 0);
        all.entry(account).or_default().subscribe()
    }

    /// Whether anybody listens.
    pub fn is_heard(&self) -> bool {
        !self.0.accounts.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Tells those who look at these accounts.
    pub fn ring(&self, accounts: &BTreeSet<AccountId>) {
        if accounts.is_empty() {
            return;
        }
        let all = self.0.accounts.read().unwrap_or_else(PoisonError::into_inner);
        for bell in accounts.iter().filter_map(|account| all.get(account)) {
            bell.send_replace(());
        }
    }

    /// Tells the engine that something was typed on a handset.
    pub fn ring_handsets(&self) {
        self.0.handsets.notify_one();
    }

    /// Comes back when something was typed on a handset.
    pub async fn handsets(&self) {
        self.0.handsets.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_looks_at_an_account_is_told() {
        let bells = Bells::default();
        assert!(!bells.is_heard());
        let (mut ann, bob) = (bells.listen(AccountId(1)), bells.listen(AccountId(2)));
        bells.ring(&BTreeSet::from([AccountId(1), AccountId(3)]));
        assert!(ann.has_changed().unwrap() && !bob.has_changed().unwrap());
        ann.mark_unchanged();
        assert!(!ann.has_changed().unwrap() && bells.is_heard());
    }
}
