//! The client of a request: its IP address, and whether it uses HTTPS.

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The address and protocol of a client. The server adds it to the extensions of each request.
#[derive(Clone, Copy, Debug)]
pub struct ClientAddress {
    /// The IP address; behind a trusted proxy, the one that the proxy reports.
    pub ip: IpAddr,
    /// Whether the client uses HTTPS, with this server or with the trusted proxy in front of it.
    pub https: bool,
}

/// The reverse proxies in front of this server. Only their `X-Forwarded-…` headers are read: those
/// of everybody else may be forged.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Arc<[IpNet]>);

impl TrustedProxies {
    /// Trusts the proxies in these networks; without any, no header is trusted.
    pub fn new(networks: &[IpNet]) -> Self {
        Self(networks.into())
    }

    /// Returns whether this is the address of a proxy.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

impl ClientAddress {
    /// Creates it from the address and protocol of the connection, and from the headers if a
    /// trusted proxy opened it.
    pub(crate) fn new(
        peer: IpAddr,
        tls: bool,
        proxies: &TrustedProxies,
        headers: &HeaderMap,
    ) -> Self {
        let direct = Self { ip: peer.to_canonical(), https: tls };
        if proxies.contains(peer) { direct.forwarded(proxies, headers) } else { direct }
    }

    /// Returns the client on whose behalf a trusted proxy sends a request.
    ///
    /// Each proxy appends an entry, so only the last entry is known to come from our proxy. If it
    /// is another trusted proxy, that one appended the entry before, and so on: the client is the
    /// last entry that is no trusted proxy. Everything before it may be forged.
    fn forwarded(self, proxies: &TrustedProxies, headers: &HeaderMap) -> Self {
        let mut client = self.ip;
        let mut hops = 0;
        for entry in entries(headers, FORWARDED_FOR).rev() {
            // An entry such as "unknown": the proxy that wrote it is the last that we know.
            let Some(address) = parse_address(entry) else { break };
            client = address.to_canonical();
            hops += 1;
            if !proxies.contains(client) {
                break;
            }
        }
        Self { ip: client, https: is_forwarded_https(headers, hops) }
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

/// Returns the entries of a list header, which may occur several times, in order.
fn entries(headers: &HeaderMap, name: HeaderName) -> impl DoubleEndedIterator<Item = &str> {
    // An unreadable value is an entry, too, at which the search for the client ends.
    let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("unreadable"));
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// Reads an entry of `X-Forwarded-For`: an address, with a port if the proxy adds one.
fn parse_address(entry: &str) -> Option<IpAddr> {
    let with_port = || entry.parse::<SocketAddr>().ok().map(|address| address.ip());
    let in_brackets = || entry.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    entry.parse().ok().or_else(with_port).or_else(in_brackets)
}

/// Returns whether the client used HTTPS according to the proxies. A proxy that appends to
/// `X-Forwarded-Proto` adds one entry for each in `X-Forwarded-For`, so the entry of the client's
/// proxy is the `hops`-th from the end; with fewer entries, the first one counts.
fn is_forwarded_https(headers: &HeaderMap, hops: usize) -> bool {
    let from_the_end = entries(headers, FORWARDED_PROTO).rev();
    from_the_end.take(hops.max(1)).last().is_some_and(|it| it.eq_ignore_ascii_case("https"))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// Returns address and protocol of a client, whose request has these headers.
    fn client(peer: &str, forwarded_for: &[&str], proto: &[&str]) -> String {
        let proxies = ["10.0.0.0/8", "2001:db8::/32"].map(|network| network.parse().unwrap());
        let mut headers = HeaderMap::new();
        for (name, values) in [(FORWARDED_FOR, forwarded_for), (FORWARDED_PROTO, proto)] {
            for value in values {
                headers.append(&name, value.parse().unwrap());
            }
        }
        let proxies = TrustedProxies::new(&proxies);
        let client = ClientAddress::new(peer.parse().unwrap(), false, &proxies, &headers);
        format!("{} {}", if client.https { "https" } else { "http" }, client.ip)
    }

    #[test]
    fn headers_of_others_than_trusted_proxies_have_no_effect() {
        for peer in ["192.0.2.7", "127.0.0.1", "11.0.0.1"] {
            assert_eq!(client(peer, &["198.51.100.4"], &["https"]), format!("http {peer}"));
        }
        assert_eq!(client("10.0.0.1", &["198.51.100.4"], &["https"]), "https 198.51.100.4");
        assert_eq!(client("::ffff:10.0.0.1", &["::1"], &["HTTPS"]), "https ::1");
        assert_eq!(client("2001:db8::1", &[], &["http"]), "http 2001:db8::1");
    }

    #[test]
    fn the_client_is_the_last_address_that_is_no_trusted_proxy() {
        for (forwarded_for, expected) in [
            (&["1.1.1.1, 198.51.100.4"][..], "198.51.100.4"),
            (&["1.1.1.1", "198.51.100.4"], "198.51.100.4"),
            (&["1.1.1.1, 198.51.100.4, 10.1.1.1", "10.2.2.2"], "198.51.100.4"),
            (&["10.9.9.9, 198.51.100.4"], "198.51.100.4"),
            (&["10.3.3.3, 10.4.4.4"], "10.3.3.3"),
            (&["1.1.1.1, unknown"], "10.0.0.1"),
            (&["1.1.1.1, unknown, 10.2.2.2"], "10.2.2.2"),
            (&["198.51.100.4:49152"], "198.51.100.4"),
            (&["[2001:db9::4]:49152"], "2001:db9::4"),
            (&["[2001:db9::4]"], "2001:db9::4"),
            (&["\u{e9}"], "10.0.0.1"),
            (&[""], "10.0.0.1"),
            (&[], "10.0.0.1"),
        ] {
            let found = client("10.0.0.1", forwarded_for, &["https"]);
            assert_eq!(found, format!("https {expected}"), "{forwarded_for:?}");
        }
    }

    #[test]
    fn the_protocol_is_that_of_the_proxy_which_the_client_reached() {
        let two = &["198.51.100.4, 10.1.1.1"][..];
        let one = &["198.51.100.4"][..];
        for (forwarded_for, proto, https) in [
            // The client sent "https" over HTTP to a proxy that appends.
            (one, &["https, http"][..], false),
            (one, &["https", "http"], false),
            (two, &["https, http"], true),
            (two, &["https, http, https"], false),
            // A proxy in between passes the header on.
            (two, &["https"], true),
            (two, &["http"], false),
            (&[], &["https"], true),
            (one, &[], false),
        ] {
            let found = client("10.0.0.1", forwarded_for, proto);
            assert_eq!(found.starts_with("https "), https, "{forwarded_for:?} {proto:?}");
        }
    }
}
