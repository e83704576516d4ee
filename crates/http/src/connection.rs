//! Serves one HTTP/1 or HTTP/2 connection until it closes, times out, or the node drains.

use crate::documented_errors::DocumentedErrors;
use crate::drain::RequestGate;
use crate::error_document::ErrorDocuments;
use crate::idle::IdleTracker;
use crate::limits::{self, ListenerLimits};
use axum::response::Response;
use futures_util::FutureExt;
use hyper::Request;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Serves connections; `handler` answers their requests.
#[derive(Clone)]
pub(crate) struct HttpServer<H> {
    pub(crate) handler: H,
    pub(crate) gate: RequestGate,
    pub(crate) limits: ListenerLimits,
    /// Makes the responses to requests that are not valid HTTP.
    pub(crate) errors: ErrorDocuments,
    /// The address of the other end of the connection.
    pub(crate) peer: IpAddr,
}

impl<H> HttpServer<H> {
    /// Serves an HTTP/1 connection. For speed, requests get neither a timer nor a task of their
    /// own.
    pub(crate) async fn http1<S, F>(self, io: S)
    where
        S: AsyncRead + AsyncWrite + Unpin,
        H: Fn(Request<Incoming>) -> F,
        F: Future<Output = Result<Response, Infallible>>,
    {
        let state = ConnectionState::new(&self, false);
        let io = DocumentedErrors::new(io, self.errors, self.peer);
        let (handler, idle) = (self.handler, state.idle.clone());
        let service = service_fn(move |request| {
            let active = idle.begin_request();
            handler(request).inspect(move |_| drop(active))
        });
        let mut builder = http1::Builder::new();
        builder
            .max_header_size(limits::MAX_HEAD_BYTES as usize)
            .max_buf_size(limits::MAX_HTTP1_BUFFER);
        let connection = builder.serve_connection(TokioIo::new(io), service);
        drive(connection, http1::Connection::graceful_shutdown, state).await;
    }

    /// Serves an HTTP/2 connection. Each request has a task that ends with the connection.
    pub(crate) async fn http2<S, F>(self, io: S)
    where
        S: AsyncRead + AsyncWrite + Unpin,
        H: Fn(Request<Incoming>) -> F,
        F: Future<Output = Result<Response, Infallible>> + Send + 'static,
    {
        let state = ConnectionState::new(&self, true);
        let Self { handler, gate, .. } = self;
        let (idle, rejected) = (state.idle.clone(), state.rejected.clone());
        let service = service_fn(move |request| {
            let (active, gate, rejected) = (idle.begin_request(), gate.clone(), rejected.clone());
            handler(request).inspect(move |_| {
                drop(active);
                if gate.is_draining() {
                    rejected.notify_one();
                }
            })
        });
        let streams = Streams::default();
        let connection = http2_builder(&streams).serve_connection(TokioIo::new(io), service);
        drive(connection, http2::Connection::graceful_shutdown, state).await;
    }
}

fn http2_builder(streams: &Streams) -> http2::Builder<Spawner> {
    let mut builder = http2::Builder::new(streams.spawner());
    builder
        .timer(TokioTimer::new())
        .max_header_list_size(limits::MAX_READ_HEAD_BYTES)
        .max_concurrent_streams(limits::MAX_HTTP2_STREAMS)
        .max_pending_accept_reset_streams(limits::MAX_RESET_STREAMS)
        .max_local_error_reset_streams(limits::MAX_RESET_STREAMS)
        .initial_stream_window_size(limits::STREAM_WINDOW)
        .initial_connection_window_size(limits::CONNECTION_WINDOW)
        .max_send_buf_size(limits::MAX_SEND_BUFFER)
        .keep_alive_interval(limits::HTTP2_PING_INTERVAL)
        .keep_alive_timeout(limits::HTTP2_PING_INTERVAL);
    builder
}

/// The state of a connection, whatever its protocol.
struct ConnectionState {
    idle: IdleTracker,
    gate: RequestGate,
    limits: ListenerLimits,
    /// True for an HTTP/2 connection that was opened before the node began to drain.
    http2_before_drain: bool,
    /// Notified when an HTTP/2 request got a response while the node drains.
    rejected: Arc<Notify>,
}

impl ConnectionState {
    fn new<H>(server: &HttpServer<H>, http2: bool) -> Self {
        let (gate, limits) = (server.gate.clone(), server.limits);
        let http2_before_drain = http2 && !gate.is_draining();
        Self {
            idle: IdleTracker::new(),
            gate,
            limits,
            http2_before_drain,
            rejected: Arc::default(),
        }
    }

    /// Completes when the drain time-out aborts a request in flight.
    async fn aborted(&mut self) {
        self.gate.cutoff().await;
        if !self.idle.is_busy() {
            std::future::pending::<()>().await;
        }
    }
}

/// Drives a connection until it ends, its client is idle for too long, or the node drains.
async fn drive<C>(connection: C, shut_down: fn(Pin<&mut C>), mut state: ConnectionState)
where
    C: Future<Output = hyper::Result<()>>,
{
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = state.idle.idle_for(state.limits.idle_timeout) => {
            tracing::debug!("idle connection closed");
            shut_down(connection.as_mut());
            tokio::time::timeout(state.limits.close_grace, connection).await.unwrap_or(Ok(()))
        }
        () = state.gate.draining() => Box::pin(close(connection, shut_down, state)).await,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection failed");
    }
}

/// Closes a connection gracefully: requests in flight and in transit get a response.
async fn close<C>(
    mut connection: Pin<&mut C>,
    shut_down: fn(Pin<&mut C>),
    mut state: ConnectionState,
) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    // HTTP/2 tells the client in GOAWAY which requests are still served. HTTP/1 can do so only with
    // a response (Connection: close), so that an idle connection may send one more request, and so
    // may a new one.
    if !state.http2_before_drain && !state.idle.is_busy() {
        tokio::select! {
            ended = connection.as_mut() => return ended,
            () = state.rejected.notified() => {}
            () = tokio::time::sleep(state.limits.close_grace) => {}
        }
    }
    shut_down(connection.as_mut());
    let idle = state.idle.clone();
    tokio::select! {
        ended = connection => ended,
        () = idle.idle_for(state.limits.idle_timeout) => Ok(()),
        () = state.aborted() => {
            tracing::debug!("request aborted after drain time-out");
            Ok(())
        }
    }
}

/// The tasks of one HTTP/2 connection. Dropping this aborts them.
#[derive(Default)]
struct Streams(Arc<Mutex<JoinSet<()>>>);

impl Streams {
    fn spawner(&self) -> Spawner {
        Spawner(Arc::downgrade(&self.0))
    }
}

/// Spawns the tasks of one HTTP/2 connection.
#[derive(Clone)]
struct Spawner(Weak<Mutex<JoinSet<()>>>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Spawner {
    fn execute(&self, stream: F) {
        let Some(streams) = self.0.upgrade() else { return };
        let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
        while streams.try_join_next().is_some() {}
        streams.spawn(stream);
    }
}

#[cfg(test)]
mod tests;
