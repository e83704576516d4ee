//! The `Idempotency-Key` header: reading the key, storing a response, and replaying it.

use crate::error::Problem;
use crate::error::fault::{Fault, FaultCode};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use heliograph_domain::fields::IdempotencyKey;
use heliograph_domain::secret;
use heliograph_service::kernel::idempotency::{IdempotentOutcome, RequestKey};
use serde::{Deserialize, Serialize};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Reads the idempotency key of a request, if it has one, with the fingerprint of its body.
pub(crate) fn read_key(headers: &HeaderMap, body: &[u8]) -> Result<Option<RequestKey>, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key: Option<IdempotencyKey> = value.to_str().ok().and_then(|key| key.parse().ok());
    match key.filter(|_| values.next().is_none()) {
        Some(key) => Ok(Some(RequestKey { key, fingerprint: secret::fingerprint(body) })),
        None => {
            let fault = Fault {
                pointer: "header:Idempotency-Key".to_owned(),
                code: FaultCode::InvalidIdempotencyKey,
                detail: format!(
                    "The header must be sent once, with 1 to {} printable ASCII characters.",
                    IdempotencyKey::MAX_LENGTH,
                ),
            };
            Err(Problem::invalid("Invalid Idempotency-Key.", vec![fault]))
        }
    }
}

/// Marks a response as a replay.
pub(crate) fn mark_replayed(headers: &mut HeaderMap) {
    headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
}

/// A response that is stored to be replayed byte for byte.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredResponse {
    status: u16,
    location: Option<String>,
    body: String,
}

impl StoredResponse {
    /// Creates a response with a JSON body and the `Location` of the created resource.
    pub(crate) fn new(status: StatusCode, location: Option<String>, body: &impl Serialize) -> Self {
        let body = serde_json::to_string(body).unwrap_or_default();
        Self { status: status.as_u16(), location, body }
    }

    /// Encodes the response for the database.
    pub(crate) fn serialize(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl IntoResponse for StoredResponse {
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

/// Returns the response to an idempotent request: rendered by `render` if it was carried out now,
/// or the stored one.
pub(crate) fn respond<T>(
    done: IdempotentOutcome<T>,
    render: impl Fn(&T) -> StoredResponse,
) -> Response {
    match done {
        IdempotentOutcome::Fresh(done) => render(&done).into_response(),
        IdempotentOutcome::Replayed(kept) => {
            let Ok(reply) = serde_json::from_str::<StoredResponse>(&kept) else {
                tracing::error!("failed to parse stored response");
                return Problem::internal().into_response();
            };
            let mut response = reply.into_response();
            mark_replayed(response.headers_mut());
            response
        }
    }
}
