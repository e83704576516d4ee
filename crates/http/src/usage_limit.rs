//! Limits of each client or account, so that none can use up what all share: connections,
//! requests, memory.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts how much of a resource each user holds at the moment. Its owner chooses the unit.
#[derive(Debug)]
pub struct UsageLimit<K>(Arc<Mutex<HashMap<K, usize>>>);

/// An amount that one user holds; it is freed when this is dropped.
#[derive(Debug)]
pub struct UsageShare<K: Copy + Eq + Hash> {
    limit: UsageLimit<K>,
    user: K,
    amount: usize,
}

impl<K> Clone for UsageLimit<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> Default for UsageLimit<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Copy + Eq + Hash> UsageLimit<K> {
    /// Returns a share of this amount, unless the user would have more than `max` in all.
    pub fn try_acquire(&self, user: K, amount: usize, max: usize) -> Option<UsageShare<K>> {
        let mut share = UsageShare { limit: self.clone(), user, amount: 0 };
        share.grow(amount, max).then_some(share)
    }

    /// Returns the amount that a user holds.
    pub fn used(&self, user: K) -> usize {
        self.all().get(&user).copied().unwrap_or(0)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash> UsageShare<K> {
    /// Adds an amount, unless the user would have more than `max` in all.
    pub fn grow(&mut self, amount: usize, max: usize) -> bool {
        let mut all = self.limit.all();
        let used = all.get(&self.user).copied().unwrap_or(0) + amount;
        if used > max {
            return false;
        }
        all.insert(self.user, used);
        self.amount += amount;
        true
    }
}

impl<K: Copy + Eq + Hash> Drop for UsageShare<K> {
    fn drop(&mut self) {
        let mut all = self.limit.all();
        if let Some(used) = all.get_mut(&self.user) {
            *used -= self.amount;
            if *used == 0 {
                all.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_applies_to_each_user() {
        let limit = UsageLimit::default();
        let mut shares: Vec<_> = (0..3).filter_map(|_| limit.try_acquire('a', 1, 3)).collect();
        assert_eq!(shares.len(), 3);
        assert!(limit.try_acquire('a', 1, 3).is_none() && limit.try_acquire('b', 3, 3).is_some());
        shares.pop();
        assert!(shares[0].grow(1, 3) && !shares[0].grow(1, 3));
        drop(shares);
        assert!(limit.try_acquire('a', 4, 3).is_none() && limit.try_acquire('a', 3, 3).is_some());
        assert!(limit.0.lock().unwrap().is_empty(), "users without a share are forgotten");
    }
}
