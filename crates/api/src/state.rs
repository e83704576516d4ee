//! The state that every handler can use.

use crate::account_shares::AccountShares;
use crate::metrics_access::MetricsAccess;
use crate::rate_limit::RateLimit;
use crate::readiness::Readiness;
use heliograph_http::RequestGate;
use heliograph_service::identity::api_keys::Keyring;
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::writer::Writer;

/// The state of the API.
pub struct ApiState {
    /// The context of the business rules.
    pub(crate) context: Context,
    /// The handle of the database writer.
    pub(crate) writer: Writer,
    /// Authenticates API keys.
    pub(crate) keyring: Keyring,
    /// The rate limit of API keys.
    pub(crate) rate_limit: RateLimit,
    /// Tells whether the node drains.
    pub(crate) gate: RequestGate,
    /// The readiness of this node.
    pub(crate) readiness: Readiness,
    /// The rule for who may read the metrics.
    pub(crate) metrics_access: MetricsAccess,
    /// The share of each account in the node's capacity.
    pub(crate) shares: AccountShares,
}

impl ApiState {
    /// Creates the state of a node.
    pub fn new(
        context: Context,
        writer: Writer,
        keyring: Keyring,
        rate_limit: RateLimit,
        gate: RequestGate,
    ) -> Self {
        Self {
            context,
            writer,
            keyring,
            rate_limit,
            gate,
            readiness: Readiness::default(),
            metrics_access: MetricsAccess::Open,
            shares: AccountShares::default(),
        }
    }

    /// Sets the rule for who may read the metrics; everybody may at first.
    #[must_use]
    pub fn with_metrics_access(self, metrics_access: MetricsAccess) -> Self {
        Self { metrics_access, ..self }
    }
}
