//! Why a webhook endpoint cannot be registered or used, and why one is switched off.
//!
//! These are codes; [`crate::wording::endpoints`] has the texts.

use crate::egress_policy::EgressDenied;
use crate::id::EndpointId;
use crate::webhook_url::BadWebhookUrl;

/// The reason why an endpoint is switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DisabledReason {
    /// The endpoint responded with 410 Gone.
    Gone,
    /// The endpoint only failed for [`DISABLE_AFTER`](crate::webhook::DISABLE_AFTER).
    Failing,
    /// A user switched it off.
    Manual,
}

impl DisabledReason {
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::Gone, Self::Failing, Self::Manual];

    /// Returns the stored code.
    pub const fn code(self) -> i16 {
        match self {
            Self::Gone => 1,
            Self::Failing => 2,
            Self::Manual => 3,
        }
    }

    /// Returns the value of a stored code.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }
}

/// The reason why a webhook endpoint cannot be registered or used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InvalidEndpoint {
    /// The URL is not accepted.
    Url(BadWebhookUrl),
    /// The egress policy denies the address (SSRF protection).
    Denied(EgressDenied),
    /// The host name cannot be resolved.
    HostNotFound {
        /// The host name.
        host: String,
        /// The error of the resolver.
        error: String,
    },
    /// The host name, which is given, has no address.
    NoAddress(String),
    /// The account has an endpoint with this URL in this mode.
    Duplicate(EndpointId),
    /// The endpoint is off.
    Off(EndpointId, DisabledReason),
}

impl InvalidEndpoint {
    /// Returns the code, for logs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Url(_) => "invalid_url",
            Self::Denied(_) => "address_denied",
            Self::HostNotFound { .. } => "host_not_found",
            Self::NoAddress(_) => "no_address",
            Self::Duplicate(_) => "duplicate_url",
            Self::Off(..) => "endpoint_off",
        }
    }
}
