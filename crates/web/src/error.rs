//! The only place where an error becomes a status and a body: RFC 9457 problem details.

pub(crate) mod code;
pub(crate) mod fault;

use crate::error::code::Code;
use crate::error::fault::{Fault, FaultCode};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use heliograph_service::error::Error;
use serde::Serialize;
use std::borrow::Cow;
use utoipa::ToSchema;

/// What a client is told when something does not work.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    code: Code,
    detail: Cow<'static, str>,
    faults: Vec<Fault>,
}

/// Seconds after which a request that was turned away may be tried again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

impl Problem {
    fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { code, detail: detail.into(), faults: Vec::new() }
    }

    pub(crate) fn invalid(detail: impl Into<Cow<'static, str>>, faults: Vec<Fault>) -> Self {
        Self { faults, ..Self::new(Code::InvalidRequest, detail) }
    }

    /// What is wrong, in words.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    pub(crate) fn unauthenticated() -> Self {
        let detail = "Send a valid key as 'Authorization: Bearer hg_…'.";
        Self::new(Code::Unauthenticated, detail)
    }

    pub(crate) fn not_found() -> Self {
        Self::new(Code::NotFound, "There is no such thing, or it is not yours.")
    }

    pub(crate) fn method_not_allowed() -> Self {
        let detail = "This address exists, but not for this method: see the Allow header.";
        Self::new(Code::MethodNotAllowed, detail)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let detail = format!("At most {limit} bytes are taken here.");
        Self::new(Code::PayloadTooLarge, detail)
    }

    pub(crate) fn unsupported_media_type(wanted: &str) -> Self {
        let detail = format!("Send the body as 'Content-Type: {wanted}'.");
        Self::new(Code::UnsupportedMediaType, detail)
    }

    pub(crate) fn encoded() -> Self {
        let detail =
            "Send the body as it is, without 'Content-Encoding': nothing is unpacked here.";
        Self::new(Code::UnsupportedMediaType, detail)
    }

    pub(crate) fn overloaded() -> Self {
        let detail = "Nothing was accepted. Try again after the time in Retry-After.";
        Self::new(Code::Overloaded, detail)
    }

    fn unsure() -> Self {
        let detail = "The database was lost at the wrong moment: this may or may not have been accepted. Repeat the \
                      request; with the same Idempotency-Key it is never done twice.";
        Self::new(Code::Overloaded, detail)
    }

    pub(crate) fn rate_limited() -> Self {
        let detail = "This key has made too many requests. This one did nothing: repeat it after the time in Retry-After.";
        Self::new(Code::RateLimited, detail)
    }

    pub(crate) fn too_slow() -> Self {
        Self::new(Code::RequestTimeout, "Nothing was accepted. Send the whole body at once.")
    }

    pub(crate) fn internal() -> Self {
        let detail = "Something went wrong on our side. The request id helps to find it.";
        Self::new(Code::Internal, detail)
    }

    fn too_many_parts(parts: u16, allowed: u16) -> Self {
        let detail = format!("The text needs {parts} parts; at most {allowed} are allowed.");
        let (pointer, code) = ("#/text".to_owned(), FaultCode::TooManyParts);
        Self::invalid(detail.clone(), vec![Fault { pointer, code, detail }])
    }

    /// The answer, with the id of the request that it answers.
    pub(crate) fn render(&self, request_id: &str) -> Response {
        let entry = self.code.entry();
        let mut response = (entry.status, self.json(request_id)).into_response();
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        match entry.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, RETRY_AFTER);
            }
            _ => {}
        }
        response
    }

    /// The body of the answer.
    pub(crate) fn json(&self, request_id: &str) -> Vec<u8> {
        let entry = self.code.entry();
        let body = Body {
            kind: self.code.page(),
            title: entry.title,
            status: entry.status.as_u16(),
            detail: &self.detail,
            code: entry.name,
            request_id,
            errors: &self.faults,
        };
        serde_json::to_vec(&body).unwrap_or_default()
    }

    /// How a problem of this code looks, for those who read about it.
    pub(crate) fn sample(code: Code) -> Self {
        match code {
            Code::InvalidRequest => {
                let detail = "No country has the code that the number begins with: write it like +447700900123.";
                let fault = Fault {
                    pointer: "#/recipient".to_owned(),
                    code: FaultCode::InvalidNumber,
                    detail: detail.to_owned(),
                };
                Self::invalid("One thing is wrong: see 'errors'.", vec![fault])
            }
            Code::Unauthenticated => Self::unauthenticated(),
            Code::InsufficientBalance => Error::InsufficientBalance.into(),
            Code::ScopeMissing => Error::Scope("send").into(),
            Code::RecipientOptedOut => Error::RecipientOptedOut.into(),
            Code::DestinationNotAllowed => Error::DestinationNotAllowed.into(),
            Code::NotFound => Self::not_found(),
            Code::MethodNotAllowed => Self::method_not_allowed(),
            Code::RequestTimeout => Self::too_slow(),
            Code::Conflict => Error::Conflict("There are 1000 lists already.".to_owned()).into(),
            Code::RequestInFlight => Error::RequestInFlight.into(),
            Code::NotCancellable => Self::new(code, "The message was handed to a carrier."),
            Code::PayloadTooLarge => Self::too_large(1 << 20),
            Code::UnsupportedMediaType => Self::unsupported_media_type("application/json"),
            Code::IdempotencyKeyReused => Error::IdempotencyKeyReused.into(),
            Code::RateLimited => {
                Self::new(code, "The key made too many requests. Try again later.")
            }
            Code::Internal => Self::internal(),
            Code::Overloaded => Self::overloaded(),
        }
    }
}

/// Why a request was not done, by RFC 9457.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Body<'a> {
    /// The address of a page about it.
    #[serde(rename = "type")]
    #[schema(format = "uri-reference")]
    kind: String,
    /// The same as `code` in a few words, for people.
    title: &'a str,
    /// The status of the answer.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What is wrong with this request, and what to do.
    detail: &'a str,
    #[schema(value_type = Code)]
    code: &'a str,
    /// The same as the header `X-Request-Id`.
    request_id: &'a str,
    /// Everything that is wrong with single values, if anything is.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<Fault>)]
    errors: &'a [Fault],
}

/// Leaves the problem on the response; the layer that knows the request's id renders it.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.code.entry().status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Error> for Problem {
    fn from(e: Error) -> Self {
        let problem = |code, detail: &'static str| Self::new(code, detail);
        match e {
            Error::Unauthenticated => Self::unauthenticated(),
            Error::Scope(_) => Self::new(Code::ScopeMissing, format!("{e}.")),
            Error::NotFound => Self::not_found(),
            Error::BadTarget(why) => Self::invalid(why, Vec::new()),
            Error::Weak(why) => Self::invalid(why.to_string(), Vec::new()),
            Error::Conflict(why) => Self::new(Code::Conflict, why),
            Error::RecipientOptedOut => problem(
                Code::RecipientOptedOut,
                "The recipient is on the default opt-out list. Nothing was stored; with \"blockOptout\": false \
                 the message would be sent all the same.",
            ),
            Error::InsufficientBalance => problem(
                Code::InsufficientBalance,
                "Nothing was stored. Top up the account, or send with a test key.",
            ),
            Error::DestinationNotAllowed => problem(
                Code::DestinationNotAllowed,
                "No carrier takes messages for this number: the operator has to add a route.",
            ),
            Error::TooManyParts { parts, allowed } => Self::too_many_parts(parts, allowed),
            Error::IdempotencyKeyReused => problem(
                Code::IdempotencyKeyReused,
                "Use a new Idempotency-Key for a new request, or send the same body again.",
            ),
            Error::RequestInFlight => problem(
                Code::RequestInFlight,
                "A request with this Idempotency-Key has not ended yet. Try again.",
            ),
            Error::NotCancellable(why) => Self::new(
                Code::NotCancellable,
                format!(
                    "{why} A message can be cancelled while no part has gone out and none is on its way."
                ),
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
