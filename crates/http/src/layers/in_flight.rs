//! The limits of requests in flight, which also reject new requests while the node drains.

use crate::body::RequestBody;
use crate::client::ClientAddress;
use crate::drain::{RequestGate, RequestPermit};
use crate::layers::around::Around;
use crate::usage_limit::{UsageLimit, UsageShare};
use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::{HeaderValue, Version, header};
use axum::response::Response;
use std::net::IpAddr;

/// The middleware that admits requests through the gate: requests without a body at once, others
/// when their body is complete.
#[derive(Clone)]
pub struct InFlightLimit {
    /// The gate.
    pub gate: RequestGate,
    /// The open requests of each client: of all its connections, and of all streams of HTTP/2.
    pub clients: UsageLimit<IpAddr>,
    /// Paths that are served even without a permit: those that tell whether the process is alive.
    pub except: &'static [&'static str],
    /// Paths that are served without a permit while the node drains: those of a monitoring system.
    pub while_draining: &'static [&'static str],
    /// Makes the response to a request without a permit.
    pub reject: fn() -> Response,
    /// Makes the response to a client with too many open requests.
    pub reject_client: fn() -> Response,
}

/// The permits of a request, held until its response.
pub struct Admission {
    permit: Option<RequestPermit>,
    body: Option<RequestBody>,
    client: Option<UsageShare<IpAddr>>,
}

impl InFlightLimit {
    /// Admits a request, or returns the response that rejects it.
    fn admit(&self, request: &mut Request) -> Result<Admission, Box<Response>> {
        let client = request.extensions().get::<ClientAddress>().and_then(ClientAddress::limited);
        let client = client.map(|address| {
            let max = self.gate.max_open_share();
            let share = self.clients.try_acquire(address, 1, max);
            share.ok_or_else(|| Box::new((self.reject_client)()))
        });
        let client = client.transpose()?;
        let reject = || Box::new((self.reject)());
        let mut permit = self.gate.try_open().ok_or_else(reject)?;
        let body = request.extensions_mut().remove::<RequestBody>();
        match body.filter(|_| !request.body().is_end_stream()) {
            Some(body) => {
                body.hold(permit);
                Ok(Admission { permit: None, body: Some(body), client })
            }
            None if permit.start() => Ok(Admission { permit: Some(permit), body: None, client }),
            None => Err(reject()),
        }
    }
}

impl InFlightLimit {
    fn is_exempt(&self, path: &str) -> bool {
        self.except.contains(&path)
            || self.gate.is_draining() && self.while_draining.contains(&path)
    }
}

impl Around for InFlightLimit {
    type State = Option<Admission>;

    fn before(&self, request: &mut Request) -> Result<Self::State, Box<Response>> {
        match self.admit(request) {
            Ok(admission) => Ok(Some(admission)),
            Err(_) if self.is_exempt(request.uri().path()) => Ok(None),
            Err(mut response) => {
                if self.gate.is_draining() && request.version() < Version::HTTP_2 {
                    // The client must send its next request to another node, or to the restarted
                    // process.
                    let close = HeaderValue::from_static("close");
                    response.headers_mut().insert(header::CONNECTION, close);
                }
                Err(response)
            }
        }
    }

    fn after(&self, admission: Self::State, _: &mut Response) {
        if let Some(Admission { permit, body, client }) = admission {
            if let Some(body) = body {
                body.release();
            }
            drop((permit, client));
        }
    }
}
