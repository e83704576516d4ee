//! A line to an endpoint: one connection, over which one POST goes at a time (HTTP/1.1) or many (HTTP/2).

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, Shared};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response, header};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// How much of an answer's body is kept.
const KEPT: usize = 1_024;
/// How much of it is read at all, so that the connection can be used again.
const READ: usize = 64 << 10;
/// How long an answer whose status is known may take to say the rest.
const REST: Duration = Duration::from_secs(1);
/// How long a connection is kept without a POST.
const IDLE: Duration = Duration::from_secs(30);
/// How long it is kept at all: a host that moves has to be found again.
const AGE: Duration = Duration::from_secs(300);

/// What a connection is made of: a socket, with TLS over it or without.
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

type Stream = TokioIo<Box<dyn Io>>;
type Http1 = http1::Connection<Stream, Full<Bytes>>;
type Http2 = http2::Connection<Stream, Full<Bytes>, TokioExecutor>;
/// Drives an HTTP/2 connection for as long as any of those who wait for it is polled.
type Driver = Shared<BoxFuture<'static, ()>>;

/// A connection that is open, as far as is known.
pub(crate) struct Line {
    wire: Wire,
    opened: Instant,
    used: Instant,
}

enum Wire {
    /// For one POST at a time, which drives it itself: no other task has to be woken.
    One(http1::SendRequest<Full<Bytes>>, Option<Box<Http1>>),
    /// For many at once.
    Many(http2::SendRequest<Full<Bytes>>, Driver),
}

/// An answer, as far as anybody wants to know.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// As it stands in the header.
    pub(crate) retry_after: Option<String>,
    /// How the body begins.
    pub(crate) body: Vec<u8>,
}

impl Line {
    fn new(wire: Wire) -> Self {
        let now = Instant::now();
        Self { wire, opened: now, used: now }
    }

    pub(crate) fn http1(sender: http1::SendRequest<Full<Bytes>>, connection: Http1) -> Self {
        Self::new(Wire::One(sender, Some(Box::new(connection))))
    }

    pub(crate) fn http2(sender: http2::SendRequest<Full<Bytes>>, connection: Http2) -> Self {
        // How the connection ends is told to each POST on it.
        Self::new(Wire::Many(sender, connection.map(drop).boxed().shared()))
    }

    /// A second handle, where the connection takes many POSTs at once.
    pub(crate) fn share(&self) -> Option<Self> {
        match &self.wire {
            Wire::One(..) => None,
            Wire::Many(sender, driver) => {
                let wire = Wire::Many(sender.clone(), driver.clone());
                Some(Self { wire, opened: self.opened, used: self.used })
            }
        }
    }

    pub(crate) const fn is_http2(&self) -> bool {
        matches!(self.wire, Wire::Many(..))
    }

    /// Whether it is open, as far as is known, and worth another POST.
    pub(crate) fn is_good(&self, now: Instant) -> bool {
        let open = match &self.wire {
            Wire::One(sender, connection) => connection.is_some() && !sender.is_closed(),
            Wire::Many(sender, driver) => !sender.is_closed() && driver.peek().is_none(),
        };
        open && now.duration_since(self.used) < IDLE && now.duration_since(self.opened) < AGE
    }

    /// One POST and its answer. An error means that there was none: why, in words.
    pub(crate) async fn post(&mut self, request: Request<Full<Bytes>>) -> Result<Answer, String> {
        let answer = match &mut self.wire {
            Wire::One(sender, connection) => {
                let work = async {
                    sender.ready().await.map_err(words)?;
                    answer(sender.send_request(request)).await
                };
                beside(connection, work).await
            }
            Wire::Many(sender, driver) => {
                let work = async {
                    sender.ready().await.map_err(words)?;
                    answer(sender.send_request(request)).await
                };
                beside(&mut Some(Box::new(driver.clone())), work).await
            }
        };
        self.used = Instant::now();
        answer
    }
}

/// Does some work on a connection, and the connection's own work with it.
async fn beside<C: Future + Unpin, W: Future>(
    connection: &mut Option<Box<C>>,
    work: W,
) -> W::Output {
    let mut work = pin!(work);
    poll_fn(|cx| {
        // What is handed to the connection is written only when it is polled after that.
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

async fn answer(
    sent: impl Future<Output = hyper::Result<Response<Incoming>>>,
) -> Result<Answer, String> {
    let response = sent.await.map_err(words)?;
    let retry_after = response.headers().get(header::RETRY_AFTER);
    let retry_after = retry_after.and_then(|v| v.to_str().ok()).map(str::to_owned);
    let status = response.status().as_u16();
    let mut body = Vec::new();
    // The status decides; a body that never ends only costs the connection.
    let _ = tokio::time::timeout(REST, read(response.into_body(), &mut body)).await;
    Ok(Answer { status, retry_after, body })
}

/// Reads a body to its end, or for as long as that is reasonable.
async fn read(mut body: Incoming, kept: &mut Vec<u8>) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        let room = KEPT.saturating_sub(kept.len());
        kept.extend_from_slice(data.get(..room.min(data.len())).unwrap_or_default());
        read += data.len();
        if read > READ {
            return;
        }
    }
}

/// An error with its causes, as a person reads it.
fn words(error: hyper::Error) -> String {
    let mut words = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}
