//! How many connections there are from one address, so that nobody takes all there are.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Connections by where they come from.
#[derive(Clone, Default)]
pub(crate) struct Crowd(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// One connection's place, until it is dropped.
pub(crate) struct Place {
    crowd: Crowd,
    from: IpAddr,
}

impl Crowd {
    /// A place for one more connection, if there are fewer than `most` from there.
    pub(crate) fn place(&self, address: IpAddr, most: usize) -> Option<Place> {
        let from = origin(address);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let here = all.entry(from).or_default();
        if *here >= most {
            return None;
        }
        *here += 1;
        Some(Place { crowd: self.clone(), from })
    }
}

/// Whom an address stands for: with IPv6 everybody has a whole network of 64 bits.
fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.crowd.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(here) = all.get_mut(&self.from) {
            *here -= 1;
            if *here == 0 {
                all.remove(&self.from);
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
    fn one_address_leaves_room_for_others() {
        let crowd = Crowd::default();
        let places: Vec<_> = (0..3).map(|_| crowd.place(ip("192.0.2.1"), 3)).collect();
        assert!(places.iter().all(Option::is_some));
        assert!(crowd.place(ip("::ffff:192.0.2.1"), 3).is_none());
        assert!(crowd.place(ip("192.0.2.2"), 3).is_some());
        drop(places);
        assert!(crowd.place(ip("192.0.2.1"), 3).is_some());
        assert!(crowd.0.lock().unwrap().is_empty(), "who has left is not remembered");
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let crowd = Crowd::default();
        let _place = crowd.place(ip("2001:db8:0:1::1"), 1);
        assert!(crowd.place(ip("2001:db8:0:1:ffff::2"), 1).is_none());
        assert!(crowd.place(ip("2001:db8:0:2::1"), 1).is_some());
    }
}
