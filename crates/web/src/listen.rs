//! Takes up connections, answers their requests, and lets them go in order when the node drains.

use crate::app::App;
use crate::requests;
use crate::router::router;
use futures_util::FutureExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Connections at once; more wait until one ends.
const CONNECTIONS: usize = 10_000;
/// How long a connection may take until its next request's head is complete, and how long its client may
/// take to fetch an answer: silent ones must not use up what there is for others.
const PATIENCE: Duration = Duration::from_secs(60);
/// A pause after the operating system could not give a connection (no more files, most likely).
const BREATH: Duration = Duration::from_millis(100);

/// Answers requests until `app.draining` turns true, then ends each connection once its request is done.
pub async fn serve(listener: TcpListener, app: App) {
    let app = Arc::new(app);
    let router = router(app.clone());
    let mut draining = app.draining.clone();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            taken = listener.accept(), if connections.len() < CONNECTIONS => match taken {
                Ok((socket, _)) => {
                    connections.spawn(converse(socket, app.clone(), router.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken up");
                    tokio::time::sleep(BREATH).await;
                }
            },
            Some(_) = connections.join_next() => {}
            () = told(&mut draining) => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Waits until the node drains.
async fn told(draining: &mut watch::Receiver<bool>) {
    drop(draining.wait_for(|d| *d).await);
}

/// One connection, request after request.
async fn converse(socket: TcpStream, app: Arc<App>, router: axum::Router) {
    // Answers are small and complete: waiting for more only costs the client time.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "a connection kept Nagle's delay");
    }
    let mut draining = app.draining.clone();
    let turn = Turn::default();
    let service = service_fn({
        let turn = turn.clone();
        move |request| {
            turn.ours();
            let turn = turn.clone();
            requests::answer(app.clone(), router.clone(), request).inspect(move |_| turn.theirs())
        }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = turn.forgotten() => return tracing::debug!("a silent connection was closed"),
        () = told(&mut draining) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Whose turn it is on a connection: since when the client's, if it is not ours.
///
/// hyper has such a limit too, but makes a new timer for each request; here one serves the connection.
#[derive(Clone)]
struct Turn(Arc<Mutex<Option<Instant>>>);

impl Default for Turn {
    /// The client begins.
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Some(Instant::now()))))
    }
}

impl Turn {
    fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    fn ours(&self) {
        self.set(None);
    }

    fn theirs(&self) {
        self.set(Some(Instant::now()));
    }

    /// Comes back when the client has let its turn pass.
    async fn forgotten(&self) {
        loop {
            let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let left = since.map_or(PATIENCE, |s| PATIENCE.saturating_sub(s.elapsed()));
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_lets_their_turn_pass_is_forgotten() {
        let (turn, begun) = (Turn::default(), Instant::now());
        turn.forgotten().await;
        assert_eq!(begun.elapsed().as_secs(), PATIENCE.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_forgotten_while_we_answer_or_soon_after() {
        let turn = Turn::default();
        let answers = async {
            for _ in 0..5 {
                tokio::time::sleep(PATIENCE / 2).await;
                turn.ours();
                tokio::time::sleep(PATIENCE * 2).await;
                turn.theirs();
            }
            Instant::now()
        };
        let (last, ()) = tokio::join!(answers, turn.forgotten());
        assert!(last.elapsed() >= PATIENCE, "forgotten {:?} after an answer", last.elapsed());
        assert!(last.elapsed() <= PATIENCE * 2, "forgotten late: {:?}", last.elapsed());
    }
}
