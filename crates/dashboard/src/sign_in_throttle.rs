//! The throttle of sign-in attempts, by client address and by account name: slows down password
//! guessing.

use axum::http::StatusCode;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use heliograph_service::identity::passwords::Passwords;
use heliograph_service::kernel::security_log::SecurityEvent;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

/// Attempts at one person's password or codes: the burst, and then the interval between attempts.
const PER_NAME: (u32, Duration) = (8, Duration::from_secs(15));
/// Attempts from one network address, which a whole office may share.
const PER_ADDRESS: (u32, Duration) = (40, Duration::from_secs(3));
/// The number of tracked names or addresses beyond which idle ones are evicted.
const MAX_TRACKED: usize = 20_000;

/// Limits the attempts to sign in, and holds the handle of the password hasher.
pub struct SignInThrottle {
    pub(crate) passwords: Passwords,
    by_name: DefaultKeyedRateLimiter<String>,
    by_address: DefaultKeyedRateLimiter<IpAddr>,
}

/// The error of a throttled attempt, with the time to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooManyAttempts(pub(crate) Duration);

impl TooManyAttempts {
    /// The HTTP status of the response.
    pub(crate) const STATUS: StatusCode = StatusCode::TOO_MANY_REQUESTS;

    /// Returns the time to wait in whole seconds, at least 1.
    pub(crate) fn seconds(self) -> u64 {
        self.0.as_secs().saturating_add(1)
    }
}

impl SignInThrottle {
    /// Creates a throttle without any attempts.
    pub fn new(passwords: Passwords) -> Self {
        let (by_name, by_address) = (limiter(PER_NAME), limiter(PER_ADDRESS));
        Self { passwords, by_name, by_address }
    }

    /// Counts an attempt from an address, and at the named account if there is one.
    pub(crate) fn check(&self, address: IpAddr, name: Option<&str>) -> Result<(), TooManyAttempts> {
        let by_address = take(&self.by_address, &network(address));
        let by_name = || name.map_or(Ok(()), |name| take(&self.by_name, &name.to_owned()));
        let checked = by_address.and_then(|()| by_name());
        if checked.is_err() {
            let (event, client, reason) = ("rate_limited", &*address.to_string(), "sign_in");
            SecurityEvent { event, client, reason, ..Default::default() }.refused();
        }
        checked
    }
}

fn limiter<K: Hash + Eq + Clone>((burst, gap): (u32, Duration)) -> DefaultKeyedRateLimiter<K> {
    let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
    let quota = Quota::with_period(gap).unwrap_or(Quota::per_second(NonZeroU32::MIN));
    RateLimiter::keyed(quota.allow_burst(burst))
}

fn take<K: Hash + Eq + Clone>(
    limiter: &DefaultKeyedRateLimiter<K>,
    key: &K,
) -> Result<(), TooManyAttempts> {
    if limiter.len() > MAX_TRACKED {
        limiter.retain_recent();
    }
    let now = DefaultClock::default().now();
    limiter.check_key(key).map_err(|no| TooManyAttempts(no.wait_time_from(now)))
}

/// Returns the address that stands for a client: with IPv6, its network of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heliograph_service::identity::passwords;

    #[test]
    fn attempts_at_one_name_are_throttled_without_affecting_others() {
        let throttle = SignInThrottle::new(passwords::channel().0);
        let from = |n: u8| IpAddr::from([192, 0, 2, n]);
        for n in 0..8 {
            throttle.check(from(n), Some("ann@example.com")).unwrap();
        }
        let wait = throttle.check(from(9), Some("ann@example.com")).unwrap_err();
        assert!((1..=15).contains(&wait.seconds()), "{wait:?}");
        throttle.check(from(9), Some("bob@example.com")).unwrap();
    }

    #[test]
    fn attempts_from_one_network_are_throttled() {
        let throttle = SignInThrottle::new(passwords::channel().0);
        let from = |n: u16| IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, n]);
        for n in 0..40 {
            throttle.check(from(n), None).unwrap();
        }
        assert!(throttle.check(from(99), None).is_err());
        throttle.check("2001:db8:0:8::1".parse().unwrap(), None).unwrap();
    }
}
