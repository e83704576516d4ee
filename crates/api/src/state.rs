//! The state that every handler can use.

use crate::rate_limit::RateLimit;
use heliograph_http::RequestGate;
use heliograph_service::identity::api_keys::Keyring;
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::writer::Writer;

/// The state of the API.
pub struct ApiState {
    /// The context of the business rules.
    pub context: Context,
    /// The handle of the database writer.
    pub writer: Writer,
    /// Authenticates API keys.
    pub keyring: Keyring,
    /// The rate limit of API keys.
    pub rate_limit: RateLimit,
    /// Tells whether the node drains.
    pub gate: RequestGate,
}
