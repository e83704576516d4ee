//! The signal that starts a graceful shutdown.

use tokio::sync::watch;

/// Waits until `stop` is true or its sender is dropped.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
