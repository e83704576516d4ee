//! The options of `heliograph serve`.

use crate::config::Config;
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A part of the service that a node runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum NodeRole {
    /// Serve HTTP requests
    Web,
    /// Send messages and deliver webhooks
    Engine,
}

/// The options of `heliograph serve`.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on (overrides server.listen)
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// PEM file with the TLS certificate; enables HTTPS (overrides server.tls_cert)
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// PEM file with the private key of the certificate (overrides server.tls_key)
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// A reverse proxy terminates TLS; permits listening on non-loopback addresses without TLS
    #[arg(long)]
    behind_proxy: bool,
    /// Parts of the service to run on this node
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [NodeRole::Web, NodeRole::Engine])]
    pub(crate) role: Vec<NodeRole>,
}

impl ServeArgs {
    /// Returns whether no option is given.
    pub(crate) fn is_default(&self) -> bool {
        let default_listener =
            self.listen.is_none() && self.tls_cert.is_none() && self.tls_key.is_none();
        default_listener && !self.behind_proxy && self.role == [NodeRole::Web, NodeRole::Engine]
    }

    /// Overrides the configuration with the options given on the command line.
    pub(crate) fn apply(&self, config: &mut Config) {
        if let Some(listen) = self.listen {
            config.server.listen = listen;
        }
        if let Some(cert) = &self.tls_cert {
            config.server.tls_cert = Some(cert.clone());
        }
        if let Some(key) = &self.tls_key {
            config.server.tls_key = Some(key.clone());
        }
        config.server.behind_proxy |= self.behind_proxy;
    }
}
