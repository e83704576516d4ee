//! The server: takes connections and serves each until it ends.

use crate::smsc::listen::listen;
use crate::smsc::session::Session;
use crate::smsc::simulator::Simulator;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The most connections at once.
const MAX_SESSIONS: usize = 1_000;

/// Answers whoever connects, with any credentials, until `stop` turns true.
pub async fn serve(listener: TcpListener, simulator: Simulator, stop: watch::Receiver<bool>) {
    let sessions = stop.clone();
    listen(listener, MAX_SESSIONS, stop, |stream| {
        let (smsc, stop) = (simulator.smsc.clone(), sessions.clone());
        async move { Session::serve(&smsc, stream, stop).await }
    })
    .await;
}
