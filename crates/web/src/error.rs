//! The only place where an error becomes a status and a body: RFC 9457 problem details.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use heliograph_service::error::Error;
use serde::Serialize;
use std::borrow::Cow;

/// What a client is told when something does not work.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: Cow<'static, str>,
    faults: Vec<Fault>,
}

/// One thing that is wrong with a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Fault {
    /// Where: a JSON pointer into the body as a URI fragment, or `header:NAME`.
    pub(crate) pointer: String,
    pub(crate) code: &'static str,
    pub(crate) detail: String,
}

/// Seconds after which a request that was turned away may be tried again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

impl Problem {
    fn new(
        status: StatusCode,
        (code, title): (&'static str, &'static str),
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { status, code, title, detail: detail.into(), faults: Vec::new() }
    }

    pub(crate) fn invalid(detail: impl Into<Cow<'static, str>>, faults: Vec<Fault>) -> Self {
        let what = ("invalid_request", "The request is not valid");
        Self { faults, ..Self::new(StatusCode::BAD_REQUEST, what, detail) }
    }

    pub(crate) fn unauthenticated() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            ("unauthenticated", "No valid API key"),
            "Send a valid key as 'Authorization: Bearer hg_…'.",
        )
    }

    pub(crate) fn not_found() -> Self {
        let what = ("not_found", "Not found");
        Self::new(StatusCode::NOT_FOUND, what, "There is no such thing, or it is not yours.")
    }

    pub(crate) fn method_not_allowed() -> Self {
        let what = ("method_not_allowed", "Method not allowed");
        let detail = "This address exists, but not for this method: see the Allow header.";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, what, detail)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let what = ("payload_too_large", "The body is too large");
        let detail = format!("At most {limit} bytes are taken here.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, what, detail)
    }

    pub(crate) fn unsupported_media_type(wanted: &str) -> Self {
        let what = ("unsupported_media_type", "The body is of another media type");
        let detail = format!("Send the body as 'Content-Type: {wanted}'.");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, what, detail)
    }

    pub(crate) fn overloaded() -> Self {
        let what = ("overloaded", "Not now");
        let detail = "Nothing was accepted. Try again after the time in Retry-After.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, what, detail)
    }

    fn unsure() -> Self {
        let what = ("overloaded", "Not known");
        let detail = "The database was lost at the wrong moment: this may or may not have been accepted. Repeat the \
                      request; with the same Idempotency-Key it is never done twice.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, what, detail)
    }

    pub(crate) fn too_slow() -> Self {
        let what = ("request_timeout", "The body came too slowly");
        let detail = "Nothing was accepted. Send the whole body at once.";
        Self::new(StatusCode::REQUEST_TIMEOUT, what, detail)
    }

    pub(crate) fn internal() -> Self {
        let what = ("internal", "Internal error");
        let detail = "Something went wrong on our side. The request id helps to find it.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, what, detail)
    }

    /// The answer, with the id of the request that it answers.
    pub(crate) fn render(&self, request_id: &str) -> Response {
        let body = Body {
            kind: format!("/docs/errors/{}", self.code),
            title: self.title,
            status: self.status.as_u16(),
            detail: &self.detail,
            code: self.code,
            request_id,
            errors: &self.faults,
        };
        let json = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (self.status, json).into_response();
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, RETRY_AFTER);
            }
            _ => {}
        }
        response
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(rename = "type")]
    kind: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    code: &'a str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Fault],
}

/// Leaves the problem on the response; the layer that knows the request's id renders it.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Error> for Problem {
    fn from(e: Error) -> Self {
        let forbidden = |what, detail: String| Self::new(StatusCode::FORBIDDEN, what, detail);
        match e {
            Error::Unauthenticated => Self::unauthenticated(),
            Error::Scope(_) => {
                forbidden(("scope_missing", "The key may not do this"), e.to_string())
            }
            Error::NotFound => Self::not_found(),
            Error::BadTarget(why) => Self::invalid(why, Vec::new()),
            Error::Conflict(why) => {
                Self::new(StatusCode::CONFLICT, ("conflict", "It does not go with what there is"), why)
            }
            Error::RecipientOptedOut => forbidden(
                ("recipient_opted_out", "The recipient opted out"),
                "The recipient is on the default opt-out list. Nothing was stored; with \"blockOptout\": false \
                 the message would be sent all the same."
                    .to_owned(),
            ),
            Error::InsufficientBalance => {
                let what = ("insufficient_balance", "The balance does not cover it");
                Self::new(
                    StatusCode::PAYMENT_REQUIRED,
                    what,
                    "Nothing was stored. Top up the account, or send with a test key.",
                )
            }
            Error::DestinationNotAllowed => forbidden(
                ("destination_not_allowed", "No route to this number"),
                "No carrier takes messages for this number: the operator has to add a route."
                    .to_owned(),
            ),
            Error::TooManyParts { parts, allowed } => {
                let detail =
                    format!("The text needs {parts} parts; at most {allowed} are allowed.");
                let fault = Fault {
                    pointer: "#/text".to_owned(),
                    code: "too_many_parts",
                    detail: detail.clone(),
                };
                Self::invalid(detail, vec![fault])
            }
            Error::IdempotencyKeyReused => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                ("idempotency_key_reused", "The idempotency key stands for another request"),
                "Use a new Idempotency-Key for a new request, or send the same body again.",
            ),
            Error::RequestInFlight => Self::new(
                StatusCode::CONFLICT,
                ("request_in_flight", "The same request is under way"),
                "A request with this Idempotency-Key has not ended yet. Try again.",
            ),
            Error::NotCancellable(why) => Self::new(
                StatusCode::CONFLICT,
                ("not_cancellable", "Too late to call it back"),
                format!("{why} A message can be cancelled while no part has gone out and none is on its way."),
            ),
            Error::Overloaded(why) => {
                tracing::warn!(why, "turned away");
                Self::overloaded()
            }
            Error::Unsure(why) => {
                tracing::error!(why, "the answer to a commit was lost");
                Self::unsure()
            }
            Error::Internal(why) => {
                tracing::error!(why, "internal error");
                Self::internal()
            }
        }
    }
}
