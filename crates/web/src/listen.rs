//! Takes up connections, answers their requests, and lets them go in order when the node drains.

use crate::app::App;
use crate::requests;
use crate::router::router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Connections at once; more wait until one ends.
const CONNECTIONS: usize = 10_000;
/// How long a connection may be silent before or within a request's head: silent ones must not use
/// up what there is for others.
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
    let service = service_fn(move |request| requests::answer(app.clone(), router.clone(), request));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let connection = http.serve_connection(TokioIo::new(socket), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = told(&mut draining) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}
