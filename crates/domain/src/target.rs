//! Targets: where a webhook may go, and which addresses no webhook may ever reach.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use ipnet::IpNet;
use std::future::Future;
use std::io;
use std::pin::Pin;
use url::{Host, Url};

/// The longest URL that is taken.
const MAX_URL: usize = 2_000;

/// A parsed webhook URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    url: Url,
}

/// Why a URL is no target.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadTarget {
    /// It can't be read.
    #[error("this is no URL: write it like https://example.com/webhooks ({0})")]
    Unreadable(String),
    /// Too long.
    #[error("the URL is longer than 2000 characters")]
    TooLong,
    /// Neither http nor https.
    #[error("the URL must begin with https://, or with http:// to what is private")]
    Scheme,
    /// It has a user or a password in it.
    #[error("the URL must not hold a user or password: webhooks are signed instead")]
    Credentials,
    /// It has a fragment, which would never be sent.
    #[error("the URL must not have a '#' part: it would never be sent")]
    Fragment,
}

impl Target {
    /// Reads a URL as browsers do, so that an address is known in each of its spellings.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, BadTarget> {
        if text.len() > MAX_URL {
            return Err(BadTarget::TooLong);
        }
        // Browsers leave these out, and what is stored would not be what was written.
        if text.chars().any(char::is_control) {
            return Err(BadTarget::Unreadable("a line end or tab in it".to_owned()));
        }
        // Browsers take what comes after too many slashes for the host.
        if text.contains(":///") {
            return Err(BadTarget::Unreadable("empty host".to_owned()));
        }
        let url = Url::parse(text).map_err(|e| BadTarget::Unreadable(e.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(BadTarget::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadTarget::Credentials);
        }
        if url.fragment().is_some() {
            return Err(BadTarget::Fragment);
        }
        Ok(Self { url })
    }

    /// As it is stored and shown.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Whether it speaks TLS.
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The port, written or usual.
    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(443)
    }

    /// The address, when the host is one.
    pub fn address(&self) -> Option<IpAddr> {
        match self.url.host()? {
            Host::Ipv4(v4) => Some(v4.into()),
            Host::Ipv6(v6) => Some(v6.into()),
            Host::Domain(_) => None,
        }
    }

    /// The name to resolve, or the address without brackets.
    pub fn host(&self) -> String {
        match self.url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(v4)) => v4.to_string(),
            Some(Host::Ipv6(v6)) => v6.to_string(),
            None => String::new(),
        }
    }

    /// The `Host` header: with the port where it is not the usual one.
    pub fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// What stands in the request line: path and query.
    pub fn path(&self) -> String {
        match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        }
    }
}

/// The addresses of a host, or why there are none.
pub type Resolved = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Finds the addresses of hosts. Handed in, so that the rules open no socket and tests choose the answers.
pub trait Resolver: Send + Sync + 'static {
    /// Asks for the addresses of a name.
    fn resolve(&self, host: String) -> Resolved;
}

/// Why an address is not dialled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// It is not on the public Internet.
    #[error(
        "{0} is not a public address: webhooks reach private ones only where [webhooks] allow_private opens them"
    )]
    Private(IpAddr),
    /// It is, but in the clear.
    #[error(
        "plain http:// to {0}: webhooks travel in the clear only where [webhooks] allow_private allows it, so use https://"
    )]
    Clear(IpAddr),
}

/// Which addresses webhooks may reach: the public ones, and those that the operator opened.
#[derive(Clone, Debug, Default)]
pub struct Reach(Vec<IpNet>);

impl Reach {
    /// The public addresses and these.
    pub const fn with(private: Vec<IpNet>) -> Self {
        Self(private)
    }

    /// Every address there is: for what a person does on their own machine.
    pub fn everything() -> Self {
        Self(vec![
            IpNet::new_assert(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
            IpNet::new_assert(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
        ])
    }

    /// Also loopback: for what the operator runs on this machine.
    pub fn and_loopback(&self) -> Self {
        let mut all = self.0.clone();
        all.extend([
            IpNet::from(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            IpNet::from(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        ]);
        Self(all)
    }

    /// Refuses what must not be dialled.
    ///
    /// # Errors
    /// Why.
    pub fn check(&self, address: IpAddr, https: bool) -> Result<(), Refused> {
        if self.0.iter().any(|net| net.contains(&address)) {
            Ok(())
        } else if !is_public(address) {
            Err(Refused::Private(address))
        } else if !https {
            Err(Refused::Clear(address))
        } else {
            Ok(())
        }
    }
}

/// Whether an address is one of the public Internet's hosts, by the registries of special addresses (RFC 6890
/// and what was registered since).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !is_special_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_special_v4(address: Ipv4Addr) -> bool {
    match address.octets() {
        [0 | 10 | 127, ..] | [224..=255, ..] => true, // this network, private, loopback, multicast and reserved
        [100, 64..=127, ..] => true,                  // shared by carrier-grade NAT
        [168, 63, 129, 16] => true, // a cloud's metadata, on an address that looks public
        [169, 254, ..] => true,     // link-local, and most clouds' metadata
        [172, 16..=31, ..] | [192, 168, ..] => true, // private
        [192, 0, 0 | 2, _] => true, // protocol assignments, documentation
        [192, 88, 99, _] => true,   // 6to4 relays
        [192, 31, 196, _] | [192, 52, 193, _] | [192, 175, 48, _] => true, // AS112 and AMT
        [198, 18 | 19, ..] => true, // benchmarks
        [198, 51, 100, _] | [203, 0, 113, _] => true, // documentation
        _ => false,
    }
}

/// Only 2000::/3 is handed out to hosts; within it, some ranges lead elsewhere. Outside it are loopback, mapped
/// and compatible addresses, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), private, link-local and multicast ones.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x2001, 0..=0x1ff, ..] => false, // protocol assignments, Teredo among them
        [0x2001, 0xdb8, ..] => false,     // documentation
        [0x2002, ..] => false,            // 6to4: a v4 address in disguise
        [0x2620, 0x4f, 0x8000, ..] => false, // AS112
        [0x3ffe, ..] => false,            // the 6bone that was
        [0x3fff, 0..=0xfff, ..] => false, // documentation
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::parse(url).unwrap()
    }

    #[test]
    fn urls_are_read_strictly() {
        for url in [
            "",
            "example.com",
            "ftp://example.com",
            "https://",
            "https://u@example.com",
            "https://u:p@example.com",
            "https://example.com/#top",
            "file:///etc/passwd",
            "https://exa mple.com",
            "javascript:alert(1)",
            "https://[::1",
            "https://example.com:99999",
            "https://%00/",
            "http:///x", // which a browser reads as http://x/
            "https://example.com/\r\nhook",
            "https://example.com/a\tb",
        ] {
            assert!(Target::parse(url).is_err(), "{url}");
        }
        assert_eq!(
            Target::parse(&format!("https://x.org/{}", "a".repeat(2_000))),
            Err(BadTarget::TooLong)
        );
        let t = target("https://Example.com:8443/hooks?a=b");
        assert_eq!(
            (t.host().as_str(), t.port(), t.path().as_str()),
            ("example.com", 8443, "/hooks?a=b")
        );
        assert_eq!((t.authority().as_str(), t.is_https()), ("example.com:8443", true));
        assert_eq!(target("http://example.com").port(), 80);
        assert_eq!(target("https://[2606:4700::1111]:444/").authority(), "[2606:4700::1111]:444");
    }

    #[test]
    fn an_address_is_known_in_each_of_its_spellings() {
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
            let address = target(&format!("https://{host}/")).address();
            let address = address.unwrap_or_else(|| panic!("{host} is an address"));
            assert_eq!(
                Reach::default().check(address, true),
                Err(Refused::Private(address)),
                "{host}"
            );
        }
    }

    #[test]
    fn public_hosts_are_reached_by_tls_alone() {
        for host in [
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "192.0.1.1",
            "[2606:4700::1111]",
            "[2a00:1450::1]",
        ] {
            let address = target(&format!("https://{host}/")).address().unwrap();
            assert_eq!(Reach::default().check(address, true), Ok(()), "{host}");
            assert_eq!(Reach::default().check(address, false), Err(Refused::Clear(address)));
        }
    }

    #[test]
    fn the_operator_opens_what_is_needed_and_no_more() {
        let open =
            Reach::with(vec!["127.0.0.1/32".parse().unwrap(), "10.1.0.0/16".parse().unwrap()]);
        for (address, https, fine) in [
            ("127.0.0.1", false, true),
            ("10.1.2.3", false, true),
            ("127.0.0.2", true, false),
            ("10.2.0.1", true, false),
            ("::1", true, false),
            ("::ffff:127.0.0.1", true, false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(open.check(address, https).is_ok(), fine, "{address}");
            let local = open.and_loopback().check(address, https).is_ok();
            assert_eq!(
                local,
                fine || address.is_loopback() && address != IpAddr::from([127, 0, 0, 2])
            );
        }
    }
}
