//! Reloads the TLS certificate when its files change, and on SIGHUP.

use heliograph_engine::{PeriodicTask, Worker};
use heliograph_http::CertificateReloader;
use heliograph_service::kernel::error::Result;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::Signal;
use tokio::sync::{Notify, watch};

/// The interval between checks of the files. They are small, so that polling is cheap.
const PERIOD: Duration = Duration::from_secs(5);

/// The certificate of this node.
struct CertificateReload {
    reloader: CertificateReloader,
    /// Notified on SIGHUP.
    hangup: Arc<Notify>,
}

/// Runs until `stop` turns true. Reloads at once on each notification of `hangup`.
pub(crate) async fn run(
    reloader: CertificateReloader,
    hangup: Arc<Notify>,
    stop: watch::Receiver<bool>,
) {
    Worker { interval: PERIOD, stop }.run(&mut CertificateReload { reloader, hangup }).await;
}

impl PeriodicTask for CertificateReload {
    const FAILURE: &'static str = "failed to reload certificate";

    /// Never fails: the reloader logs an invalid certificate once, and SIGHUP has an effect again
    /// at once.
    async fn turn(&mut self) -> Result<()> {
        self.reloader.reload().await;
        Ok(())
    }

    async fn woken(&mut self) {
        self.hangup.notified().await;
    }
}

/// Handles SIGHUP, which would otherwise end the process, with and without a certificate.
pub(crate) async fn hangups(mut signal: Signal, hangup: Arc<Notify>) {
    while signal.recv().await.is_some() {
        tracing::info!(
            "SIGHUP received: reloading certificates; configuration changes require a restart"
        );
        hangup.notify_one();
    }
}
