//! One POST of one webhook: rendered, signed, sent, and its answer read.

use crate::http_client::HttpClient;
use crate::line::{Answer, Line};
use bytes::Bytes;
use heliograph_domain::event::Event;
use heliograph_domain::target::{Reach, Target};
use heliograph_domain::time::Timestamp;
use heliograph_domain::trouble::Trouble;
use heliograph_domain::webhook::Endpoint;
use heliograph_service::deliveries::Response;
use http_body_util::Full;
use hyper::header::HOST;
use hyper::{Request, Version};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// A webhook that is about to be told.
pub(crate) struct Post {
    pub(crate) client: HttpClient,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) target: Arc<Target>,
    pub(crate) reach: Arc<Reach>,
    pub(crate) event: Arc<Event>,
    /// The present instant by the database's clock.
    pub(crate) now: Timestamp,
    pub(crate) timeout: Duration,
}

impl Post {
    /// Sends it over this line, or over a new one; gives back what can be used again.
    pub(crate) async fn send(self, line: Option<Line>) -> (Response, Option<Line>) {
        let timeout = self.timeout;
        match tokio::time::timeout(timeout, self.exchange(line)).await {
            Ok((Ok(answer), line)) => (self.response(answer), line),
            Ok((Err(why), _)) => (Response::Broken(why), None),
            Err(_) => {
                let why = format!("{} within {} s", Trouble::Silent.word(), timeout.as_secs());
                (Response::Broken(why), None)
            }
        }
    }

    async fn exchange(&self, line: Option<Line>) -> (Result<Answer, String>, Option<Line>) {
        let body = Bytes::from(self.event.render());
        if let Some(mut line) = line {
            let request = match self.request(body.clone(), &line) {
                Ok(request) => request,
                Err(why) => return (Err(why), None),
            };
            // A line that was idle may have been closed by the other side just now; whatever else it was, telling
            // the same event again does no harm.
            if let Ok(answer) = line.post(request).await {
                return (Ok(answer), Some(line));
            }
        }
        let fresh = async {
            let mut line = self.client.dial(&self.target, &self.reach).await?;
            let answer = line.post(self.request(body, &line)?).await?;
            Ok((answer, line))
        };
        match fresh.await {
            Ok((answer, line)) => (Ok(answer), Some(line)),
            Err(why) => (Err(why), None),
        }
    }

    fn request(&self, body: Bytes, line: &Line) -> Result<Request<Full<Bytes>>, String> {
        let headers = self.endpoint.headers(self.now, self.event.id, &body);
        let target = &self.target;
        // HTTP/2 tells the host beside the path, HTTP/1.1 in a header.
        let request = match line.is_http2() {
            true => Request::post(target.as_str()).version(Version::HTTP_2),
            false => Request::post(target.path()).header(HOST, target.authority()),
        };
        let with = |request: hyper::http::request::Builder, (name, value): (&str, Cow<'_, str>)| {
            request.header(name, value.as_ref())
        };
        let request = headers.into_iter().fold(request, with);
        request.body(Full::new(body)).map_err(|e| e.to_string())
    }

    fn response(&self, answer: Answer) -> Response {
        let retry_after = answer.retry_after.as_deref().and_then(|v| self.wait(v));
        let body = String::from_utf8_lossy(&answer.body).replace('\0', "\u{fffd}");
        Response::Answered { status: answer.status, body, retry_after }
    }

    /// What a `Retry-After` asks for: seconds, or a date (RFC 9110 §10.2.3).
    fn wait(&self, value: &str) -> Option<Duration> {
        let value = value.trim();
        if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
            // More than fits is as good as for ever, and is cut like all that is too long.
            return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
        }
        let now = Duration::from_millis(u64::try_from(self.now.millis()).ok()?);
        httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH + now).ok()
    }
}
