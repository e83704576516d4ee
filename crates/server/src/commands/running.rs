//! Finds out which other Heliograph processes run.

use crate::commands::context::CommandContext;
use crate::data_dir;
use anyhow::bail;
use heliograph_service::operations::backup;
use heliograph_service::operations::carriers;
use heliograph_store::Db;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// The time limit for the database connections of finished commands to close.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The polling interval for open connections.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Fails unless a service runs that delivers webhooks: one that holds the lock of this data
/// directory or, on PostgreSQL, a node that reported the status of its carriers within the last
/// minute.
pub(crate) async fn require_service(command: &CommandContext) -> anyhow::Result<()> {
    let data = Path::new(&command.config.server.data_dir);
    if data_dir::is_locked(data)? {
        return Ok(());
    }
    let cx = &command.context;
    let mut links = carriers::all(cx).await?.into_iter().flat_map(|carrier| carrier.links);
    if cx.db.is_shared() && links.any(|link| !link.stale) {
        return Ok(());
    }
    bail!(
        "the service is not running; start it with 'heliograph serve', then run this command again"
    )
}

/// Fails while other processes are connected to the database, which only PostgreSQL can tell.
pub(crate) async fn refuse_in_use(db: &Db) -> anyhow::Result<()> {
    let started = Instant::now();
    while backup::is_in_use(db).await? {
        if started.elapsed() > DISCONNECT_TIMEOUT {
            bail!(
                "another heliograph is connected to this database; stop every node and wait for running commands to finish"
            );
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}
