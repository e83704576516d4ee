//! Requests a second for each API key: what this node may let through of them.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use heliograph_domain::id::ApiKeyId;
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::watch;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

type Keys =
    RateLimiter<ApiKeyId, DashMapStateStore<ApiKeyId>, DefaultClock, StateInformationMiddleware>;

/// Counts the requests of each key. A key may use a second's worth at once, and then goes on at its rate (GCRA).
pub struct RateLimit {
    share: watch::Receiver<u32>,
    now: RwLock<Option<(NonZeroU32, Arc<Keys>)>>,
}

/// What one request found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Taken {
    quota: NonZeroU32,
    left: u32,
    /// How long to wait, when this request is too many.
    pub(crate) wait: Option<Duration>,
}

impl RateLimit {
    /// `share` is how many requests a second a key may make of this node, as it changes; 0 for as many as it likes.
    pub fn new(share: watch::Receiver<u32>) -> Self {
        Self { share, now: RwLock::default() }
    }

    /// Whether there is a limit.
    pub(crate) fn is_on(&self) -> bool {
        *self.share.borrow() > 0
    }

    /// Counts a request of this key; `None` where there is no limit.
    pub(crate) fn take(&self, key: ApiKeyId) -> Option<Taken> {
        let quota = NonZeroU32::new(*self.share.borrow())?;
        let taken = match self.keys(quota).check_key(&key) {
            Ok(state) => Taken { quota, left: state.remaining_burst_capacity(), wait: None },
            Err(no) => {
                let wait = Some(no.wait_time_from(DefaultClock::default().now()));
                Taken { quota, left: 0, wait }
            }
        };
        Some(taken)
    }

    /// Counts begin anew when the share changes.
    fn keys(&self, quota: NonZeroU32) -> Arc<Keys> {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, keys)) = now.as_ref().filter(|(q, _)| *q == quota) {
            return keys.clone();
        }
        drop(now);
        let limiter = RateLimiter::dashmap(Quota::per_second(quota));
        let keys = Arc::new(limiter.with_middleware::<StateInformationMiddleware>());
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        *now = Some((quota, keys.clone()));
        keys
    }
}

impl Taken {
    /// The same for a request that was answered before it could be counted.
    pub(crate) const fn granted(self) -> Self {
        Self { wait: None, ..self }
    }

    /// Says in an answer what is left (draft-ietf-httpapi-ratelimit-headers-10, §3 and §4).
    pub(crate) fn tell(self, headers: &mut HeaderMap) {
        let Self { quota, left, wait } = self;
        let seconds = wait.map_or(1, |wait| wait.as_millis().div_ceil(1_000).max(1));
        let told = [
            (POLICY, format!("\"key\";q={quota};w=1")),
            (LIMIT, format!("\"key\";r={left};t={seconds}")),
        ];
        for (name, text) in told {
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
    fn each_key_has_its_own_and_no_more() {
        let (_share, changes) = watch::channel(3);
        let limit = RateLimit::new(changes);
        let taken: Vec<_> = (0..3).map(|_| limit.take(ANN).unwrap()).collect();
        assert_eq!(taken.iter().map(|t| t.left).collect::<Vec<_>>(), [2, 1, 0]);
        assert!(taken.iter().all(|t| t.wait.is_none()));
        let over = limit.take(ANN).unwrap();
        assert!(over.wait.is_some_and(|wait| wait <= Duration::from_secs(1)));
        assert_eq!(limit.take(BOB).unwrap().left, 2);
        let mut headers = HeaderMap::new();
        over.tell(&mut headers);
        let values = ["ratelimit-policy", "ratelimit", "retry-after"].map(|n| &headers[n]);
        assert_eq!(values, ["\"key\";q=3;w=1", "\"key\";r=0;t=1", "1"]);
    }

    #[test]
    fn a_share_that_changes_holds_at_once() {
        let (share, changes) = watch::channel(0);
        let limit = RateLimit::new(changes);
        assert_eq!(limit.take(ANN), None);
        share.send_replace(2);
        assert_eq!(limit.take(ANN).unwrap().left, 1);
        share.send_replace(1);
        assert_eq!(limit.take(ANN).unwrap().left, 0);
        assert!(limit.take(ANN).unwrap().wait.is_some());
        share.send_replace(0);
        assert_eq!(limit.take(ANN), None);
    }
}
