//! One TCP connection with its two buffers: whole batches in, whole batches out.

use bytes::{Buf, BytesMut};
use std::io;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// How much is read at once; more than the longest PDU, so that one always fits.
const READ: usize = 128 * 1024;

/// With so much unwritten, nothing more is read: a peer that does not listen may not talk either.
const MAX_UNWRITTEN: usize = 4 * 1024 * 1024;

/// A connection. Nothing in it is ever waited for but the socket itself.
#[derive(Debug)]
pub(crate) struct Link {
    read: OwnedReadHalf,
    write: OwnedWriteHalf,
    /// What was read and not yet taken.
    pub(crate) inbound: BytesMut,
    /// What is to be written.
    pub(crate) outbound: BytesMut,
}

/// What [`Link::turn`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// There is more in `inbound`.
    Read,
    /// There is less in `outbound`.
    Wrote,
}

impl Link {
    /// Without Nagle's algorithm: PDUs that are ready together are written together anyway, and a
    /// window that waits for a delayed ACK stands still (531 messages/s instead of 40,000).
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let (read, write) = stream.into_split();
        Ok(Self { read, write, inbound: BytesMut::new(), outbound: BytesMut::new() })
    }

    /// Lends out what was read, so that it can be looked at while answers are written.
    pub(crate) fn lend(&mut self) -> BytesMut {
        std::mem::take(&mut self.inbound)
    }

    /// Takes it back when all but the last `left` bytes are dealt with.
    pub(crate) fn give_back(&mut self, mut lent: BytesMut, left: usize) {
        lent.advance(lent.len().saturating_sub(left));
        self.inbound = lent;
    }

    /// Writes as much as the socket takes now.
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

    /// Waits until something was read or could be written. Loses nothing when it is dropped.
    pub(crate) async fn turn(&mut self) -> io::Result<Turn> {
        self.inbound.reserve(READ);
        tokio::select! {
            biased;
            read = self.read.read_buf(&mut self.inbound), if self.outbound.len() < MAX_UNWRITTEN => match read? {
                0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the other side")),
                _ => Ok(Turn::Read),
            },
            ready = self.write.writable(), if !self.outbound.is_empty() => {
                ready?;
                self.flush()?;
                Ok(Turn::Wrote)
            }
        }
    }
}
