//! One webhook delivery attempt: renders and signs the body, sends the POST and reads the response.

use crate::http::client::HttpClient;
use crate::http::connection::{HttpConnection, HttpResponse};
use bytes::Bytes;
use heliograph_domain::delivery_error::{DeliveryError, DeliveryErrorKind};
use heliograph_domain::egress_policy::EgressPolicy;
use heliograph_domain::event::WebhookEvent;
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::WebhookEndpoint;
use heliograph_domain::webhook_url::WebhookUrl;
use heliograph_service::webhooks::deliveries::WebhookResponse;
use http_body_util::Full;
use hyper::header::HOST;
use hyper::{Request, Version};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// A webhook request that is ready to be sent.
pub(crate) struct WebhookPost {
    pub(crate) client: HttpClient,
    pub(crate) endpoint: Arc<WebhookEndpoint>,
    pub(crate) target: Arc<WebhookUrl>,
    pub(crate) egress_policy: Arc<EgressPolicy>,
    pub(crate) event: Arc<WebhookEvent>,
    /// The current time by the database's clock; part of the signature.
    pub(crate) now: Timestamp,
    pub(crate) timeout: Duration,
}

impl WebhookPost {
    /// Sends the request over `connection`, or over a new one; returns the connection if it can be
    /// reused.
    pub(crate) async fn send(
        self,
        connection: Option<HttpConnection>,
    ) -> (WebhookResponse, Option<HttpConnection>) {
        let timeout = self.timeout;
        match tokio::time::timeout(timeout, self.exchange(connection)).await {
            Ok((Ok(answer), connection)) => (self.response(answer), connection),
            Ok((Err(why), _)) => (WebhookResponse::NoResponse(why), None),
            Err(_) => {
                let limit = format!("{} s", timeout.as_secs());
                let why = DeliveryError::new(DeliveryErrorKind::ResponseTimeout, limit);
                (WebhookResponse::NoResponse(why), None)
            }
        }
    }

    async fn exchange(
        &self,
        connection: Option<HttpConnection>,
    ) -> (Result<HttpResponse, DeliveryError>, Option<HttpConnection>) {
        let body = Bytes::from(self.event.render());
        if let Some(mut connection) = connection {
            let request = match self.request(body.clone(), &connection) {
                Ok(request) => request,
                Err(why) => return (Err(why), None),
            };
            // The server may just have closed the idle connection. Whatever the failure was,
            // sending the same event again is harmless: receivers deduplicate by webhook-id.
            if let Ok(answer) = connection.post(request).await {
                return (Ok(answer), Some(connection));
            }
        }
        let fresh = async {
            let account = self.endpoint.account;
            let dialled = self.client.dial(account, &self.target, &self.egress_policy);
            let mut connection = dialled.await?;
            let answer = connection.post(self.request(body, &connection)?).await?;
            Ok((answer, connection))
        };
        match fresh.await {
            Ok((answer, connection)) => (Ok(answer), Some(connection)),
            Err(why) => (Err(why), None),
        }
    }

    fn request(
        &self,
        body: Bytes,
        connection: &HttpConnection,
    ) -> Result<Request<Full<Bytes>>, DeliveryError> {
        let headers = self.endpoint.headers(self.now, self.event.id, &body);
        let target = &self.target;
        // HTTP/2 sends the host with the path (`:authority`), HTTP/1.1 in the `Host` header.
        let request = match connection.is_http2() {
            true => Request::post(target.as_str()).version(Version::HTTP_2),
            false => Request::post(target.path()).header(HOST, target.authority()),
        };
        let with = |request: hyper::http::request::Builder, (name, value): (&str, Cow<'_, str>)| {
            request.header(name, value.as_ref())
        };
        let request = headers.into_iter().fold(request, with);
        let request = request.body(Full::new(body));
        request.map_err(|e| DeliveryError::new(DeliveryErrorKind::Other, e.to_string()))
    }

    fn response(&self, answer: HttpResponse) -> WebhookResponse {
        let retry_after = answer.retry_after.as_deref().and_then(|v| self.parse_retry_after(v));
        let body = String::from_utf8_lossy(&answer.body).replace('\0', "\u{fffd}");
        WebhookResponse::Http { status: answer.status, body, retry_after }
    }

    /// Parses a `Retry-After` header: seconds or a date (RFC 9110 §10.2.3).
    fn parse_retry_after(&self, value: &str) -> Option<Duration> {
        let value = value.trim();
        if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
            // A number that overflows is capped, like every long delay.
            return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
        }
        let now = Duration::from_millis(u64::try_from(self.now.millis()).ok()?);
        httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH + now).ok()
    }
}
