//! The rate limit of each API key, in requests per second. Each node enforces its share of the limit.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use heliograph_domain::id::ApiKeyId;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::watch;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

type Keys =
    RateLimiter<ApiKeyId, DashMapStateStore<ApiKeyId>, DefaultClock, StateInformationMiddleware>;

/// The number of different quotas that are counted; beyond it all counters start again.
const MAX_QUOTAS: usize = 64;

/// Limits the requests of each API key by GCRA: a burst of one second's quota, then the constant
/// rate.
pub struct RateLimit {
    nodes: watch::Receiver<u32>,
    quotas: RwLock<HashMap<NonZeroU32, Arc<Keys>>>,
}

/// The decision about one request, with the state of the quota.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateLimitDecision {
    quota: NonZeroU32,
    remaining: u32,
    /// The time to wait, if this request exceeds the limit.
    pub(crate) wait: Option<Duration>,
}

impl RateLimit {
    /// Creates a limit. `nodes` is the current number of nodes that share the limit of a key.
    pub fn new(nodes: watch::Receiver<u32>) -> Self {
        Self { nodes, quotas: RwLock::default() }
    }

    /// Counts a request of this key, which may send `limit` requests per second to all nodes;
    /// returns `None` if there is no limit.
    pub(crate) fn check(&self, key: ApiKeyId, limit: u32) -> Option<RateLimitDecision> {
        let share = limit.div_ceil((*self.nodes.borrow()).max(1));
        let quota = NonZeroU32::new(share)?;
        let decision = match self.keys(quota).check_key(&key) {
            Ok(state) => {
                RateLimitDecision { quota, remaining: state.remaining_burst_capacity(), wait: None }
            }
            Err(no) => {
                let wait = Some(no.wait_time_from(DefaultClock::default().now()));
                RateLimitDecision { quota, remaining: 0, wait }
            }
        };
        Some(decision)
    }

    /// Returns the counters for this quota. A key starts again when its share changes.
    fn keys(&self, quota: NonZeroU32) -> Arc<Keys> {
        let known = self.quotas.read().unwrap_or_else(PoisonError::into_inner).get(&quota).cloned();
        if let Some(keys) = known {
            return keys;
        }
        let limiter = RateLimiter::dashmap(Quota::per_second(quota));
        let keys = Arc::new(limiter.with_middleware::<StateInformationMiddleware>());
        let mut quotas = self.quotas.write().unwrap_or_else(PoisonError::into_inner);
        if quotas.len() >= MAX_QUOTAS {
            quotas.clear();
        }
        quotas.entry(quota).or_insert(keys).clone()
    }
}

impl RateLimitDecision {
    /// Returns the same state for a request that was already served, and so was not limited.
    pub(crate) const fn allowed(self) -> Self {
        Self { wait: None, ..self }
    }

    /// Writes the rate limit headers (draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4)
    /// and `Retry-After`.
    pub(crate) fn write_headers(self, headers: &mut HeaderMap) {
        let Self { quota, remaining, wait } = self;
        let seconds = wait.map_or(1, |wait| wait.as_millis().div_ceil(1_000).max(1));
        let fields = [
            (POLICY, format!("\"key\";q={quota};w=1")),
            (LIMIT, format!("\"key\";r={remaining};t={seconds}")),
        ];
        for (name, text) in fields {
            if let Ok(value) = HeaderValue::from_str(&text) {
                headers.insert(name, value);
            }
        }
        if wait.is_some()
            && let Ok(value) = HeaderValue::from_str(&seconds.to_string())
        {
            headers.insert(header::RETRY_AFTER, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const ANN: ApiKeyId = ApiKeyId(Uuid::nil());
    const BOB: ApiKeyId = ApiKeyId(Uuid::max());

    #[test]
    fn each_key_has_its_own_quota() {
        let (_nodes, changes) = watch::channel(1);
        let limit = RateLimit::new(changes);
        let decisions: Vec<_> = (0..3).map(|_| limit.check(ANN, 3).unwrap()).collect();
        assert_eq!(decisions.iter().map(|t| t.remaining).collect::<Vec<_>>(), [2, 1, 0]);
        assert!(decisions.iter().all(|t| t.wait.is_none()));
        let over = limit.check(ANN, 3).unwrap();
        assert!(over.wait.is_some_and(|wait| wait <= Duration::from_secs(1)));
        assert_eq!(limit.check(BOB, 5).unwrap().remaining, 4, "another limit");
        assert_eq!(limit.check(BOB, 0), None, "no limit");
        let mut headers = HeaderMap::new();
        over.write_headers(&mut headers);
        let values = ["ratelimit-policy", "ratelimit", "retry-after"].map(|n| &headers[n]);
        assert_eq!(values, ["\"key\";q=3;w=1", "\"key\";r=0;t=1", "1"]);
    }

    #[test]
    fn a_changed_share_applies_at_once() {
        let (nodes, changes) = watch::channel(1);
        let limit = RateLimit::new(changes);
        assert_eq!(limit.check(ANN, 2).unwrap().remaining, 1);
        nodes.send_replace(2);
        assert_eq!(limit.check(ANN, 2).unwrap().remaining, 0);
        assert!(limit.check(ANN, 2).unwrap().wait.is_some());
    }
}
