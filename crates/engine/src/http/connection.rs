//! An HTTP connection to an endpoint: one request at a time over HTTP/1.1, many over HTTP/2.

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, Shared};
use heliograph_domain::delivery_error::{DeliveryError, DeliveryErrorKind};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response, header};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// The number of bytes kept of a response body.
const MAX_KEPT: usize = 1_024;
/// The number of bytes read of a response body, so that the connection can be reused.
const MAX_READ: usize = 64 << 10;
/// The time limit for the body, once the status is known.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum idle time of a connection.
const MAX_IDLE: Duration = Duration::from_secs(30);
/// The maximum age of a connection, so that changes of DNS take effect.
const MAX_AGE: Duration = Duration::from_secs(300);

/// The byte stream of a connection: a TCP socket, with or without TLS.
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

type Stream = TokioIo<Box<dyn Io>>;
type Http1 = http1::Connection<Stream, Full<Bytes>>;
type Http2 = http2::Connection<Stream, Full<Bytes>, TokioExecutor>;
/// Drives an HTTP/2 connection while any request on it is polled.
type Driver = Shared<BoxFuture<'static, ()>>;

/// A connection that is open as far as known.
pub(crate) struct HttpConnection {
    transport: Transport,
    opened: Instant,
    used: Instant,
    /// True after a request on the connection got no answer in time. The network path may be
    /// broken without an error, so no handle of the connection is reused.
    unanswered: Arc<AtomicBool>,
}

/// Marks a connection when a request on it is abandoned before its answer.
struct AnswerGuard {
    unanswered: Arc<AtomicBool>,
    answered: bool,
}

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        if !self.answered {
            self.unanswered.store(true, Ordering::Relaxed);
        }
    }
}

enum Transport {
    /// HTTP/1.1: one request at a time, which drives the connection itself, so that no other task
    /// has to be woken.
    Http1(http1::SendRequest<Full<Bytes>>, Option<Box<Http1>>),
    /// HTTP/2: many requests at once.
    Http2(http2::SendRequest<Full<Bytes>>, Driver),
}

/// The relevant parts of an HTTP response.
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    /// The unparsed `Retry-After` header.
    pub(crate) retry_after: Option<String>,
    /// The beginning of the body.
    pub(crate) body: Vec<u8>,
}

impl HttpConnection {
    fn new(transport: Transport) -> Self {
        let now = Instant::now();
        Self { transport, opened: now, used: now, unanswered: Arc::default() }
    }

    pub(crate) fn http1(sender: http1::SendRequest<Full<Bytes>>, connection: Http1) -> Self {
        Self::new(Transport::Http1(sender, Some(Box::new(connection))))
    }

    pub(crate) fn http2(sender: http2::SendRequest<Full<Bytes>>, connection: Http2) -> Self {
        // Each request on the connection gets its own error when the connection ends.
        Self::new(Transport::Http2(sender, connection.map(drop).boxed().shared()))
    }

    /// Returns a second handle if the connection multiplexes requests (HTTP/2).
    pub(crate) fn share(&self) -> Option<Self> {
        match &self.transport {
            Transport::Http1(..) => None,
            Transport::Http2(sender, driver) => {
                let transport = Transport::Http2(sender.clone(), driver.clone());
                let unanswered = self.unanswered.clone();
                Some(Self { transport, opened: self.opened, used: self.used, unanswered })
            }
        }
    }

    pub(crate) const fn is_http2(&self) -> bool {
        matches!(self.transport, Transport::Http2(..))
    }

    /// Returns whether the connection is open as far as known, and neither idle nor old.
    pub(crate) fn is_reusable(&self, now: Instant) -> bool {
        let open = match &self.transport {
            Transport::Http1(sender, connection) => connection.is_some() && !sender.is_closed(),
            Transport::Http2(sender, driver) => !sender.is_closed() && driver.peek().is_none(),
        };
        open && !self.unanswered.load(Ordering::Relaxed)
            && now.duration_since(self.used) < MAX_IDLE
            && now.duration_since(self.opened) < MAX_AGE
    }

    /// Sends a request and returns the response.
    pub(crate) async fn post(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<HttpResponse, DeliveryError> {
        let mut guard = AnswerGuard { unanswered: self.unanswered.clone(), answered: false };
        let result = match &mut self.transport {
            Transport::Http1(sender, connection) => {
                let work = async {
                    sender.ready().await.map_err(error)?;
                    read_response(sender.send_request(request)).await
                };
                drive(connection, work).await
            }
            Transport::Http2(sender, driver) => {
                let work = async {
                    sender.ready().await.map_err(error)?;
                    read_response(sender.send_request(request)).await
                };
                drive(&mut Some(Box::new(driver.clone())), work).await
            }
        };
        guard.answered = true;
        self.used = Instant::now();
        result
    }
}

/// Runs a future together with the connection that it uses.
async fn drive<C: Future + Unpin, W: Future>(
    connection: &mut Option<Box<C>>,
    work: W,
) -> W::Output {
    let mut work = pin!(work);
    poll_fn(|cx| {
        // The connection writes a request only when it is polled after the request was handed to
        // it.
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(done);
        }
        if let Some(open) = connection
            && Pin::new(open).poll(cx).is_ready()
        {
            *connection = None;
            return work.as_mut().poll(cx);
        }
        match connection {
            Some(_) => work.as_mut().poll(cx),
            None => Poll::Pending,
        }
    })
    .await
}

async fn read_response(
    sent: impl Future<Output = hyper::Result<Response<Incoming>>>,
) -> Result<HttpResponse, DeliveryError> {
    let response = sent.await.map_err(error)?;
    let retry_after = response.headers().get(header::RETRY_AFTER);
    let retry_after = retry_after.and_then(|v| v.to_str().ok()).map(str::to_owned);
    let status = response.status().as_u16();
    let mut body = Vec::new();
    // The status decides the outcome; an endless body only costs the connection.
    let _ = tokio::time::timeout(BODY_TIMEOUT, read_body(response.into_body(), &mut body)).await;
    Ok(HttpResponse { status, retry_after, body })
}

/// Reads a body to its end, or up to [`MAX_READ`] bytes.
async fn read_body(mut body: Incoming, kept: &mut Vec<u8>) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        let room = MAX_KEPT.saturating_sub(kept.len());
        kept.extend_from_slice(data.get(..room.min(data.len())).unwrap_or_default());
        read += data.len();
        if read > MAX_READ {
            return;
        }
    }
}

/// Returns the error of a request, with its causes.
pub(crate) fn error(error: hyper::Error) -> DeliveryError {
    let kind = match error.is_parse() {
        true => DeliveryErrorKind::InvalidResponse,
        false => DeliveryErrorKind::ConnectionClosed,
    };
    let mut detail = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        detail = format!("{detail}: {cause}");
        source = cause.source();
    }
    DeliveryError { kind, detail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Version;

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_an_answer_is_not_reused() {
        let (ours, _silent) = tokio::io::duplex(64 << 10);
        let io: Box<dyn Io> = Box::new(ours);
        let builder = http2::Builder::new(TokioExecutor::new());
        let (sender, connection) = builder.handshake(TokioIo::new(io)).await.unwrap();
        let mut first = HttpConnection::http2(sender, connection);
        let second = first.share().unwrap();
        assert!(second.is_reusable(Instant::now()));
        let request = Request::post("https://example.com/hook").version(Version::HTTP_2);
        let request = request.body(Full::new(Bytes::new())).unwrap();
        let answer = tokio::time::timeout(Duration::from_secs(1), first.post(request)).await;
        assert!(answer.is_err());
        assert!(!second.is_reusable(Instant::now()));
    }
}
