//! The pages that a client address may open per second.

use crate::sign_in_throttle::TooManyAttempts;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::net::IpAddr;
use std::num::NonZeroU32;

/// Pages per second of one address. A live page reloads its parts up to four times a second, and
/// the people of an office share an address.
const PER_SECOND: NonZeroU32 = NonZeroU32::new(40).unwrap();
/// The pages that an address may open at once.
const BURST: NonZeroU32 = NonZeroU32::new(200).unwrap();
/// The number of addresses beyond which idle ones are forgotten.
const MAX_TRACKED: usize = 20_000;

/// Counts the pages of each client address.
pub struct PageRate(DefaultKeyedRateLimiter<IpAddr>);

impl Default for PageRate {
    fn default() -> Self {
        Self(RateLimiter::keyed(Quota::per_second(PER_SECOND).allow_burst(BURST)))
    }
}

impl PageRate {
    /// Counts a page, or returns the time to wait.
    pub(crate) fn check(&self, client: IpAddr) -> Result<(), TooManyAttempts> {
        if self.0.len() > MAX_TRACKED {
            self.0.retain_recent();
        }
        let now = DefaultClock::default().now();
        self.0.check_key(&client).map_err(|no| TooManyAttempts(no.wait_time_from(now)))
    }
}
