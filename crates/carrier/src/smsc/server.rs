//! The SMPP listener of the simulated SMSC.

use crate::smsc::accept_loop;
use crate::smsc::session::ServerSession;
use crate::smsc::simulator::Simulator;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The connection limit.
const MAX_SESSIONS: usize = 1_000;

/// Serves all clients, with any credentials, until `stop` turns true.
pub async fn serve(listener: TcpListener, simulator: Simulator, stop: watch::Receiver<bool>) {
    let sessions = stop.clone();
    accept_loop::run(listener, MAX_SESSIONS, stop, |stream| {
        let (smsc, stop) = (simulator.smsc.clone(), sessions.clone());
        async move { ServerSession::serve(&smsc, stream, stop).await }
    })
    .await;
}
