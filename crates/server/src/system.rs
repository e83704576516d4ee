//! The real clock and the real source of ids, handed to everything below.

use heliograph_domain::id::Ids;
use heliograph_domain::target::{Resolved, Resolver};
use heliograph_domain::time::{Clock, Timestamp};
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::{Builder, Uuid};

/// The machine's wall clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everyone else is handed")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// UUIDv7 from a fast generator seeded by the operating system: ids are names, not secrets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomIds;

impl Ids for RandomIds {
    fn next(&self, at: Timestamp) -> Uuid {
        let mut random = [0; 10];
        fastrand::fill(&mut random);
        let millis = u64::try_from(at.millis()).unwrap_or(0);
        Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }
}

/// Finds addresses as everything on this machine does.
pub(crate) struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: String) -> Resolved {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
