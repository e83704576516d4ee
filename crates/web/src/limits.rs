//! What one client may cost the others: limits of the listener, each with its reason.

use std::time::Duration;

/// The largest head of a request. Keys, ids and what proxies add need about one kilobyte. HTTP/1 also takes at
/// most the 100 headers that hyper has room for without allocating; more are answered with 431.
pub(crate) const HEAD: u32 = 32 << 10;
/// What one HTTP/1 connection may keep in memory on its way in: a head, and beside it a piece of a body.
pub(crate) const BUFFER: usize = 64 << 10;
/// Requests at once on one HTTP/2 connection: what a client needs that keeps one connection to us busy.
pub(crate) const STREAMS: u32 = 256;
/// Bodies that may be on their way to us before they are read, for one request and for one HTTP/2 connection:
/// enough for a megabyte a second over a long line, and no more memory than that.
pub(crate) const STREAM_WINDOW: u32 = 128 << 10;
pub(crate) const CONNECTION_WINDOW: u32 = 1 << 20;
/// What is kept of answers that an HTTP/2 client does not fetch, for each request.
pub(crate) const UNSENT: usize = 64 << 10;
/// Requests that an HTTP/2 client may take back before we have looked at them, and faults of its own making;
/// one more ends the connection, since only a flood does that.
pub(crate) const RESETS: usize = 32;
/// An HTTP/2 client that says nothing for so long is asked whether it is there, and has as long to answer.
/// (An HTTP/1 client can't be asked; it is given `Limits::patience`.)
pub(crate) const PING: Duration = Duration::from_secs(20);
/// Connections that the operating system may keep for us until we take them up: a client that begins with a
/// thousand at once must not wait for a second.
pub(crate) const BACKLOG: u32 = 4_096;
/// Open files that are not for connections to us: webhooks have 512, the rest is for the database, its pool,
/// carriers and logs.
const OTHER_FILES: usize = 768;
/// A pause after the operating system could not give a connection (no more files, most likely).
pub(crate) const BREATH: Duration = Duration::from_millis(100);

/// So many addresses are needed to have all connections.
const SHARES: usize = 4;

/// The limits that tests make smaller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections at once; more wait until one ends. Each costs an open file and up to some hundred kilobytes.
    pub(crate) connections: usize,
    /// Connections at once from one address, so that nobody has all of them; more are closed at once. A busy
    /// client may have a thousand, and several of them may share an address.
    pub(crate) from_one_address: usize,
    /// How long a TLS handshake may take, which is two or three messages.
    pub(crate) handshake: Duration,
    /// How long a connection may take until its next request's head is complete, however it drips in, and how
    /// long its client may take to fetch an answer: silent ones must not use up what there is for others.
    pub(crate) patience: Duration,
    /// How long a connection without a request stays open once the node drains: a request that is on its way
    /// to us at that moment is answered.
    pub(crate) farewell: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            from_one_address: 10_000 / SHARES,
            handshake: Duration::from_secs(10),
            patience: Duration::from_secs(60),
            farewell: Duration::from_secs(1),
        }
    }
}

impl Limits {
    /// For a process that may have so many open files.
    pub(crate) fn within(files: usize) -> Self {
        let limits = Self::default();
        // With few files, half of them.
        let connections = files.saturating_sub(OTHER_FILES).max(files / 2).min(limits.connections);
        Self { connections, from_one_address: connections.div_ceil(SHARES), ..limits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_rest() {
        for (files, connections, share) in
            [(256, 128, 32), (1_024, 512, 128), (4_096, 3_328, 832), (1 << 20, 10_000, 2_500)]
        {
            let limits = Limits::within(files);
            assert_eq!((limits.connections, limits.from_one_address), (connections, share));
        }
    }
}
