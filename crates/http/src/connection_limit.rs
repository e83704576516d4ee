//! The connection limit of each client address, so that no client can use up all connections.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts the open connections of each client address.
#[derive(Clone, Default)]
pub(crate) struct ConnectionLimit(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// The permit of one connection. Dropping it frees the place.
pub(crate) struct ConnectionPermit {
    limit: ConnectionLimit,
    client: IpAddr,
}

impl ConnectionLimit {
    /// Returns a permit for one more connection, unless the client already has `max` of them.
    pub(crate) fn try_acquire(&self, address: IpAddr, max: usize) -> Option<ConnectionPermit> {
        let client = client_network(address);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.entry(client).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(ConnectionPermit { limit: self.clone(), client })
    }
}

/// Returns the address that stands for a client: with IPv6, the network of 64 bits that every
/// client has.
fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut all = self.limit.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = all.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn limit_applies_to_each_address() {
        let limit = ConnectionLimit::default();
        let places: Vec<_> = (0..3).map(|_| limit.try_acquire(ip("192.0.2.1"), 3)).collect();
        assert!(places.iter().all(Option::is_some));
        assert!(limit.try_acquire(ip("::ffff:192.0.2.1"), 3).is_none());
        assert!(limit.try_acquire(ip("192.0.2.2"), 3).is_some());
        drop(places);
        assert!(limit.try_acquire(ip("192.0.2.1"), 3).is_some());
        assert!(limit.0.lock().unwrap().is_empty(), "closed connections are forgotten");
    }

    #[test]
    fn an_ipv6_network_counts_as_one_client() {
        let limit = ConnectionLimit::default();
        let _place = limit.try_acquire(ip("2001:db8:0:1::1"), 1);
        assert!(limit.try_acquire(ip("2001:db8:0:1:ffff::2"), 1).is_none());
        assert!(limit.try_acquire(ip("2001:db8:0:2::1"), 1).is_some());
    }
}
