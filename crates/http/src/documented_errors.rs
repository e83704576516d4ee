//! The stream of an HTTP/1 connection, on which errors that hyper finds have a body.
//!
//! hyper answers a request that it cannot parse by itself, with a status and nothing else, before
//! any service sees it. Such a response is recognized as it is written, because it has no request
//! id, and replaced.

use crate::error_document::{ErrorDocuments, ProtocolError};
use crate::limits::{LINGER_LIMIT, LINGER_TIME};
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream that replaces the bare error responses that are written to it.
pub(crate) struct DocumentedErrors<S> {
    stream: S,
    documents: ErrorDocuments,
    peer: IpAddr,
    /// The replacement, as far as it is not written yet.
    replacement: Vec<u8>,
    /// Set when an error was replaced and the connection is closing.
    lingering: Option<Lingering>,
    replaced: bool,
}

/// The time in which the client can read the response. Closing a socket with unread bytes would
/// reset the connection, and the client would lose the response.
struct Lingering {
    timer: Pin<Box<Sleep>>,
    left: usize,
}

impl<S> DocumentedErrors<S> {
    pub(crate) fn new(stream: S, documents: ErrorDocuments, peer: IpAddr) -> Self {
        let (replacement, lingering) = (Vec::new(), None);
        Self { stream, documents, peer, replacement, lingering, replaced: false }
    }

    /// Returns whether `last`, the end of what is written, is a bare error response. If so, it is
    /// replaced, and `before` is written ahead of the replacement.
    fn replace(&mut self, before: &[IoSlice<'_>], last: &[u8]) -> bool {
        let Some((at, error)) = find_bare_error(last) else { return false };
        for part in before {
            self.replacement.extend_from_slice(part);
        }
        self.replacement.extend_from_slice(last.get(..at).unwrap_or_default());
        self.replacement.extend(self.documents.http1(error, self.peer));
        self.replaced = true;
        true
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> DocumentedErrors<S> {
    fn poll_replacement(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.replacement.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.replacement))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.replacement.drain(..written);
        }
        Poll::Ready(Ok(()))
    }

    /// Reads and drops what the client still sends, until it closes the connection.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let lingering = self.lingering.get_or_insert_with(|| Lingering {
            timer: Box::pin(sleep(LINGER_TIME)),
            left: LINGER_LIMIT,
        });
        let mut dropped = [0; 4 << 10];
        while lingering.left > 0 && lingering.timer.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut dropped);
            let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
            lingering.left = lingering.left.saturating_sub(buffer.filled().len());
        }
        Poll::Ready(())
    }
}

/// Finds a response without a request id at the end of written bytes; returns its place.
fn find_bare_error(written: &[u8]) -> Option<(usize, ProtocolError)> {
    const VERSION: &[u8] = b"HTTP/1.1 ";
    // A response of the service with a body does not end like this: no search for most responses.
    if !written.ends_with(b"\r\n\r\n") {
        return None;
    }
    let at = written.windows(VERSION.len()).rposition(|bytes| bytes == VERSION)?;
    let head = written.get(at..)?;
    let error = match head.get(VERSION.len()..)?.get(..3)? {
        b"400" => ProtocolError::Malformed,
        b"414" | b"431" => ProtocolError::HeadTooLarge,
        _ => return None,
    };
    let has_id = head.windows(12).any(|name| name.eq_ignore_ascii_case(b"x-request-id"));
    (!has_id).then_some((at, error))
}

impl<S: AsyncRead + Unpin> AsyncRead for DocumentedErrors<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for DocumentedErrors<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_replacement(cx))?;
        if self.replace(&[], bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_replacement(cx))?;
        if let Some((last, before)) = parts.split_last()
            && self.replace(before, last)
        {
            return Poll::Ready(Ok(parts.iter().map(|part| part.len()).sum()));
        }
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_replacement(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(self.poll_replacement(cx))?;
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        }
        if self.replaced {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_responses_without_a_request_id_are_bare() {
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n";
        let own = b"HTTP/1.1 400 Bad Request\r\nx-request-id: 1\r\ncontent-length: 0\r\n\r\n";
        let fine = b"HTTP/1.1 204 No Content\r\n\r\n";
        assert_eq!(find_bare_error(bare), Some((0, ProtocolError::HeadTooLarge)));
        let pipelined = [&own[..], fine, b"HTTP/1.1 400 Bad Request\r\n\r\n"].concat();
        let at = own.len() + fine.len();
        assert_eq!(find_bare_error(&pipelined), Some((at, ProtocolError::Malformed)));
        for other in [&own[..], fine, b"", b"\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n{}"] {
            assert_eq!(find_bare_error(other), None);
        }
    }
}
