//! The middleware that logs refused requests as security events.

use crate::error::Problem;
use crate::error::code::ProblemCode;
use axum::extract::Request;
use axum::response::Response;
use heliograph_domain::id::ApiKeyId;
use heliograph_http::ClientAddress;
use heliograph_http::layers::access_log::LoggedKey;
use heliograph_http::layers::around::Around;
use heliograph_service::kernel::security_log::SecurityEvent;
use std::net::{IpAddr, Ipv4Addr};

/// The middleware that logs requests whose key is refused, and requests beyond a limit. Inside of
/// [`ProblemDocuments`](crate::ProblemDocuments).
#[derive(Clone, Copy, Debug)]
pub struct SecurityEvents;

impl Around for SecurityEvents {
    type State = IpAddr;

    fn before(&self, request: &mut Request) -> Result<IpAddr, Box<Response>> {
        let client = request.extensions().get::<ClientAddress>();
        Ok(client.map_or(Ipv4Addr::UNSPECIFIED.into(), |client| client.ip))
    }

    fn after(&self, client: IpAddr, response: &mut Response) {
        if !response.status().is_client_error() {
            return;
        }
        let Some(problem) = response.extensions().get::<Problem>() else { return };
        let event = match problem.code() {
            ProblemCode::Unauthenticated | ProblemCode::ScopeMissing => "key_refused",
            ProblemCode::RateLimited => "rate_limited",
            _ => return,
        };
        let reason = problem.code().info().name;
        let key = response.extensions().get::<LoggedKey>().map(|key| ApiKeyId(key.0));
        let client = &*client.to_string();
        SecurityEvent { event, client, reason, key, ..Default::default() }.refused();
    }
}
