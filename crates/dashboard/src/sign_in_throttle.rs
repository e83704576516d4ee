//! The throttle of sign-in attempts: slows down password guessing, and keeps nobody out of their own
//! account.
//!
//! Wrong passwords are limited for each pair of person and network, so that whoever guesses from
//! elsewhere does not use up the attempts of the person; and widely for each person, against
//! guessing from many networks. Browsers that the person has signed in with before have attempts of
//! their own, and so have password resets.

use axum::http::StatusCode;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use heliograph_service::identity::passwords::Passwords;
use heliograph_service::kernel::security_log::SecurityEvent;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

/// Attempts at one person's password from one network or known device: the burst, and then the
/// interval between attempts.
const PER_PERSON: (u32, Duration) = (8, Duration::from_secs(15));
/// Attempts at one person's password from all networks together: more than some networks can make.
const PER_PERSON_WIDE: (u32, Duration) = (200, Duration::from_secs(2));
/// Attempts from one network address, which a whole office may share.
const PER_ADDRESS: (u32, Duration) = (40, Duration::from_secs(3));
/// The number of tracked names or addresses beyond which idle ones are evicted.
const MAX_TRACKED: usize = 20_000;

/// Limits the attempts to sign in, and holds the handle of the password hasher.
pub struct SignInThrottle {
    pub(crate) passwords: Passwords,
    by_person: DefaultKeyedRateLimiter<(String, IpAddr)>,
    by_person_wide: DefaultKeyedRateLimiter<String>,
    by_device: DefaultKeyedRateLimiter<String>,
    by_address: DefaultKeyedRateLimiter<IpAddr>,
}

/// A thing that is attempted. Each has attempts of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attempt {
    /// Signing in with a password.
    Password,
    /// Entering a two-factor code. Wrong codes are also counted in the database.
    Code,
    /// Requesting a password reset.
    Reset,
    /// Entering a password or code within a session.
    InSession,
}

/// The origin of an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptOrigin<'a> {
    /// The address of the client.
    pub(crate) address: IpAddr,
    /// The id of the device, if the person has signed in with it before.
    pub(crate) device: Option<&'a str>,
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
        Self {
            passwords,
            by_person: limiter(PER_PERSON),
            by_person_wide: limiter(PER_PERSON_WIDE),
            by_device: limiter(PER_PERSON),
            by_address: limiter(PER_ADDRESS),
        }
    }

    /// Counts an attempt from an address that concerns no person.
    pub(crate) fn check_address(&self, address: IpAddr) -> Result<(), TooManyAttempts> {
        logged(address, take(&self.by_address, network(address)))
    }

    /// Counts an attempt at a person, who is named by the email address.
    pub(crate) fn check(
        &self,
        what: Attempt,
        email: &str,
        from: AttemptOrigin<'_>,
    ) -> Result<(), TooManyAttempts> {
        logged(from.address, self.take_all(what, email, from))
    }

    fn take_all(
        &self,
        what: Attempt,
        email: &str,
        from: AttemptOrigin<'_>,
    ) -> Result<(), TooManyAttempts> {
        if let Some(device) = from.device {
            return take(&self.by_device, format!("{what:?} {device}"));
        }
        take(&self.by_address, network(from.address))?;
        let name = format!("{what:?} {email}");
        // The narrow limit first: attempts beyond it do not count towards the wide one.
        take(&self.by_person, (name.clone(), network(from.address)))?;
        take(&self.by_person_wide, name)
    }
}

/// Logs a refused attempt.
fn logged(address: IpAddr, checked: Result<(), TooManyAttempts>) -> Result<(), TooManyAttempts> {
    if checked.is_err() {
        let (event, client, reason) = ("rate_limited", &*address.to_string(), "sign_in");
        SecurityEvent { event, client, reason, ..Default::default() }.refused();
    }
    checked
}

fn limiter<K: Hash + Eq + Clone>((burst, gap): (u32, Duration)) -> DefaultKeyedRateLimiter<K> {
    let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
    let quota = Quota::with_period(gap).unwrap_or(Quota::per_second(NonZeroU32::MIN));
    RateLimiter::keyed(quota.allow_burst(burst))
}

fn take<K: Hash + Eq + Clone>(
    limiter: &DefaultKeyedRateLimiter<K>,
    key: K,
) -> Result<(), TooManyAttempts> {
    if limiter.len() > MAX_TRACKED {
        limiter.retain_recent();
    }
    let now = DefaultClock::default().now();
    limiter.check_key(&key).map_err(|no| TooManyAttempts(no.wait_time_from(now)))
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

    const ANN: &str = "ann@example.com";

    fn from(n: u8) -> AttemptOrigin<'static> {
        AttemptOrigin { address: IpAddr::from([192, 0, 2, n]), device: None }
    }

    #[test]
    fn wrong_passwords_from_elsewhere_do_not_lock_a_person_out() {
        let throttle = SignInThrottle::new(passwords::channel().0);
        let attempt = |origin| throttle.check(Attempt::Password, ANN, origin);
        for _ in 0..8 {
            attempt(from(1)).unwrap();
        }
        let wait = attempt(from(1)).unwrap_err();
        assert!((1..=15).contains(&wait.seconds()), "{wait:?}");
        attempt(from(2)).unwrap();
        throttle.check(Attempt::Password, "bob@example.com", from(1)).unwrap();
        throttle.check(Attempt::Reset, ANN, from(1)).unwrap();
    }

    #[test]
    fn known_devices_pass_while_many_networks_guess() {
        let throttle = SignInThrottle::new(passwords::channel().0);
        let attempt = |origin| throttle.check(Attempt::Password, ANN, origin);
        let guesses = (0..=255).map(|n| attempt(from(n)).is_ok()).filter(|passed| *passed).count();
        assert!((200..=201).contains(&guesses), "{guesses}");
        let known = AttemptOrigin { device: Some("phone"), ..from(1) };
        for _ in 0..8 {
            attempt(known).unwrap();
        }
        attempt(known).unwrap_err();
        throttle.check(Attempt::Reset, ANN, from(2)).unwrap();
    }

    #[test]
    fn attempts_from_one_network_are_throttled() {
        let throttle = SignInThrottle::new(passwords::channel().0);
        let from = |n: u16| IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, n]);
        for n in 0..40 {
            throttle.check_address(from(n)).unwrap();
        }
        assert!(throttle.check_address(from(99)).is_err());
        throttle.check_address("2001:db8:0:8::1".parse().unwrap()).unwrap();
    }
}
