//! One TCP connection to an SMPP peer with its read and write buffers.

use bytes::{Buf, BytesMut};
use std::io;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// The space reserved for one read, in bytes; more than the longest PDU, so that one always fits.
const READ: usize = 128 * 1024;

/// The limit for unwritten bytes. Beyond it nothing is read: back-pressure on a peer that does not
/// read its responses.
const MAX_UNWRITTEN: usize = 4 * 1024 * 1024;

/// A connection. Its methods wait for nothing but the socket.
#[derive(Debug)]
pub(crate) struct SmppLink {
    read: OwnedReadHalf,
    write: OwnedWriteHalf,
    /// Bytes that were read and not yet processed.
    pub(crate) inbound: BytesMut,
    /// Bytes that are still to be written.
    pub(crate) outbound: BytesMut,
}

/// The result of [`SmppLink::next_io`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IoEvent {
    /// Bytes were added to `inbound`.
    Read,
    /// Bytes of `outbound` were written.
    Wrote,
}

impl SmppLink {
    /// Wraps a stream and disables Nagle's algorithm: PDUs that are ready together are written
    /// together anyway, and a window that waits for a delayed ACK stalls (531 messages/s instead
    /// of 40,000).
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let (read, write) = stream.into_split();
        Ok(Self { read, write, inbound: BytesMut::new(), outbound: BytesMut::new() })
    }

    /// Takes the inbound buffer, so that it can be parsed while responses are written.
    pub(crate) fn take_inbound(&mut self) -> BytesMut {
        std::mem::take(&mut self.inbound)
    }

    /// Returns the inbound buffer after all but its last `left` bytes were processed.
    pub(crate) fn return_inbound(&mut self, mut buffer: BytesMut, left: usize) {
        buffer.advance(buffer.len().saturating_sub(left));
        self.inbound = buffer;
    }

    /// Writes as much as the socket accepts without blocking.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while !self.outbound.is_empty() {
            match self.write.try_write(&self.outbound) {
                Ok(n) => self.outbound.advance(n),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Waits until bytes were read or written. Cancel safe.
    pub(crate) async fn next_io(&mut self) -> io::Result<IoEvent> {
        self.inbound.reserve(READ);
        tokio::select! {
            biased;
            read = self.read.read_buf(&mut self.inbound), if self.outbound.len() < MAX_UNWRITTEN => match read? {
                0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the peer")),
                _ => Ok(IoEvent::Read),
            },
            ready = self.write.writable(), if !self.outbound.is_empty() => {
                ready?;
                self.flush()?;
                Ok(IoEvent::Wrote)
            }
        }
    }
}
