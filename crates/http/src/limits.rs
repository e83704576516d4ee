//! The limits of the listener, each with its reason: no client may use up the resources of the
//! others.

use std::time::Duration;

/// The largest request head, in bytes. Keys, ids and the headers of proxies need about one
/// kilobyte. HTTP/1 also allows at most 100 headers, for which hyper has room without allocating;
/// more are answered with 431.
pub(crate) const MAX_HEAD_BYTES: u32 = 32 << 10;
/// The largest head that HTTP/2 reads: between the two limits, the response has a body that says
/// what is wrong; beyond it, h2 answers 431 on its own.
pub(crate) const MAX_READ_HEAD_BYTES: u32 = 2 * MAX_HEAD_BYTES;
/// The read buffer of an HTTP/1 connection, in bytes: a head and a piece of a body.
pub(crate) const MAX_HTTP1_BUFFER: usize = 64 << 10;
/// Concurrent requests on one HTTP/2 connection: enough for a busy client with a single connection.
pub(crate) const MAX_HTTP2_STREAMS: u32 = 256;
/// The HTTP/2 flow-control windows of one request and of one connection, in bytes: enough for a
/// megabyte per second at high latency, and a bound of the memory for unread bodies.
pub(crate) const STREAM_WINDOW: u32 = 128 << 10;
pub(crate) const CONNECTION_WINDOW: u32 = 1 << 20;
/// The response bytes buffered for an HTTP/2 client that does not read them, for each request.
pub(crate) const MAX_SEND_BUFFER: usize = 64 << 10;
/// The streams that an HTTP/2 client may reset before they are accepted, and the stream errors that
/// it may cause. One more closes the connection (protection against rapid reset, CVE-2023-44487).
pub(crate) const MAX_RESET_STREAMS: usize = 32;
/// The idle time after which an HTTP/2 client is sent a PING, and the time it has to answer.
/// (HTTP/1 has no PING; see `ListenerLimits::idle_timeout`.)
pub(crate) const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(20);
/// The time within which a request body must be complete, and the bytes for which it gets one more
/// second: small bodies must arrive soon, large files may take minutes.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(30);
pub(crate) const BODY_RATE: usize = 32 << 10;
/// The longest time between two pieces of a body.
pub(crate) const BODY_PAUSE: Duration = Duration::from_secs(15);
/// The memory for request bodies that are being received, of all clients and of one, in bytes.
pub(crate) const MAX_BUFFERED: usize = 256 << 20;
pub(crate) const MAX_BUFFERED_PER_CLIENT: usize = 64 << 20;
/// The bytes that are read and dropped after a response to a request that was not read to its end,
/// and the longest time that this may take.
pub(crate) const DRAIN_LIMIT: usize = 32 << 20;
pub(crate) const DRAIN_TIME: Duration = Duration::from_secs(10);
/// The bytes that are read and dropped after the response to a request that is not valid HTTP, and
/// the longest time that this may take.
pub(crate) const LINGER_LIMIT: usize = 1 << 20;
pub(crate) const LINGER_TIME: Duration = Duration::from_secs(2);
/// The backlog of connections that are not accepted yet: a client that opens a thousand at once
/// must not have to retry.
pub(crate) const LISTEN_BACKLOG: u32 = 4_096;
/// Open files that are not available to incoming connections: 512 for webhooks, the rest for the
/// database, carriers and logs.
const RESERVED_FILES: usize = 768;
/// The pause after `accept` has failed, most likely because the process is out of file descriptors.
pub(crate) const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The least number of client addresses that can use up all connections.
const MIN_ADDRESSES: usize = 4;

/// The limits that tests lower.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenerLimits {
    /// Concurrent connections; further ones wait in the backlog. Each costs a file descriptor and
    /// up to a few hundred kilobytes.
    pub(crate) max_connections: usize,
    /// Concurrent connections from one address; further ones are closed at once. A busy client may
    /// have a thousand, and several clients may share an address.
    pub(crate) max_per_address: usize,
    /// The time limit of a TLS handshake, which takes one or two round trips.
    pub(crate) handshake_timeout: Duration,
    /// The time within which the head of the next request must be complete, however slowly it
    /// arrives, and within which the client must read a response (protection against slow clients,
    /// "slowloris").
    pub(crate) idle_timeout: Duration,
    /// The time that an idle connection stays open once the node drains: a request that is already
    /// in transit gets a response.
    pub(crate) close_grace: Duration,
}

impl Default for ListenerLimits {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            max_per_address: 10_000 / MIN_ADDRESSES,
            handshake_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            close_grace: Duration::from_secs(1),
        }
    }
}

impl ListenerLimits {
    /// Returns the limits of a process that may have `files` open files.
    pub(crate) fn within(files: usize) -> Self {
        let limits = Self::default();
        // With few files, connections get half of them.
        let connections =
            files.saturating_sub(RESERVED_FILES).max(files / 2).min(limits.max_connections);
        Self {
            max_connections: connections,
            max_per_address: connections.div_ceil(MIN_ADDRESSES),
            ..limits
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_other_uses() {
        for (files, connections, share) in
            [(256, 128, 32), (1_024, 512, 128), (4_096, 3_328, 832), (1 << 20, 10_000, 2_500)]
        {
            let limits = ListenerLimits::within(files);
            assert_eq!((limits.max_connections, limits.max_per_address), (connections, share));
        }
    }
}
