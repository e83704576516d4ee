//! Refuses requests over plain HTTP where clients have to use HTTPS.

use crate::client::ClientAddress;
use crate::layers::around::Around;
use axum::extract::Request;
use axum::response::Response;

/// The middleware that refuses requests over plain HTTP behind a reverse proxy: keys and sessions
/// must not travel unencrypted, and a client that bypasses the proxy is not who it claims to be.
#[derive(Clone, Copy, Debug)]
pub struct RequireHttps {
    /// Whether plain HTTP is refused.
    pub required: bool,
    /// Paths without secrets, which load balancers ask for directly.
    pub except: &'static [&'static str],
    /// Makes the response.
    pub reject: fn() -> Response,
}

impl Around for RequireHttps {
    type State = ();

    fn before(&self, request: &mut Request) -> Result<(), Box<Response>> {
        let https = request.extensions().get::<ClientAddress>().is_some_and(|client| client.https);
        match https || !self.required || self.except.contains(&request.uri().path()) {
            true => Ok(()),
            false => Err(Box::new((self.reject)())),
        }
    }

    fn after(&self, (): (), _: &mut Response) {}
}
