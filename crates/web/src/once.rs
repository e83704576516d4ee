//! `Idempotency-Key`: reading it, keeping an answer, and giving it again.

use crate::error::Problem;
use crate::error::fault::{Fault, FaultCode};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use heliograph_domain::secret;
use heliograph_service::once::{Answer, Once};
use serde::{Deserialize, Serialize};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The key of a request, if it has one, with the fingerprint of its body.
pub(crate) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Option<Once>, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.to_str().ok().filter(|k| (1..=255).contains(&k.len()) && !k.contains('\t'));
    match key.filter(|_| values.next().is_none()) {
        Some(key) => Ok(Some(Once { key: key.to_owned(), fingerprint: secret::fingerprint(body) })),
        None => {
            let fault = Fault {
                pointer: "header:Idempotency-Key".to_owned(),
                code: FaultCode::InvalidIdempotencyKey,
                detail: "This must be one value of 1 to 255 printable ASCII characters.".to_owned(),
            };
            Err(Problem::invalid("The Idempotency-Key can't be used.", vec![fault]))
        }
    }
}

/// Says that an answer was given before.
pub(crate) fn mark(headers: &mut HeaderMap) {
    headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
}

/// An answer as it is kept, to be given again byte for byte.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    status: u16,
    location: Option<String>,
    body: String,
}

impl Reply {
    /// An answer with a JSON body, and the address of what was made.
    pub(crate) fn new(status: StatusCode, location: Option<String>, body: &impl Serialize) -> Self {
        let body = serde_json::to_string(body).unwrap_or_default();
        Self { status: status.as_u16(), location, body }
    }

    /// As it is kept.
    pub(crate) fn kept(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        let kind = HeaderValue::from_static("application/json");
        let mut response = (status, [(header::CONTENT_TYPE, kind)], self.body).into_response();
        if let Some(address) = self.location.and_then(|l| HeaderValue::from_str(&l).ok()) {
            response.headers_mut().insert(header::LOCATION, address);
        }
        response
    }
}

/// The answer to a request: `render`ed if it was done now, as it was kept if before.
pub(crate) fn answer<T>(done: Answer<T>, render: impl Fn(&T) -> Reply) -> Response {
    match done {
        Answer::Now(done) => render(&done).into_response(),
        Answer::Before(kept) => {
            let Ok(reply) = serde_json::from_str::<Reply>(&kept) else {
                tracing::error!("an answer that was kept can't be read");
                return Problem::internal().into_response();
            };
            let mut response = reply.into_response();
            mark(response.headers_mut());
            response
        }
    }
}
