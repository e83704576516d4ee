//! Resolves the hosts of webhooks: asynchronously, so that slow name servers hold no thread, and
//! with a cache.

use anyhow::Context;
use heliograph_domain::egress_policy::{ResolveFuture, Resolver};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// The file with the name servers of the operating system.
const FILE: &str = "/etc/resolv.conf";
/// The time limit of one question to one name server, and how often it is asked. A webhook has five
/// seconds to connect.
const TIMEOUT: Duration = Duration::from_secs(2);
const ATTEMPTS: usize = 2;
/// The number of cached names.
const CACHE_SIZE: u64 = 8_192;
/// The longest time for which addresses, and failures, are cached: a name that is mended must be
/// found again soon.
const MAX_AGE: Duration = Duration::from_secs(300);
const MAX_NEGATIVE_AGE: Duration = Duration::from_secs(10);

/// Asks name servers.
pub(crate) struct NameResolver(TokioResolver);

impl NameResolver {
    /// Creates a resolver that asks these servers; without any, those of the operating system
    /// (`/etc/resolv.conf`). `/etc/hosts` is read first.
    pub(crate) fn new(servers: &[SocketAddr]) -> anyhow::Result<Self> {
        // Without the file, the resolver of the operating system asks this one, too.
        let local = [SocketAddr::from((Ipv4Addr::LOCALHOST, 53))];
        let has_file = Path::new(FILE).exists();
        let servers = if servers.is_empty() && !has_file { &local } else { servers };
        let mut builder = match servers {
            [] => TokioResolver::builder_tokio().context(
                "failed to read /etc/resolv.conf: correct it, or set webhooks.dns_servers",
            )?,
            servers => {
                let servers = servers.iter().map(name_server).collect();
                let config = ResolverConfig::from_parts(None, Vec::new(), servers);
                TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            }
        };
        set_limits(builder.options_mut());
        Ok(Self(builder.build()?))
    }
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = address.port();
        connection
    });
    NameServerConfig::new(address.ip(), true, connections.into())
}

fn set_limits(options: &mut ResolverOpts) {
    options.timeout = TIMEOUT;
    options.attempts = ATTEMPTS;
    options.cache_size = CACHE_SIZE;
    options.positive_max_ttl = Some(MAX_AGE);
    options.negative_max_ttl = Some(MAX_NEGATIVE_AGE);
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
}

impl Resolver for NameResolver {
    fn resolve(&self, host: String) -> ResolveFuture {
        let resolver = self.0.clone();
        Box::pin(async move {
            let found = resolver.lookup_ip(host).await.map_err(explain)?;
            Ok(alternate(found.iter()))
        })
    }
}

/// Returns a short error: the original one repeats the question.
fn explain(error: NetError) -> io::Error {
    match error.is_nx_domain() || error.is_no_records_found() {
        true => io::Error::new(io::ErrorKind::NotFound, "the name does not exist"),
        false => io::Error::other(error),
    }
}

/// Alternates IPv4 and IPv6, since only the first addresses are tried.
fn alternate(addresses: impl Iterator<Item = IpAddr>) -> Vec<IpAddr> {
    let (v4, v6): (Vec<_>, Vec<_>) = addresses.partition(IpAddr::is_ipv4);
    let (mut v4, mut v6) = (v4.into_iter(), v6.into_iter());
    let mut all = Vec::new();
    loop {
        let before = all.len();
        all.extend(v4.next());
        all.extend(v6.next());
        if all.len() == before {
            return all;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_are_tried() {
        let addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"];
        let found = alternate(addresses.iter().map(|address| address.parse().unwrap()));
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["192.0.2.1", "2001:db8::1", "192.0.2.2", "192.0.2.3"]);
    }
}
