//! A body that is lent to its handler: what the handler leaves of it is taken in afterwards.
//!
//! HTTP/2 lets a server answer before it has read the body, and then cuts the rest off; some clients lose the answer
//! with it. So the rest is read and dropped before the answer goes.

use axum::body::Body;
use axum::body::Bytes;
use futures_util::StreamExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// How much is dropped, and for how long: more than any operation but an import takes.
const MOST: usize = 4 << 20;
const PATIENCE: Duration = Duration::from_secs(1);

/// A body that two hold, one after the other.
#[derive(Clone)]
pub(crate) struct Lent(Arc<Mutex<Incoming>>);

impl Lent {
    pub(crate) fn new(body: Incoming) -> Self {
        Self(Arc::new(Mutex::new(body)))
    }

    /// For the handler.
    pub(crate) fn body(&self) -> Body {
        Body::new(self.clone())
    }

    /// Takes in what is left, if anything is.
    pub(crate) async fn drop_rest(self) {
        if self.is_end_stream() {
            return;
        }
        let rest = async {
            let (mut pieces, mut dropped) = (Body::new(self).into_data_stream(), 0);
            while let Some(Ok(piece)) = pieces.next().await {
                dropped += piece.len();
                if dropped > MOST {
                    return;
                }
            }
        };
        drop(tokio::time::timeout(PATIENCE, rest).await);
    }

    fn inner(&self) -> MutexGuard<'_, Incoming> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl hyper::body::Body for Lent {
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
