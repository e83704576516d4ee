//! One connection: request after request over HTTP/1, or many at once over HTTP/2, until it ends in order.

use crate::gate::Gate;
use crate::limits::{self, Limits};
use crate::turn::Turn;
use axum::response::Response;
use futures_util::FutureExt;
use hyper::Request;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Serves connections: `handler` answers their requests.
#[derive(Clone)]
pub(crate) struct Server<H> {
    pub(crate) handler: H,
    pub(crate) gate: Gate,
    pub(crate) limits: Limits,
}

impl<H> Server<H> {
    /// One request after the other. This road is kept short: no timer and no task for a request.
    pub(crate) async fn http1<S, F>(self, io: S)
    where
        S: AsyncRead + AsyncWrite + Unpin,
        H: Fn(Request<Incoming>) -> F,
        F: Future<Output = Result<Response, Infallible>>,
    {
        let line = Line::new(&self, false);
        let (handler, turn) = (self.handler, line.turn.clone());
        let service = service_fn(move |request| {
            let asked = turn.begin();
            handler(request).inspect(move |_| drop(asked))
        });
        let mut builder = http1::Builder::new();
        builder.max_header_size(limits::HEAD as usize).max_buf_size(limits::BUFFER);
        let connection = builder.serve_connection(TokioIo::new(io), service);
        carry(connection, http1::Connection::graceful_shutdown, line).await;
    }

    /// Many requests at once, each in a task that ends with the connection.
    pub(crate) async fn http2<S, F>(self, io: S)
    where
        S: AsyncRead + AsyncWrite + Unpin,
        H: Fn(Request<Incoming>) -> F,
        F: Future<Output = Result<Response, Infallible>> + Send + 'static,
    {
        let line = Line::new(&self, true);
        let Self { handler, gate, .. } = self;
        let (turn, refused) = (line.turn.clone(), line.refused.clone());
        let service = service_fn(move |request| {
            let (asked, gate, refused) = (turn.begin(), gate.clone(), refused.clone());
            handler(request).inspect(move |_| {
                drop(asked);
                if gate.is_draining() {
                    refused.notify_one();
                }
            })
        });
        let streams = Streams::default();
        let connection = http2_builder(&streams).serve_connection(TokioIo::new(io), service);
        carry(connection, http2::Connection::graceful_shutdown, line).await;
    }
}

fn http2_builder(streams: &Streams) -> http2::Builder<Spawner> {
    let mut builder = http2::Builder::new(streams.spawner());
    builder
        .timer(TokioTimer::new())
        .max_header_list_size(limits::HEAD)
        .max_concurrent_streams(limits::STREAMS)
        .max_pending_accept_reset_streams(limits::RESETS)
        .max_local_error_reset_streams(limits::RESETS)
        .initial_stream_window_size(limits::STREAM_WINDOW)
        .initial_connection_window_size(limits::CONNECTION_WINDOW)
        .max_send_buf_size(limits::UNSENT)
        .keep_alive_interval(limits::PING)
        .keep_alive_timeout(limits::PING);
    builder
}

/// What is known of a connection beside its protocol.
struct Line {
    turn: Turn,
    gate: Gate,
    limits: Limits,
    /// Many requests at once; and it was there before the node began to drain.
    many: bool,
    /// Told when a request of many has been answered while the node drains.
    refused: Arc<Notify>,
}

impl Line {
    fn new<H>(server: &Server<H>, http2: bool) -> Self {
        let (gate, limits) = (server.gate.clone(), server.limits);
        let many = http2 && !gate.is_draining();
        Self { turn: Turn::new(), gate, limits, many, refused: Arc::default() }
    }

    /// Comes back when a request that has begun is cut off.
    async fn cut(&mut self) {
        self.gate.late().await;
        if !self.turn.is_ours() {
            std::future::pending::<()>().await;
        }
    }
}

/// Keeps a connection going until it ends, its client falls silent, or the node drains.
async fn carry<C>(connection: C, wind_up: fn(Pin<&mut C>), mut line: Line)
where
    C: Future<Output = hyper::Result<()>>,
{
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = line.turn.forgotten(line.limits.patience) => {
            tracing::debug!("a silent connection is closed");
            wind_up(connection.as_mut());
            tokio::time::timeout(line.limits.farewell, connection).await.unwrap_or(Ok(()))
        }
        () = line.gate.draining() => Box::pin(leave(connection, wind_up, line)).await,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Lets a connection end in order: what has begun is answered, and so is what is on its way to us.
async fn leave<C>(
    mut connection: Pin<&mut C>,
    wind_up: fn(Pin<&mut C>),
    mut line: Line,
) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    // HTTP/2 says in its GOAWAY which requests it still answers. HTTP/1 can say that only with an answer
    // (Connection: close), so that who has asked for nothing yet may do so once; and so may who has just come.
    if !line.many && !line.turn.is_ours() {
        tokio::select! {
            ended = connection.as_mut() => return ended,
            () = line.refused.notified() => {}
            () = tokio::time::sleep(line.limits.farewell) => {}
        }
    }
    wind_up(connection.as_mut());
    let turn = line.turn.clone();
    tokio::select! {
        ended = connection => ended,
        () = turn.forgotten(line.limits.patience) => Ok(()),
        () = line.cut() => {
            tracing::debug!("a request was cut off");
            Ok(())
        }
    }
}

/// The requests of one HTTP/2 connection; those that are under way end when this is dropped.
#[derive(Default)]
struct Streams(Arc<Mutex<JoinSet<()>>>);

impl Streams {
    fn spawner(&self) -> Spawner {
        Spawner(Arc::downgrade(&self.0))
    }
}

/// Starts requests of one connection.
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
