//! The running tasks of a node and their graceful shutdown: started requests finish, and unfinished
//! work is returned to the queue.

use crate::signals;
use heliograph_http::DrainController;
use std::process::ExitCode;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The time limit of the whole drain.
const DRAIN: Duration = Duration::from_secs(30);
/// The part of it that open HTTP requests get to finish, so that a slow client cannot use up the
/// time that the carriers need to return their work.
const DRAIN_WEB: Duration = Duration::from_secs(10);

/// The tasks of a node, in shutdown order.
pub(crate) struct RunningNode {
    pub(crate) drain_controller: DrainController,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) engine: JoinSet<()>,
    pub(crate) web: JoinSet<()>,
    pub(crate) background: JoinSet<()>,
    writer: JoinHandle<()>,
}

impl RunningNode {
    pub(crate) fn new(writer: JoinHandle<()>, max_in_flight: u32) -> Self {
        let (drain_controller, stop) =
            (DrainController::new(max_in_flight), watch::Sender::new(false));
        let (web, engine, background) = (JoinSet::new(), JoinSet::new(), JoinSet::new());
        Self { drain_controller, stop, engine, web, background, writer }
    }

    /// Waits for SIGTERM or Ctrl-C, then shuts down gracefully: rejects new requests with 503,
    /// finishes the open ones, drains the carriers, and lets the writer commit what is left.
    pub(crate) async fn until_stopped(mut self) -> anyhow::Result<ExitCode> {
        tokio::select! {
            signal = signals::wait_for_shutdown() => signal?,
            Some(result) = self.web.join_next() => result?,
        }
        tracing::info!("draining");
        if tokio::time::timeout(DRAIN, self.drain()).await.is_err() {
            tracing::warn!("drain timed out; remaining leases will expire");
            self.engine.shutdown().await;
        }
        self.drain_controller.close();
        while self.web.join_next().await.is_some() {}
        self.background.shutdown().await;
        // The last handle to the writer is gone, so it ends after committing what is left.
        let writer = self.writer;
        drop(tokio::task::spawn_blocking(move || writer.join()).await?);
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    }

    async fn drain(&mut self) {
        if self.drain_controller.drain(DRAIN_WEB).await {
            tracing::warn!("a client did not finish its request in time");
        }
        self.stop.send_replace(true);
        while self.engine.join_next().await.is_some() {}
    }
}
