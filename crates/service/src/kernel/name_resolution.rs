//! Name resolution for webhooks, with a limit for each account.

use heliograph_domain::egress_policy::{ResolvedHost, Resolver};
use heliograph_domain::id::AccountId;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// The lookups of one account at a time. Names are cached, so that a healthy account needs few; one
/// whose name servers do not answer waits for itself.
const MAX_LOOKUPS: usize = 8;
/// The number of accounts above which those without a lookup are forgotten.
const MAX_TRACKED: usize = 1_024;

/// Resolves the hosts of webhook endpoints; cheap to clone.
#[derive(Clone)]
pub struct NameResolution {
    resolver: Arc<dyn Resolver>,
    lookups: Arc<Mutex<HashMap<AccountId, Arc<Semaphore>>>>,
}

impl NameResolution {
    /// Limits the lookups of a resolver.
    pub fn new(resolver: impl Resolver) -> Self {
        Self { resolver: Arc::new(resolver), lookups: Arc::default() }
    }

    /// Looks up the addresses of a host that an account chose.
    ///
    /// # Errors
    /// The reason why there are none.
    pub async fn resolve(&self, account: AccountId, host: String) -> ResolvedHost {
        let slots = self.slots(account);
        let _slot = slots.acquire().await.map_err(io::Error::other)?;
        self.resolver.resolve(host).await
    }

    fn slots(&self, account: AccountId) -> Arc<Semaphore> {
        let mut lookups = self.lookups.lock().unwrap_or_else(PoisonError::into_inner);
        if lookups.len() > MAX_TRACKED {
            lookups.retain(|_, slots| Arc::strong_count(slots) > 1);
        }
        lookups.entry(account).or_insert_with(|| Arc::new(Semaphore::new(MAX_LOOKUPS))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use heliograph_domain::egress_policy::ResolveFuture;

    /// Resolves `fast`, and never answers for other names.
    struct Stalled;

    impl Resolver for Stalled {
        fn resolve(&self, host: String) -> ResolveFuture {
            match host.as_str() {
                "fast" => Box::pin(async { Ok(Vec::new()) }),
                _ => Box::pin(std::future::pending()),
            }
        }
    }

    #[test]
    fn slow_lookups_delay_only_their_account() {
        let names = NameResolution::new(Stalled);
        let (slow, other) = (AccountId(1), AccountId(2));
        let is_answered =
            |account| names.resolve(account, "fast".to_owned()).now_or_never().is_some();
        let mut stalled = Vec::new();
        for _ in 0..MAX_LOOKUPS {
            assert!(is_answered(slow));
            let mut lookup = Box::pin(names.resolve(slow, "slow".to_owned()));
            assert!(lookup.as_mut().now_or_never().is_none());
            stalled.push(lookup);
        }
        assert!(!is_answered(slow) && is_answered(other));
        stalled.pop();
        assert!(is_answered(slow));
    }
}
