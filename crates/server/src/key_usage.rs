//! Periodically saves when each API key was last used.

use heliograph_engine::{PeriodicTask, Worker};
use heliograph_service::identity::api_keys::Keyring;
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::error::Result;
use std::time::Duration;
use tokio::sync::watch;

/// The interval between saves, and so the precision of the times; a request itself writes nothing.
const PERIOD: Duration = Duration::from_secs(10);

/// The times of last use that this node knows.
struct KeyUsage {
    context: Context,
    keyring: Keyring,
}

/// Runs until `stop` turns true.
pub(crate) async fn run(context: Context, keyring: Keyring, stop: watch::Receiver<bool>) {
    Worker { interval: PERIOD, stop }.run(&mut KeyUsage { context, keyring }).await;
}

impl PeriodicTask for KeyUsage {
    const FAILURE: &'static str = "failed to save the last use of API keys";

    async fn turn(&mut self) -> Result<()> {
        self.keyring.flush(&self.context).await
    }
}

/// Saves the times that changed since the last save, at shutdown.
pub(crate) async fn flush(context: &Context, keyring: &Keyring) {
    if let Err(error) = keyring.flush(context).await {
        tracing::warn!(%error, "{}", KeyUsage::FAILURE);
    }
}
