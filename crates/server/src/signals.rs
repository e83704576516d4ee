//! Signals that end the process.

use tokio::signal::unix::{self, SignalKind};

/// Waits for SIGTERM or Ctrl-C.
pub(crate) async fn wait_for_shutdown() -> anyhow::Result<()> {
    let mut term = unix::signal(SignalKind::terminate())?;
    tokio::select! {
        _ = term.recv() => {}
        result = tokio::signal::ctrl_c() => result?,
    }
    Ok(())
}
