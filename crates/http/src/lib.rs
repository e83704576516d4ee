//! The HTTP server: listener, TLS, connection and request limits, graceful drain, and the
//! middleware that fits every route. This crate knows no route.

mod accept_loop;
mod body;
mod body_budget;
mod certificate;
mod client;
mod connection;
mod documented_errors;
mod drain;
mod error_document;
mod idle;
pub mod layers;
mod limits;
mod static_asset;
mod tls;
mod usage_limit;

pub use accept_loop::{ServerOptions, bind, serve};
pub use body::{BodyError, read_body};
pub use certificate::{CertificateError, CertificateReloader, Tls, read as read_certificate};
pub use client::{ClientAddress, TrustedProxies};
pub use drain::{DrainController, RequestGate, RequestPermit};
pub use error_document::{ErrorDocument, ErrorDocuments, ProtocolError};
pub use static_asset::StaticAsset;
pub use usage_limit::{UsageLimit, UsageShare};
