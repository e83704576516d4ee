//! Problem documents (RFC 9457): the only place where an error becomes an HTTP status and a body.

pub(crate) mod code;
pub(crate) mod fault;

use crate::error::code::ProblemCode;
use crate::error::fault::{Fault, FaultCode};
use crate::unknown_path;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::money::Amount;
use heliograph_domain::wording::cancellation::not_cancellable;
use heliograph_domain::wording::{endpoints, limits, sentence};
use heliograph_http::ProtocolError;
use heliograph_http::layers::around::Around;
use heliograph_http::layers::request_id::REQUEST_ID;
use heliograph_service::kernel::error::{ConflictReason, DestinationReason, Error, Shortfall};
use heliograph_service::kernel::log_limit::LogLimit;
use serde::Serialize;
use std::borrow::Cow;
use utoipa::ToSchema;

/// An error response before it is rendered.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    code: ProblemCode,
    detail: Cow<'static, str>,
    faults: Vec<Fault>,
    /// The seconds after which the request may be retried, if it was only rejected for now.
    retry_after: u16,
}

/// Seconds after which a rejected request may be retried.
const RETRY: u16 = 1;
/// Seconds after which a request beyond a daily limit may be retried.
const DAILY_RETRY: u16 = 3_600;

impl Problem {
    fn new(code: ProblemCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { code, detail: detail.into(), faults: Vec::new(), retry_after: RETRY }
    }

    pub(crate) fn invalid(detail: impl Into<Cow<'static, str>>, faults: Vec<Fault>) -> Self {
        Self { faults, ..Self::new(ProblemCode::InvalidRequest, detail) }
    }

    pub(crate) fn unauthenticated() -> Self {
        let detail = "Send a valid API key as 'Authorization: Bearer hg_…'.";
        Self::new(ProblemCode::Unauthenticated, detail)
    }

    pub(crate) fn not_found() -> Self {
        Self::new(ProblemCode::NotFound, "Not found, or you do not have access to it.")
    }

    fn unknown_path(path: &str) -> Self {
        Self::new(ProblemCode::NotFound, unknown_path::explain(path))
    }

    pub(crate) fn method_not_allowed() -> Self {
        let detail = "This path does not support this method. See the Allow header.";
        Self::new(ProblemCode::MethodNotAllowed, detail)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let detail = format!("The body must not exceed {limit} bytes.");
        Self::new(ProblemCode::PayloadTooLarge, detail)
    }

    pub(crate) fn unsupported_media_type(wanted: &str) -> Self {
        let detail = format!("Send the body as 'Content-Type: {wanted}'.");
        Self::new(ProblemCode::UnsupportedMediaType, detail)
    }

    pub(crate) fn unsupported_charset(name: &str) -> Self {
        let detail = format!("Send the body in UTF-8, not in '{name}'.");
        Self::new(ProblemCode::UnsupportedMediaType, detail)
    }

    pub(crate) fn compressed() -> Self {
        let detail =
            "Compressed bodies are not supported. Send the body without 'Content-Encoding'.";
        Self::new(ProblemCode::UnsupportedMediaType, detail)
    }

    pub(crate) fn overloaded() -> Self {
        let detail = "The service is temporarily unavailable, and nothing was stored. Retry after \
                      the time in Retry-After.";
        Self::new(ProblemCode::Overloaded, detail)
    }

    fn outcome_unknown() -> Self {
        let detail = "The connection to the database was lost during the commit, so the outcome is \
                      unknown. Retry the request with the same Idempotency-Key; it is never \
                      carried out twice.";
        Self::new(ProblemCode::Overloaded, detail)
    }

    pub(crate) fn rate_limited() -> Self {
        let detail = "The API key exceeded its rate limit, and this request had no effect. Retry \
                      after the time in Retry-After.";
        Self::new(ProblemCode::RateLimited, detail)
    }

    pub(crate) fn too_many_open_requests() -> Self {
        let detail = "Too many requests of this client are open at the same time, and this one had \
                      no effect. Retry after the time in Retry-After, with fewer requests at a time.";
        Self::new(ProblemCode::RateLimited, detail)
    }

    /// A limit of the account. Only limits of a day end by themselves.
    fn limit_reached(limit: AccountLimit, max: u32) -> Self {
        let detail = limits::limit_reached(limit, max);
        match limit.is_daily() {
            true => {
                Self { retry_after: DAILY_RETRY, ..Self::new(ProblemCode::RateLimited, detail) }
            }
            false => Self::new(ProblemCode::Conflict, detail),
        }
    }

    pub(crate) fn request_timeout() -> Self {
        Self::new(
            ProblemCode::RequestTimeout,
            "The body took too long to arrive, and nothing was stored. Send the request again.",
        )
    }

    pub(crate) fn metrics_token() -> Self {
        let detail = "Send the value of telemetry.metrics_token as 'Authorization: Bearer …'.";
        Self::new(ProblemCode::Unauthenticated, detail)
    }

    pub(crate) fn metrics_hidden() -> Self {
        let detail = "Metrics are not served here, because this address is public. Set \
                      telemetry.metrics_token, or telemetry.metrics_listen.";
        Self::new(ProblemCode::NotFound, detail)
    }

    fn headers_too_large() -> Self {
        let detail = "The request line and the headers must not exceed 32 KiB and 100 headers.";
        Self::new(ProblemCode::HeadersTooLarge, detail)
    }

    fn protocol_error(error: ProtocolError) -> Self {
        let invalid = |detail| Self::invalid(detail, Vec::new());
        match error {
            ProtocolError::Malformed => {
                invalid("The request is not valid HTTP: check its request line and its headers.")
            }
            ProtocolError::PlainHttp => {
                invalid("This port requires HTTPS. Use https:// in the URL.")
            }
            ProtocolError::HeadTooLarge => Self::headers_too_large(),
        }
    }

    /// Returns the code.
    pub(crate) const fn code(&self) -> ProblemCode {
        self.code
    }

    pub(crate) fn internal() -> Self {
        let detail = "An unexpected error occurred. Report the request id to the operator if it \
                      happens again.";
        Self::new(ProblemCode::Internal, detail)
    }

    fn too_many_parts(parts: u16, allowed: u16) -> Self {
        let detail = limits::message_parts(parts, allowed);
        let (pointer, code) = ("#/text".to_owned(), FaultCode::TooManyParts);
        Self::invalid(detail.clone(), vec![Fault { pointer, code, detail }])
    }

    /// Renders the response, with the id of the request.
    pub(crate) fn render(&self, request_id: &str, base_url: &str) -> Response {
        let info = self.code.info();
        let body = self.json_with_base(request_id, base_url);
        let mut response = (info.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, PROBLEM_TYPE);
        match info.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(self.retry_after));
            }
            _ => {}
        }
        response
    }

    /// Renders the body as JSON, with a relative `type`.
    pub(crate) fn json(&self, request_id: &str) -> Vec<u8> {
        self.json_with_base(request_id, "")
    }

    fn json_with_base(&self, request_id: &str, base_url: &str) -> Vec<u8> {
        let info = self.code.info();
        let body = ProblemBody {
            kind: format!("{base_url}{}", self.code.docs_path()),
            title: info.title,
            status: info.status.as_u16(),
            detail: &self.detail,
            code: info.name,
            request_id,
            errors: &self.faults,
        };
        serde_json::to_vec(&body).unwrap_or_default()
    }

    /// Returns an example of a problem with this code, for the documentation.
    pub(crate) fn sample(code: ProblemCode) -> Self {
        match code {
            ProblemCode::InvalidRequest => {
                let detail =
                    "Unknown country code. Use the international format, like +447700900123.";
                let fault = Fault {
                    pointer: "#/recipient".to_owned(),
                    code: FaultCode::InvalidNumber,
                    detail: detail.to_owned(),
                };
                Self::invalid("1 validation error. See 'errors'.", vec![fault])
            }
            ProblemCode::Unauthenticated => Self::unauthenticated(),
            ProblemCode::InsufficientBalance => Error::PriceNotCovered(Shortfall {
                price: Amount(42_000),
                available: Amount(10_000),
                currency: "EUR".to_owned(),
            })
            .into(),
            ProblemCode::ScopeMissing => Error::Scope("send").into(),
            ProblemCode::RecipientOptedOut => Error::RecipientOptedOut.into(),
            ProblemCode::DestinationNotAllowed => {
                Error::DestinationNotAllowed(DestinationReason::NoRoute).into()
            }
            ProblemCode::SenderNotAllowed => Error::SenderNotAllowed.into(),
            ProblemCode::NotFound => Self::not_found(),
            ProblemCode::MethodNotAllowed => Self::method_not_allowed(),
            ProblemCode::RequestTimeout => Self::request_timeout(),
            ProblemCode::Conflict => Self::new(code, "The limit of 1000 lists is reached."),
            ProblemCode::RequestInFlight => Error::RequestInFlight.into(),
            ProblemCode::NotCancellable => {
                Self::new(code, "The message was handed to the carrier.")
            }
            ProblemCode::PayloadTooLarge => Self::too_large(1 << 20),
            ProblemCode::UnsupportedMediaType => Self::unsupported_media_type("application/json"),
            ProblemCode::IdempotencyKeyReused => Error::IdempotencyKeyReused.into(),
            ProblemCode::RateLimited => Self::rate_limited(),
            ProblemCode::HeadersTooLarge => Self::headers_too_large(),
            ProblemCode::Internal => Self::internal(),
            ProblemCode::Overloaded => Self::overloaded(),
        }
    }
}

/// A problem document (RFC 9457).
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProblemBody<'a> {
    /// The page that documents the code: an absolute URL if the operator has set `public_url`,
    /// otherwise its path on this server.
    #[serde(rename = "type")]
    #[schema(format = "uri-reference")]
    kind: String,
    /// A short summary of `code` for people.
    title: &'a str,
    /// The HTTP status of the response.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// An explanation of this occurrence for people. Do not parse it.
    detail: &'a str,
    #[schema(value_type = ProblemCode)]
    code: &'a str,
    /// The id of the request, the same as in the header `X-Request-Id`.
    request_id: &'a str,
    /// The validation errors of single values. Absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<Fault>)]
    errors: &'a [Fault],
}

/// Attaches the problem to the response; the middleware, which knows the request id, renders it.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.code.info().status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

static OVERLOADED: LogLimit = LogLimit::new();
static OUTCOME_UNKNOWN: LogLimit = LogLimit::new();

impl From<Error> for Problem {
    fn from(e: Error) -> Self {
        let problem = |code, detail: &'static str| Self::new(code, detail);
        match e {
            Error::Unauthenticated => Self::unauthenticated(),
            Error::Scope(scope) => {
                let detail = format!("The API key lacks the scope '{scope}'.");
                Self::new(ProblemCode::ScopeMissing, detail)
            }
            Error::NotFound => Self::not_found(),
            Error::InvalidEndpoint(why) => {
                Self::invalid(sentence(&endpoints::invalid(&why)), Vec::new())
            }
            Error::WeakPassword(why) => Self::invalid(why.to_string(), Vec::new()),
            Error::Conflict(reason) => Self::new(ProblemCode::Conflict, conflict_detail(&reason)),
            Error::RecipientOptedOut => problem(
                ProblemCode::RecipientOptedOut,
                "The recipient is on the default opt-out list, and nothing was stored. Set \
                 \"blockOptout\": false to send anyway.",
            ),
            Error::InsufficientBalance => problem(
                ProblemCode::InsufficientBalance,
                "The account balance does not cover this, and nothing was stored.",
            ),
            Error::PriceNotCovered(shortfall) => {
                let detail = format!(
                    "{} Nothing was stored. Top up the account, or use a test key.",
                    sentence(&shortfall.to_string())
                );
                Self::new(ProblemCode::InsufficientBalance, detail)
            }
            Error::DestinationNotAllowed(reason) => Self::new(
                ProblemCode::DestinationNotAllowed,
                match reason {
                    DestinationReason::NoRoute => {
                        format!("{} Ask the operator to add a route.", limits::NO_ROUTE)
                    }
                    DestinationReason::NoPrice => {
                        format!("{} Ask the operator to add a price.", limits::NO_PRICE)
                    }
                },
            ),
            Error::SenderNotAllowed => {
                problem(ProblemCode::SenderNotAllowed, limits::SENDER_NOT_ALLOWED)
            }
            Error::TooManyParts { parts, allowed } => Self::too_many_parts(parts, allowed),
            Error::LimitReached { limit, max } => Self::limit_reached(limit, max),
            Error::IdempotencyKeyReused => problem(
                ProblemCode::IdempotencyKeyReused,
                "This Idempotency-Key was used with a different body. Use a new key, or send the \
                 same body again.",
            ),
            Error::RequestInFlight => problem(
                ProblemCode::RequestInFlight,
                "A request with this Idempotency-Key is still being processed. Retry in a moment.",
            ),
            Error::NotCancellable(reason) => Self::new(
                ProblemCode::NotCancellable,
                format!(
                    "{} A message can be cancelled only while no part was sent or is being sent.",
                    not_cancellable(reason)
                ),
            ),
            Error::Overloaded(why) => {
                if let Some(omitted) = OVERLOADED.admit() {
                    tracing::warn!(why, omitted, "request rejected: overloaded");
                }
                Self::overloaded()
            }
            Error::CommitUnknown(why) => {
                if let Some(omitted) = OUTCOME_UNKNOWN.admit() {
                    tracing::error!(why, omitted, "commit outcome unknown");
                }
                Self::outcome_unknown()
            }
            Error::Installation(why) | Error::Internal(why) => {
                tracing::error!(why, "internal error");
                Self::internal()
            }
        }
    }
}

/// Explains the conflicts that API requests can cause.
fn conflict_detail(reason: &ConflictReason) -> Cow<'static, str> {
    match reason {
        ConflictReason::OptoutListLimit(limit) => limits::optout_lists(*limit).into(),
        ConflictReason::OptoutListExists => limits::OPTOUT_LIST_EXISTS.into(),
        ConflictReason::DefaultOptoutList => limits::DEFAULT_OPTOUT_LIST.into(),
        ConflictReason::DefaultOptoutListName => limits::DEFAULT_OPTOUT_LIST_NAME.into(),
        other => format!("The request conflicts with the current state: {}.", other.code()).into(),
    }
}

/// The middleware that renders problems. A problem travels as an extension of its response,
/// because only the middleware knows the id of the request.
#[derive(Clone, Debug, Default)]
pub struct ProblemDocuments {
    /// The URL of this service that `type` begins with, without a trailing slash; empty for a path.
    pub base_url: String,
}

impl Around for ProblemDocuments {
    type State = Option<HeaderValue>;

    fn before(&self, request: &mut Request) -> Result<Self::State, Box<Response>> {
        Ok(request.headers().get(REQUEST_ID).cloned())
    }

    fn after(&self, id: Self::State, response: &mut Response) {
        let Some(problem) = response.extensions_mut().remove::<Problem>() else { return };
        let id = id.as_ref().and_then(|id| id.to_str().ok()).unwrap_or_default();
        let mut document = problem.render(id, &self.base_url);
        // Existing headers, such as Allow, are kept.
        for (name, value) in response.headers() {
            if !document.headers().contains_key(name) && name != header::CONTENT_LENGTH {
                document.headers_mut().insert(name, value.clone());
            }
        }
        *response = document;
    }
}

impl ProblemDocuments {
    /// Renders the body of the response to a request that is not valid HTTP.
    pub fn protocol_error(&self, error: ProtocolError, request_id: &str) -> Vec<u8> {
        Problem::protocol_error(error).json_with_base(request_id, &self.base_url)
    }
}

/// The media type of problem documents.
pub const PROBLEM_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Returns the response to a request over plain HTTP behind a reverse proxy.
pub fn https_required() -> Response {
    let detail = "Use HTTPS: API keys and sessions must not travel unencrypted. Replace the API \
                  key that you sent. (For the operator: this service runs behind a reverse proxy, \
                  which must set X-Forwarded-Proto, and whose address must be in \
                  server.trusted_proxies.)";
    Problem::invalid(detail, Vec::new()).into_response()
}

/// Returns the response to a request that does not name exactly one host.
pub fn invalid_host() -> Response {
    let detail = "The request must have exactly one valid Host header.";
    Problem::invalid(detail, Vec::new()).into_response()
}

/// Returns the response to a request for a path that does not exist.
pub fn not_found(path: &str) -> Response {
    Problem::unknown_path(path).into_response()
}

/// Returns the response to a request whose method the path does not support.
pub fn method_not_allowed() -> Response {
    Problem::method_not_allowed().into_response()
}

/// Returns the response to a request that the node has no capacity for, or does not accept because
/// it shuts down.
pub fn overloaded() -> Response {
    Problem::overloaded().into_response()
}

/// Returns the response to a client that has too many open requests.
pub fn too_many_open_requests() -> Response {
    Problem::too_many_open_requests().into_response()
}
