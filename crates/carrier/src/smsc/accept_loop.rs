//! The accept loop of a listener, with a connection limit.

use crate::stop::stopped;
use std::future::Future;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The pause after a failed accept, which most likely means too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Runs `serve` for each connection, at most `max_connections` at once. When `stop` turns true it
/// accepts no more and waits for the open connections, which have to watch `stop` themselves.
pub(crate) async fn run<F>(
    listener: TcpListener,
    max_connections: usize,
    mut stop: watch::Receiver<bool>,
    serve: impl Fn(TcpStream) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            () = stopped(&mut stop) => break,
            Some(_) = tasks.join_next() => {}
            accepted = listener.accept(), if tasks.len() < max_connections => match accepted {
                Ok((stream, _)) => {
                    tasks.spawn(serve(stream));
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept SMSC connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}
