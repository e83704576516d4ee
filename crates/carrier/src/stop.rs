//! The signal that the node shuts down.

use tokio::sync::watch;

/// Turns ready when `stop` is true, or whoever could say so is gone.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
