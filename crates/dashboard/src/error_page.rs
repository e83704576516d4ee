//! Errors of pages, with their explanations.

use crate::reasons;
use crate::sign_in_throttle::TooManyAttempts;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::wording::cancellation::not_cancellable;
use heliograph_domain::wording::{endpoints, limits, sentence};
use heliograph_http::BodyError;
use heliograph_service::kernel::error::Error;
use heliograph_service::kernel::log_limit::LogLimit;

/// The reason why a page is not shown.
#[derive(Clone, Debug)]
pub(crate) enum PageError {
    /// The user must sign in first; continues at this path afterwards.
    SignInRequired(String),
    /// The user must enable two-factor authentication first.
    TwoFactorRequired,
    /// The page belongs to the other mode; continues at this path, which names it.
    OtherMode(String),
    /// The rate limit for attempts is exceeded.
    RateLimited(TooManyAttempts),
    /// A page explains the error.
    Message {
        /// The HTTP status.
        status: StatusCode,
        /// The title of the page.
        title: &'static str,
        /// The explanation, and what to do.
        text: String,
    },
}

impl PageError {
    fn message(status: StatusCode, title: &'static str, text: &str) -> Self {
        Self::Message { status, title, text: text.to_owned() }
    }

    fn failed(text: &str) -> Self {
        Self::message(StatusCode::CONFLICT, "Request failed", text)
    }

    pub(crate) fn not_found() -> Self {
        let text = "This page does not exist, or you do not have access to it. Check that the right account \
                    and mode (test or live) are selected.";
        Self::message(StatusCode::NOT_FOUND, "Page not found", text)
    }

    /// A one-time link that was used or has expired.
    pub(crate) fn link_expired(text: &str) -> Self {
        Self::message(StatusCode::NOT_FOUND, "Link expired", text)
    }

    pub(crate) fn method_not_allowed() -> Self {
        let text =
            "This URL only accepts form submissions. Open a page from the dashboard instead.";
        Self::message(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed", text)
    }

    pub(crate) fn invalid_form() -> Self {
        let text = "The form could not be read. Go back, reload the page and submit it again.";
        Self::message(StatusCode::BAD_REQUEST, "Incomplete form", text)
    }

    pub(crate) fn too_large() -> Self {
        let text = "The form is too large. Go back, shorten your input and submit it again.";
        Self::too_large_because(text)
    }

    fn form_timeout() -> Self {
        let text = "The form took too long to arrive, and nothing was changed. Check your connection, go back \
                    and submit it again.";
        Self::message(StatusCode::REQUEST_TIMEOUT, "Request timeout", text)
    }

    fn overloaded() -> Self {
        let text = "The server is busy, and nothing was changed. Go back and submit the form again in a moment.";
        Self::message(StatusCode::SERVICE_UNAVAILABLE, "Server busy", text)
    }

    /// A body above the limit, with the limit in the text.
    pub(crate) fn too_large_because(text: &str) -> Self {
        Self::message(StatusCode::PAYLOAD_TOO_LARGE, "Too large", text)
    }

    pub(crate) fn csrf_failed() -> Self {
        let text = "This form does not belong to your current session. Nothing was changed. Go back, reload the \
                    page and submit it again.";
        Self::message(StatusCode::FORBIDDEN, "Session mismatch", text)
    }

    pub(crate) fn context_changed() -> Self {
        let text = "You switched account or mode in another tab. Nothing was changed. Go back, reload the page \
                    and try again.";
        Self::message(StatusCode::CONFLICT, "Account or mode changed", text)
    }

    /// Too many event streams of an account or a client.
    pub(crate) fn too_many_streams(max: u32) -> Self {
        let text = limits::limit_reached(AccountLimit::EventStreams, max);
        Self::Message { status: StatusCode::TOO_MANY_REQUESTS, title: "Too many open pages", text }
    }

    pub(crate) fn forbidden() -> Self {
        let text = "Your role does not allow this action. Ask an owner or admin of the account.";
        Self::message(StatusCode::FORBIDDEN, "You don't have permission", text)
    }
}

static UNAVAILABLE: LogLimit = LogLimit::new();

impl From<Error> for PageError {
    fn from(error: Error) -> Self {
        match error {
            Error::Unauthenticated => Self::SignInRequired("/".to_owned()),
            Error::NotFound => Self::not_found(),
            Error::Scope(_) => Self::forbidden(),
            Error::InvalidEndpoint(why) => Self::failed(&sentence(&endpoints::invalid(&why))),
            Error::WeakPassword(why) => Self::failed(&why.to_string()),
            Error::InsufficientBalance => {
                Self::failed("Insufficient balance: the balance of an account cannot be negative.")
            }
            Error::PriceNotCovered(shortfall) => Self::failed(&reasons::not_covered(&shortfall)),
            Error::RecipientOptedOut => Self::failed(reasons::OPTED_OUT),
            Error::DestinationNotAllowed(reason) => Self::failed(reasons::refused(reason)),
            Error::SenderNotAllowed => Self::failed(limits::SENDER_NOT_ALLOWED),
            Error::TooManyParts { parts, allowed } => {
                Self::failed(&reasons::too_many_segments(parts, allowed))
            }
            Error::LimitReached { limit, max } => Self::failed(&limits::limit_reached(limit, max)),
            Error::IdempotencyKeyReused => Self::failed(reasons::ALREADY_SENT),
            Error::Conflict(reason) => Self::failed(&reasons::conflict(&reason)),
            Error::NotCancellable(reason) => Self::failed(not_cancellable(reason)),
            Error::RequestInFlight | Error::Overloaded(_) | Error::CommitUnknown(_) => {
                if let Some(omitted) = UNAVAILABLE.admit() {
                    tracing::warn!(%error, omitted, "page temporarily unavailable");
                }
                let text = "The service is temporarily unavailable. Try again in a few seconds.";
                Self::message(StatusCode::SERVICE_UNAVAILABLE, "Temporarily unavailable", text)
            }
            Error::Installation(_) | Error::Internal(_) => {
                tracing::error!(%error, "failed to serve page");
                let text = "An internal error occurred. The operator can find the details in the server log.";
                Self::message(StatusCode::INTERNAL_SERVER_ERROR, "Internal error", text)
            }
        }
    }
}

impl From<BodyError> for PageError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge(_) => Self::too_large(),
            BodyError::Timeout => Self::form_timeout(),
            BodyError::Overloaded => Self::overloaded(),
            BodyError::Incomplete => Self::invalid_form(),
        }
    }
}

impl From<TooManyAttempts> for PageError {
    fn from(many: TooManyAttempts) -> Self {
        Self::RateLimited(many)
    }
}

/// Passes the error in the response extensions to the middleware that renders it: the page depends
/// on who is signed in.
impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
