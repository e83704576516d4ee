//! Who may try to come in, and how often: passwords are hashed a few at once, and guessing takes long.

use axum::http::StatusCode;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use heliograph_service::passwords::Passwords;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

/// Tries at one person's password, or their codes: so many at once, and then one in each gap.
const BY_SECRET: (u32, Duration) = (8, Duration::from_secs(15));
/// Tries from one network address, behind which there may be an office.
const BY_ADDRESS: (u32, Duration) = (40, Duration::from_secs(3));
/// Names that are remembered; beyond it those are forgotten that have not tried lately.
const REMEMBERED: usize = 20_000;

/// What everybody passes who is not in yet.
pub struct Entrance {
    pub(crate) passwords: Passwords,
    by_secret: DefaultKeyedRateLimiter<String>,
    by_address: DefaultKeyedRateLimiter<IpAddr>,
}

/// Too many tries: how long to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooMany(pub(crate) Duration);

impl TooMany {
    /// As said to programs.
    pub(crate) const STATUS: StatusCode = StatusCode::TOO_MANY_REQUESTS;

    /// In whole seconds.
    pub(crate) fn seconds(self) -> u64 {
        self.0.as_secs().saturating_add(1)
    }
}

impl Entrance {
    /// An entrance at which nobody has tried yet.
    pub fn new(passwords: Passwords) -> Self {
        let (by_secret, by_address) = (limiter(BY_SECRET), limiter(BY_ADDRESS));
        Self { passwords, by_secret, by_address }
    }

    /// Counts a try from a network address, at the secret that is named, if there is one such.
    pub(crate) fn count(&self, address: IpAddr, what: Option<&str>) -> Result<(), TooMany> {
        take(&self.by_address, &network(address))?;
        what.map_or(Ok(()), |what| take(&self.by_secret, &what.to_owned()))
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
) -> Result<(), TooMany> {
    if limiter.len() > REMEMBERED {
        limiter.retain_recent();
    }
    let now = DefaultClock::default().now();
    limiter.check_key(key).map_err(|no| TooMany(no.wait_time_from(now)))
}

/// One person has a whole network of IPv6 addresses.
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
    use heliograph_service::passwords;

    #[test]
    fn guessing_one_person_takes_long_and_others_are_not_held_up() {
        let entrance = Entrance::new(passwords::channel().0);
        let from = |n: u8| IpAddr::from([192, 0, 2, n]);
        for n in 0..8 {
            entrance.count(from(n), Some("ann@example.com")).unwrap();
        }
        let wait = entrance.count(from(9), Some("ann@example.com")).unwrap_err();
        assert!((1..=15).contains(&wait.seconds()), "{wait:?}");
        entrance.count(from(9), Some("bob@example.com")).unwrap();
    }

    #[test]
    fn guessing_from_one_network_takes_long() {
        let entrance = Entrance::new(passwords::channel().0);
        let from = |n: u16| IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, n]);
        for n in 0..40 {
            entrance.count(from(n), None).unwrap();
        }
        assert!(entrance.count(from(99), None).is_err());
        entrance.count("2001:db8:0:8::1".parse().unwrap(), None).unwrap();
    }
}
