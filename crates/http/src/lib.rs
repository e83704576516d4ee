//! The HTTP server: listener, TLS, connection and request limits, graceful drain, and the
//! middleware that fits every route. This crate knows no route.

mod accept_loop;
mod body_drain;
mod certificate;
mod client;
mod connection;
mod connection_limit;
mod drain;
mod idle;
pub mod layers;
mod limits;
mod static_asset;
mod tls;

pub use accept_loop::{ServerOptions, bind, serve};
pub use certificate::{CertificateError, CertificateReloader, Tls, read as read_certificate};
pub use client::ClientAddress;
pub use drain::{DrainController, RequestGate};
pub use static_asset::StaticAsset;
