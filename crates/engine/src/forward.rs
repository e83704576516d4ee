//! Forwarding: what `heliograph listen` was told goes on to a program of the person who listens.

use crate::http_client::HttpClient;
use bytes::Bytes;
use heliograph_domain::target::{Reach, Resolver, Target};
use http_body_util::Full;
use hyper::header::{HOST, HeaderMap};
use hyper::{Request, Version};
use std::sync::Arc;
use std::time::Duration;

/// How long the program may take: less than whoever asked us gives.
const TIMEOUT: Duration = Duration::from_secs(12);

/// Sends requests on, to wherever its owner says: it is their own machine.
#[derive(Clone)]
pub struct Forwarder {
    client: HttpClient,
    target: Arc<Target>,
}

impl Forwarder {
    /// Forwards to this URL.
    pub fn new(resolver: Arc<dyn Resolver>, target: Target) -> Self {
        Self { client: HttpClient::new(resolver), target: Arc::new(target) }
    }

    /// Sends on one POST with its headers; the status of the answer.
    ///
    /// # Errors
    /// Why there was no answer, in words.
    pub async fn forward(&self, headers: &HeaderMap, body: Bytes) -> Result<u16, String> {
        match tokio::time::timeout(TIMEOUT, self.exchange(headers, body)).await {
            Ok(done) => done,
            Err(_) => Err(format!("no answer within {} s", TIMEOUT.as_secs())),
        }
    }

    async fn exchange(&self, headers: &HeaderMap, body: Bytes) -> Result<u16, String> {
        let mut line = self.client.dial(&self.target, &Reach::everything()).await?;
        let request = match line.is_http2() {
            true => Request::post(self.target.as_str()).version(Version::HTTP_2),
            false => Request::post(self.target.path()),
        };
        let mut request = request.body(Full::new(body)).map_err(|e| e.to_string())?;
        let own = ["host", "content-length", "transfer-encoding", "connection"];
        for (name, value) in headers.iter().filter(|(name, _)| !own.contains(&name.as_str())) {
            request.headers_mut().insert(name, value.clone());
        }
        if !line.is_http2() {
            let host = self.target.authority().parse();
            request.headers_mut().insert(HOST, host.map_err(|_| "a bad host".to_owned())?);
        }
        Ok(line.post(request).await?.status)
    }
}
