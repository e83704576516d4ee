//! The access log: one line per request.

use crate::client::ClientAddress;
use crate::layers::around::Around;
use crate::layers::request_id::REQUEST_ID;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, Uri};
use axum::response::Response;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;
use tracing::field;
use uuid::Uuid;

/// The middleware that logs requests: id, client address, id of the API key, method, path, status
/// and duration in microseconds.
#[derive(Clone, Debug)]
pub struct AccessLog {
    /// Paths that are not logged, such as those that a monitoring system asks for all the time.
    pub except: &'static [&'static str],
    /// The beginnings of paths that are logged at the level debug, such as those of style sheets.
    pub quiet: &'static [&'static str],
    /// Removes secrets from a path, such as the token of a magic link.
    pub redact: fn(&str) -> &str,
}

/// The id of the API key that authenticated a request, as an extension of its response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoggedKey(pub Uuid);

/// The data of a request that is logged with its response.
#[derive(Debug)]
pub struct LoggedRequest {
    started: Instant,
    id: Option<HeaderValue>,
    client: IpAddr,
    method: Method,
    uri: Uri,
}

impl Around for AccessLog {
    type State = Option<LoggedRequest>;

    fn before(&self, request: &mut Request) -> Result<Self::State, Box<Response>> {
        if self.except.contains(&request.uri().path()) {
            return Ok(None);
        }
        let client = request.extensions().get::<ClientAddress>();
        let client = client.map_or(Ipv4Addr::UNSPECIFIED.into(), |client| client.ip);
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let id = request.headers().get(REQUEST_ID).cloned();
        Ok(Some(LoggedRequest { started: Instant::now(), id, client, method, uri }))
    }

    fn after(&self, request: Self::State, response: &mut Response) {
        let Some(LoggedRequest { started, id, client, method, uri }) = request else { return };
        let id = id.as_ref().and_then(|id| id.to_str().ok()).unwrap_or_default();
        let (method, path) = (method.as_str(), (self.redact)(uri.path()));
        let status = response.status().as_u16();
        let key = response.extensions().get::<LoggedKey>().map(|key| field::display(key.0));
        let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        match self.quiet.iter().any(|beginning| path.starts_with(beginning)) {
            false => {
                tracing::info!(request = id, %client, key, method, path, status, micros, "request");
            }
            true => {
                tracing::debug!(request = id, %client, key, method, path, status, micros, "request");
            }
        }
    }
}
