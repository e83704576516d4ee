//! The client of a request: its IP address, and whether it uses HTTPS.

use axum::http::{HeaderMap, HeaderName};
use std::net::{IpAddr, Ipv6Addr};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The address and protocol of a client. The server adds it to the extensions of each request.
#[derive(Clone, Copy, Debug)]
pub struct ClientAddress {
    /// The IP address; behind a reverse proxy, the one that the proxy reports.
    pub ip: IpAddr,
    /// Whether the client uses HTTPS, with this server or with the reverse proxy in front of it.
    pub https: bool,
}

impl ClientAddress {
    /// Creates it from the address and protocol of the connection. Behind a reverse proxy, the
    /// headers `X-Forwarded-For` and `X-Forwarded-Proto` take their place.
    pub(crate) fn new(peer: IpAddr, tls: bool, behind_proxy: bool, headers: &HeaderMap) -> Self {
        let ip = if behind_proxy { forwarded_for(headers) } else { None };
        let https = tls || behind_proxy && is_forwarded_https(headers);
        Self { ip: ip.unwrap_or(peer).to_canonical(), https }
    }

    /// Returns the address to which the limits of one client apply. The local machine has none: it
    /// may be a reverse proxy, behind which all clients have the same address.
    pub fn limited(&self) -> Option<IpAddr> {
        (!self.ip.is_loopback()).then(|| client_network(self.ip))
    }
}

/// Returns the address that stands for a client: with IPv6, the network of 64 bits that every
/// client has.
pub(crate) fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// Returns the last entry of `X-Forwarded-For`: only that one was added by our own proxy.
fn forwarded_for(headers: &HeaderMap) -> Option<IpAddr> {
    let last = headers.get_all(FORWARDED_FOR).iter().next_back()?.to_str().ok()?;
    last.rsplit(',').next()?.trim().parse().ok()
}

/// Returns whether the client used HTTPS according to the proxy. Of several proxies, the first
/// is the client's.
fn is_forwarded_https(headers: &HeaderMap) -> bool {
    let protocol = headers.get(FORWARDED_PROTO).and_then(|v| v.to_str().ok()).unwrap_or_default();
    protocol.split(',').next().is_some_and(|first| first.trim().eq_ignore_ascii_case("https"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn an_ipv6_network_counts_as_one_client() {
        let network = |text: &str| client_network(text.parse().unwrap()).to_string();
        assert_eq!(network("2001:db8:0:1::1"), network("2001:db8:0:1:ffff::2"));
        assert_ne!(network("2001:db8:0:1::1"), network("2001:db8:0:2::1"));
        assert_eq!(network("::ffff:192.0.2.1"), "192.0.2.1");
    }

    #[test]
    fn the_local_machine_is_not_limited() {
        for (address, limited) in [("127.0.0.1", false), ("::1", false), ("192.0.2.1", true)] {
            let client = ClientAddress { ip: address.parse().unwrap(), https: true };
            assert_eq!(client.limited().is_some(), limited, "{address}");
        }
    }

    #[test]
    fn only_the_entry_of_our_own_proxy_counts() {
        let mut headers = HeaderMap::new();
        headers.insert(FORWARDED_FOR, HeaderValue::from_static("10.0.0.1, 198.51.100.4"));
        headers.insert(FORWARDED_PROTO, HeaderValue::from_static("HTTPS, http"));
        let peer = "192.0.2.7".parse().unwrap();
        let client = |behind_proxy| {
            let client = ClientAddress::new(peer, false, behind_proxy, &headers);
            (client.ip.to_string(), client.https)
        };
        assert_eq!(client(true), ("198.51.100.4".to_owned(), true));
        assert_eq!(client(false), ("192.0.2.7".to_owned(), false));
    }
}
