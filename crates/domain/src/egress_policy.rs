//! The egress policy: which addresses outgoing webhook requests may reach. This is the SSRF
//! protection (server-side request forgery): an account can register any URL, so a request must not
//! reach the private network of this installation, loopback or a cloud metadata service.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use ipnet::IpNet;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::str::FromStr;

/// The result of a name lookup: the addresses of a host, or the reason why there are none.
pub type ResolvedHost = io::Result<Vec<IpAddr>>;
/// A pending name lookup.
pub type ResolveFuture = Pin<Box<dyn Future<Output = ResolvedHost> + Send>>;

/// Resolves host names. Injected, so that this crate opens no socket and tests choose the answers.
pub trait Resolver: Send + Sync + 'static {
    /// Looks up the addresses of a host name.
    fn resolve(&self, host: String) -> ResolveFuture;
}

/// The reason why the egress policy denies an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EgressDenied {
    /// The address is not on the public Internet.
    #[error(
        "{0} is not a public address: webhooks can reach a private \
         address only if [webhooks] allow_private includes it"
    )]
    PrivateAddress(IpAddr),
    /// The address is public, but the URL is plain `http://`.
    #[error(
        "plain http:// to {0} is not allowed: use https://, or add the network to \
         [webhooks] allow_private"
    )]
    Plaintext(IpAddr),
    /// The port is not among those that the operator allows.
    #[error("port {0} is not allowed: [webhooks] ports lists the ports that webhooks may use")]
    Port(u16),
}

/// A port, or a range of ports with both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRange {
    /// The first port.
    pub first: u16,
    /// The last port, which is not below the first.
    pub last: u16,
}

/// The error of a text that is no port and no range of ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("invalid ports: use a port such as 443, or a range such as 1024-65535")]
pub struct BadPortRange;

impl PortRange {
    /// The range of one port.
    const fn of(port: u16) -> Self {
        Self { first: port, last: port }
    }

    const fn contains(self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}

impl FromStr for PortRange {
    type Err = BadPortRange;

    fn from_str(text: &str) -> Result<Self, BadPortRange> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
        let (first, last) = (port(first).ok_or(BadPortRange)?, port(last).ok_or(BadPortRange)?);
        if first <= last { Ok(Self { first, last }) } else { Err(BadPortRange) }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => self.first.fmt(f),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

/// The addresses that outgoing requests may reach: public addresses over HTTPS, and the networks
/// that the operator allowed (over HTTP as well); all of them at certain ports.
#[derive(Clone, Debug)]
pub struct EgressPolicy {
    networks: Vec<IpNet>,
    ports: Vec<PortRange>,
}

impl Default for EgressPolicy {
    fn default() -> Self {
        Self::allowing(Vec::new())
    }
}

impl EgressPolicy {
    /// The ports that are allowed by default: those of HTTP, and those that need no privileges,
    /// but none of mail, SSH and similar services.
    pub const DEFAULT_PORTS: [PortRange; 3] =
        [PortRange::of(80), PortRange::of(443), PortRange { first: 1_024, last: u16::MAX }];

    /// Allows public addresses and these networks, at the default ports.
    pub fn allowing(private: Vec<IpNet>) -> Self {
        Self { networks: private, ports: Self::DEFAULT_PORTS.into() }
    }

    /// Allows these ports instead.
    pub fn with_ports(self, ports: Vec<PortRange>) -> Self {
        Self { ports, ..self }
    }

    /// Allows everything: for `heliograph listen`, which forwards to a program on the user's own
    /// machine.
    pub fn allow_all() -> Self {
        let networks = vec![
            IpNet::new_assert(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
            IpNet::new_assert(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
        ];
        Self { networks, ports: vec![PortRange { first: 0, last: u16::MAX }] }
    }

    /// Allows loopback addresses as well: for programs that the operator runs on this machine.
    pub fn with_loopback(&self) -> Self {
        let mut all = self.clone();
        all.networks.extend([
            IpNet::from(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            IpNet::from(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        ]);
        all
    }

    /// Checks the port of a URL.
    ///
    /// # Errors
    /// [`EgressDenied::Port`].
    pub fn check_port(&self, port: u16) -> Result<(), EgressDenied> {
        match self.ports.iter().any(|range| range.contains(port)) {
            true => Ok(()),
            false => Err(EgressDenied::Port(port)),
        }
    }

    /// Checks an address before a connection to it is opened. The caller must dial this very
    /// address and not resolve the name again, or DNS rebinding would bypass the check.
    ///
    /// # Errors
    /// Returns the reason if the address must not be reached.
    pub fn check(&self, address: IpAddr, https: bool) -> Result<(), EgressDenied> {
        if self.networks.iter().any(|net| net.contains(&address)) {
            Ok(())
        } else if !is_public(address) {
            Err(EgressDenied::PrivateAddress(address))
        } else if !https {
            Err(EgressDenied::Plaintext(address))
        } else {
            Ok(())
        }
    }
}

/// Returns whether an address belongs to a host of the public Internet, by the IANA special-purpose
/// address registries (RFC 6890 and later entries).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !is_special_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_special_v4(address: Ipv4Addr) -> bool {
    match address.octets() {
        [0 | 10 | 127, ..] | [224..=255, ..] => true, // local, private, loopback, multicast, reserved
        [100, 64..=127, ..] => true,                  // carrier-grade NAT
        [168, 63, 129, 16] => true, // Azure metadata, on an address that looks public
        [169, 254, ..] => true,     // link-local, including most cloud metadata services
        [172, 16..=31, ..] | [192, 168, ..] => true, // private
        [192, 0, 0 | 2, _] => true, // protocol assignments, documentation
        [192, 88, 99, _] => true,   // 6to4 relays
        [192, 31, 196, _] | [192, 52, 193, _] | [192, 175, 48, _] => true, // AS112 and AMT
        [198, 18 | 19, ..] => true, // benchmarking
        [198, 51, 100, _] | [203, 0, 113, _] => true, // documentation
        _ => false,
    }
}

/// Returns whether an IPv6 address is public. Only 2000::/3 is global unicast, except for some
/// special ranges within it. Everything outside of it is special: loopback, IPv4-mapped and
/// IPv4-compatible addresses, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), private, link-local and
/// multicast ones.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x2001, 0..=0x1ff, ..] => false, // protocol assignments, including Teredo
        [0x2001, 0xdb8, ..] => false,     // documentation
        [0x2002, ..] => false,            // 6to4, which embeds an IPv4 address
        [0x2620, 0x4f, 0x8000, ..] => false, // AS112
        [0x3ffe, ..] => false,            // former 6bone
        [0x3fff, 0..=0xfff, ..] => false, // documentation
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook_url::WebhookUrl;

    fn parse(url: &str) -> WebhookUrl {
        WebhookUrl::parse(url).unwrap()
    }

    #[test]
    fn private_addresses_are_denied_in_every_spelling() {
        for host in [
            "127.0.0.1",
            "2130706433",
            "0x7f.1",
            "0x7f000001",
            "017700000001",
            "127.1",
            "127.0.0.1.",
            "0x7f.0.0.0x1",
            "１２７.０.０.１",
            "127%2e0%2e0%2e1",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "[::ffff:7f00:1]",
            "0",
            "0.0.0.0",
            "[::]",
            "169.254.169.254",
            "0xa9fea9fe",
            "[fd00:ec2::254]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "[2001:0:7f00:1::]",
            "[fe80::1]",
            "[ff02::1]",
            "10.0.0.1",
            "172.31.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "168.63.129.16",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "[100::1]",
            "[64:ff9b:1::a00:1]",
            "[fec0::1]",
            "[::ffff:8.8.8.8]",
        ] {
            let address = parse(&format!("https://{host}/")).address();
            let address = address.unwrap_or_else(|| panic!("{host} is an address"));
            assert_eq!(
                EgressPolicy::default().check(address, true),
                Err(EgressDenied::PrivateAddress(address)),
                "{host}"
            );
        }
    }

    #[test]
    fn public_addresses_require_https() {
        for host in [
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "192.0.1.1",
            "[2606:4700::1111]",
            "[2a00:1450::1]",
        ] {
            let address = parse(&format!("https://{host}/")).address().unwrap();
            assert_eq!(EgressPolicy::default().check(address, true), Ok(()), "{host}");
            assert_eq!(
                EgressPolicy::default().check(address, false),
                Err(EgressDenied::Plaintext(address))
            );
        }
    }

    #[test]
    fn only_the_networks_of_the_operator_are_allowed() {
        let policy = EgressPolicy::allowing(vec![
            "127.0.0.1/32".parse().unwrap(),
            "10.1.0.0/16".parse().unwrap(),
        ]);
        for (address, https, allowed) in [
            ("127.0.0.1", false, true),
            ("10.1.2.3", false, true),
            ("127.0.0.2", true, false),
            ("10.2.0.1", true, false),
            ("::1", true, false),
            ("::ffff:127.0.0.1", true, false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(policy.check(address, https).is_ok(), allowed, "{address}");
            let local = policy.with_loopback().check(address, https).is_ok();
            assert_eq!(
                local,
                allowed || address.is_loopback() && address != IpAddr::from([127, 0, 0, 2])
            );
        }
    }

    #[test]
    fn only_some_ports_are_allowed() {
        let policy = EgressPolicy::default();
        for (port, allowed) in [
            (80, true),
            (443, true),
            (8_443, true),
            (65_535, true),
            (22, false),
            (25, false),
            (587, false),
        ] {
            assert_eq!(policy.check_port(port).is_ok(), allowed, "{port}");
        }
        let one = policy.with_ports(vec!["443".parse().unwrap()]);
        assert_eq!(one.check_port(8_443), Err(EgressDenied::Port(8_443)));
        for text in ["443", "1024-65535"] {
            assert_eq!(text.parse::<PortRange>().unwrap().to_string(), text);
        }
        for wrong in ["", "0", "http", "2-1", "1-", "65536"] {
            assert_eq!(wrong.parse::<PortRange>(), Err(BadPortRange), "{wrong}");
        }
    }
}
