//! Restoring a backup: its preconditions, and the treatment of work that was in progress.

use crate::kernel::error::{ConflictReason, Error, Result};
use async_recursion::async_recursion as boxed;
use heliograph_store::identity::accounts;
use heliograph_store::messaging::queue;
use heliograph_store::operations::backup::{Backup, ProgressCallback};
use heliograph_store::operations::check;
use heliograph_store::operations::nodes;
use heliograph_store::webhooks::deliveries;
use heliograph_store::{Db, verify_sealing_key};

/// The result of a restore.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Restored {
    /// The number of messages that a node held at the time of the backup: each may have been sent,
    /// and is sent again.
    pub in_doubt: u64,
    /// The violated invariants; empty without `force`.
    pub violations: Vec<String>,
}

/// Returns whether other Heliograph processes use this database, as far as it can tell.
#[boxed]
pub async fn is_in_use(db: &Db) -> Result<bool> {
    Ok(nodes::count_other_connections(&mut db.read().await?).await? > 0)
}

/// Replaces the whole content of the database with `backup` in one transaction. Node numbers are
/// restored too, so that a number never stands for another node.
///
/// # Errors
/// [`Error::Conflict`] without `force` when the database holds accounts or the backup violates an
/// invariant.
pub async fn restore(
    db: &Db,
    backup: &mut Backup,
    force: bool,
    progress: ProgressCallback<'_>,
) -> Result<Restored> {
    let mut tx = db.write().await?;
    let there = accounts::all(&mut tx).await?.len();
    if there > 0 && !force {
        return Err(Error::Conflict(ConflictReason::DatabaseNotEmpty(there)));
    }
    backup.replace(&mut tx, progress).await?;
    // The secrets of the backup must be readable with this node's key.
    verify_sealing_key(&mut tx).await?;
    let in_doubt = queue::release_all(&mut tx).await?;
    deliveries::release_all(&mut tx).await?;
    let violations = check::violations(&mut tx).await?;
    if let Some(first) = violations.first().filter(|_| !force) {
        let reason =
            ConflictReason::BackupViolations { count: violations.len(), first: first.clone() };
        return Err(Error::Conflict(reason));
    }
    tx.commit().await?;
    Ok(Restored { in_doubt, violations })
}
