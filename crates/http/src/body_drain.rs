//! Drains the part of an HTTP/2 request body that the handler left unread.
//!
//! An HTTP/2 server may respond before it has read the body, and then resets the stream; some
//! clients lose the response with it. So the rest is read and dropped before the response is sent.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use futures_util::StreamExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// The most bytes that are drained: more than any operation but an import accepts.
const DRAIN_LIMIT: usize = 4 << 20;
/// The longest time that is spent on draining.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The most bytes of a rejected request's body that are drained.
const REJECTED_LIMIT: usize = 64 << 10;

/// Reads and drops the body of a rejected request, within limits: a response that is followed by
/// the end of the connection may look like a connection failure to a client that is still sending.
pub(crate) async fn discard(headers: &HeaderMap, body: Body) {
    if !headers.contains_key(header::EXPECT) {
        let whole = axum::body::to_bytes(body, REJECTED_LIMIT);
        drop(tokio::time::timeout(DRAIN_TIMEOUT, whole).await);
    }
}

/// A request body that the handler reads first, and the middleware drains afterwards.
#[derive(Clone)]
pub(crate) struct DrainableBody(Arc<Mutex<Incoming>>);

impl DrainableBody {
    pub(crate) fn new(body: Incoming) -> Self {
        Self(Arc::new(Mutex::new(body)))
    }

    /// Returns the body for the handler.
    pub(crate) fn body(&self) -> Body {
        Body::new(self.clone())
    }

    /// Reads and drops the unread rest of the body.
    pub(crate) async fn drain(self) {
        if self.is_end_stream() {
            return;
        }
        let rest = async {
            let (mut pieces, mut dropped) = (Body::new(self).into_data_stream(), 0);
            while let Some(Ok(piece)) = pieces.next().await {
                dropped += piece.len();
                if dropped > DRAIN_LIMIT {
                    return;
                }
            }
        };
        drop(tokio::time::timeout(DRAIN_TIMEOUT, rest).await);
    }

    fn inner(&self) -> MutexGuard<'_, Incoming> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl hyper::body::Body for DrainableBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut *self.inner()).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner().size_hint()
    }
}
