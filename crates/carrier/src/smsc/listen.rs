//! A listener at work: takes connections, so many at once, until it is time to stop.

use crate::stop::stopped;
use std::future::Future;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The wait after a connection that could not be taken: most likely there are too many open files.
const BREATH: Duration = Duration::from_millis(100);

/// Does `work` with each connection, at most `most` at once. When `stop` turns true it takes no
/// more, and waits for those that there are: they have to see `stop` themselves.
pub(crate) async fn listen<F>(
    listener: TcpListener,
    most: usize,
    mut stop: watch::Receiver<bool>,
    work: impl Fn(TcpStream) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            () = stopped(&mut stop) => break,
            Some(_) = tasks.join_next() => {}
            taken = listener.accept(), if tasks.len() < most => match taken {
                Ok((stream, _)) => {
                    tasks.spawn(work(stream));
                }
                Err(error) => {
                    tracing::warn!("the SMSC could not take a connection: {error}");
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}
