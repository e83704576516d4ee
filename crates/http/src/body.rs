//! Request bodies: the one place that waits for clients to send.
//!
//! A body has to arrive at a minimum rate, and only when it is complete does its request take one
//! of the places for requests in flight. So clients that stall do not block others.

use crate::body_budget::BufferedBytes;
use crate::drain::RequestPermit;
use crate::limits::{BODY_PAUSE, BODY_RATE, BODY_TIME, DRAIN_LIMIT, DRAIN_TIME};
use axum::body::{Body, Bytes};
use http_body_util::LengthLimitError;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// The reason why a request body could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BodyError {
    /// The body is larger than this many bytes.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// The body arrived too slowly, or not at all.
    #[error("the body did not arrive in time")]
    Timeout,
    /// The body is complete, but the node has no place for one more request; or the node, or this
    /// client, has too many unfinished bodies in memory.
    #[error("the server is overloaded")]
    Overloaded,
    /// The connection ended, or the client broke the protocol.
    #[error("the body is incomplete")]
    Incomplete,
}

impl BodyError {
    /// Returns the reason of an error of a body, even if other errors wrap it.
    pub fn find(error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref::<Self>() {
                return *found;
            }
            next = error.source();
        }
        Self::Incomplete
    }
}

/// Reads a body of at most `limit` bytes. A larger one is refused before it is read, if its length
/// is known.
pub async fn read_body(body: Body, limit: usize) -> Result<Bytes, BodyError> {
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLarge(limit));
    }
    axum::body::to_bytes(body, limit).await.map_err(|error| {
        match error.source().is_some_and(|e| e.is::<LengthLimitError>()) {
            true => BodyError::TooLarge(limit),
            false => BodyError::find(&error),
        }
    })
}

/// The body of a request from the network. The server keeps a second handle, through which it
/// drains what the handler left unread.
#[derive(Clone)]
pub(crate) struct RequestBody(Arc<Mutex<Receiver>>);

struct Receiver {
    incoming: Incoming,
    /// The permit of the request, which starts when the body is complete.
    permit: Option<RequestPermit>,
    /// The bytes that the handler has received so far.
    buffered: BufferedBytes,
    /// Set when the body did not arrive at once.
    wait: Option<Wait>,
    error: Option<BodyError>,
}

/// The time limits of a body that arrives in pieces.
struct Wait {
    started: Instant,
    last_piece: Instant,
    received: usize,
    timer: Pin<Box<Sleep>>,
}

impl RequestBody {
    pub(crate) fn new(incoming: Incoming, buffered: BufferedBytes) -> Self {
        let receiver = Receiver { incoming, permit: None, buffered, wait: None, error: None };
        Self(Arc::new(Mutex::new(receiver)))
    }

    /// Keeps the permit of the request until [`Self::release`]. It starts when the body is
    /// complete.
    pub(crate) fn hold(&self, permit: RequestPermit) {
        self.receiver().permit = Some(permit);
    }

    /// Ends the request: its permit and its share of memory are free again.
    pub(crate) fn release(&self) {
        let mut receiver = self.receiver();
        receiver.permit = None;
        receiver.buffered.release();
    }

    /// Returns whether the client may still be sending.
    pub(crate) fn is_unfinished(&self) -> bool {
        let receiver = self.receiver();
        !receiver.incoming.is_end_stream() && receiver.error != Some(BodyError::Timeout)
    }

    /// Reads and drops the rest of the body, within limits. Many clients see a connection failure
    /// instead of the response if the connection, or the HTTP/2 stream, ends while they send.
    pub(crate) async fn drain(self) {
        let rest = async {
            let mut dropped = 0;
            while let Some(Ok(frame)) = poll_fn(|cx| self.poll_incoming(cx)).await {
                dropped += frame.data_ref().map_or(0, Bytes::len);
                if dropped > DRAIN_LIMIT {
                    return;
                }
            }
        };
        drop(tokio::time::timeout(DRAIN_TIME, rest).await);
    }

    fn poll_incoming(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.receiver().incoming).poll_frame(cx)
    }

    fn receiver(&self) -> MutexGuard<'_, Receiver> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl hyper::body::Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.receiver().poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.receiver().incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.receiver().incoming.size_hint()
    }
}

impl Receiver {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(error) = self.error {
            return Poll::Ready(Some(Err(error)));
        }
        let error = match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                if let Some(wait) = &mut self.wait {
                    wait.received(length);
                }
                if self.buffered.grow(length) {
                    return Poll::Ready(Some(Ok(frame)));
                }
                BodyError::Overloaded
            }
            Poll::Ready(Some(Err(_))) => BodyError::Incomplete,
            Poll::Ready(None) => {
                if self.permit.as_mut().is_none_or(RequestPermit::start) {
                    return Poll::Ready(None);
                }
                BodyError::Overloaded
            }
            Poll::Pending => {
                if self.wait.get_or_insert_with(Wait::new).poll(cx).is_pending() {
                    return Poll::Pending;
                }
                BodyError::Timeout
            }
        };
        self.error = Some(error);
        Poll::Ready(Some(Err(error)))
    }
}

impl Wait {
    fn new() -> Self {
        let now = Instant::now();
        let timer = Box::pin(sleep_until(now + BODY_PAUSE));
        Self { started: now, last_piece: now, received: 0, timer }
    }

    fn received(&mut self, length: usize) {
        self.received += length;
        self.last_piece = Instant::now();
    }

    /// Completes when the body is late.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let credit = Duration::from_secs((self.received / BODY_RATE) as u64);
        let deadline = (self.started + BODY_TIME + credit).min(self.last_piece + BODY_PAUSE);
        if self.timer.deadline() != deadline {
            self.timer.as_mut().reset(deadline);
        }
        self.timer.as_mut().poll(cx)
    }
}
