//! What every handler may use.

use crate::entrance::Entrance;
use crate::gate::Gate;
use crate::rate_limit::RateLimit;
use axum::http::HeaderName;
use heliograph_service::api_keys::Keyring;
use heliograph_service::context::Context;
use heliograph_service::writer::Writer;
use std::sync::Arc;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What the handlers need.
pub struct App {
    /// For the rules.
    pub context: Context,
    /// The way to the database's writer.
    pub writer: Writer,
    /// Recognises API keys.
    pub keyring: Keyring,
    /// How many requests a key may make.
    pub rate_limit: RateLimit,
    /// What people pass who are not signed in yet.
    pub entrance: Entrance,
    /// Lets requests in, until the node drains.
    pub gate: Gate,
    /// Whether `X-Forwarded-Proto` is a proxy's word.
    pub behind_proxy: bool,
    /// Renders the metrics page, in Prometheus' text form.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
}
