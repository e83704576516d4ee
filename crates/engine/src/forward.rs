//! Forwards the webhooks that `heliograph listen` receives to a local program.

use crate::http::client::HttpClient;
use bytes::Bytes;
use heliograph_domain::delivery_error::{DeliveryError, DeliveryErrorKind};
use heliograph_domain::egress_policy::EgressPolicy;
use heliograph_domain::id::AccountId;
use heliograph_domain::webhook_url::WebhookUrl;
use heliograph_service::kernel::name_resolution::NameResolution;
use http_body_util::Full;
use hyper::header::{HOST, HeaderMap};
use hyper::{Request, Version};
use std::sync::Arc;
use std::time::Duration;

/// The time limit of the program; shorter than that of the node that sent the webhook.
const TIMEOUT: Duration = Duration::from_secs(12);

/// Forwards requests to a URL without an egress policy: the user forwards to their own machine.
#[derive(Clone)]
pub struct Forwarder {
    client: HttpClient,
    account: AccountId,
    target: Arc<WebhookUrl>,
}

impl Forwarder {
    /// Creates a forwarder of an account to this URL.
    pub fn new(names: NameResolution, account: AccountId, target: WebhookUrl) -> Self {
        Self { client: HttpClient::new(names, &[]), account, target: Arc::new(target) }
    }

    /// Forwards one POST with its headers and returns the response status.
    ///
    /// # Errors
    /// The reason why there was no response.
    pub async fn forward(&self, headers: &HeaderMap, body: Bytes) -> Result<u16, DeliveryError> {
        match tokio::time::timeout(TIMEOUT, self.exchange(headers, body)).await {
            Ok(result) => result,
            Err(_) => {
                let limit = format!("{} s", TIMEOUT.as_secs());
                Err(DeliveryError::new(DeliveryErrorKind::ResponseTimeout, limit))
            }
        }
    }

    async fn exchange(&self, headers: &HeaderMap, body: Bytes) -> Result<u16, DeliveryError> {
        let policy = EgressPolicy::allow_all();
        let mut connection = self.client.dial(self.account, &self.target, &policy).await?;
        let request = match connection.is_http2() {
            true => Request::post(self.target.as_str()).version(Version::HTTP_2),
            false => Request::post(self.target.path()),
        };
        let other = |detail: String| DeliveryError::new(DeliveryErrorKind::Other, detail);
        let mut request = request.body(Full::new(body)).map_err(|e| other(e.to_string()))?;
        let hop_by_hop = ["host", "content-length", "transfer-encoding", "connection"];
        for (name, value) in headers.iter().filter(|(name, _)| !hop_by_hop.contains(&name.as_str()))
        {
            request.headers_mut().insert(name, value.clone());
        }
        if !connection.is_http2() {
            let host = self.target.authority().parse();
            request.headers_mut().insert(HOST, host.map_err(|_| other("invalid host".to_owned()))?);
        }
        Ok(connection.post(request).await?.status)
    }
}
