//! Restoring a backup: its preconditions, and the treatment of work that was in progress.

use crate::kernel::error::{ConflictReason, Error, Result};
use crate::operations::restored_access::{self, RestoredAccess};
use async_recursion::async_recursion as boxed;
use heliograph_domain::id::Ids;
use heliograph_store::identity::accounts;
use heliograph_store::messaging::queue;
use heliograph_store::operations::access::{self, EndedSignIns};
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
    /// The sessions, links and invitations of the backup that ended.
    pub ended: EndedSignIns,
    /// The access that was revoked since the backup, and exists again; `None` when the replaced
    /// database could not tell.
    pub access: Option<Vec<RestoredAccess>>,
    /// The number of API keys that were revoked; `None` unless it was asked for.
    pub revoked_keys: Option<u64>,
}

/// Returns whether other Heliograph processes use this database, as far as it can tell.
#[boxed]
pub async fn is_in_use(db: &Db) -> Result<bool> {
    Ok(nodes::count_other_connections(&mut db.read().await?).await? > 0)
}

/// The options of a restore.
#[derive(Clone, Copy)]
pub struct RestoreOptions<'a> {
    /// Replaces existing data, and accepts a backup that violates invariants.
    pub force: bool,
    /// Revokes all API keys.
    pub revoke_keys: bool,
    /// The source of the ids of audit log entries.
    pub ids: &'a dyn Ids,
}

/// Replaces the whole content of the database with `backup` in one transaction. Node numbers are
/// restored too, so that a number never stands for another node. Sessions, links and invitations of
/// the backup end, because some of them may have ended since.
///
/// # Errors
/// [`Error::Conflict`] without `force` when the database holds accounts or the backup violates an
/// invariant.
pub async fn restore(
    db: &Db,
    backup: &mut Backup,
    options: RestoreOptions<'_>,
    progress: ProgressCallback<'_>,
) -> Result<Restored> {
    let RestoreOptions { force, revoke_keys, ids } = options;
    let (mut tx, now) = (db.write().await?, db.now());
    let there = accounts::all(&mut tx).await?.len();
    if there > 0 && !force {
        return Err(Error::Conflict(ConflictReason::DatabaseNotEmpty(there)));
    }
    let before = access::load(&mut tx).await?;
    backup.replace(&mut tx, progress).await?;
    // The secrets of the backup must be readable with this node's key.
    verify_sealing_key(&mut tx).await?;
    let after = access::load(&mut tx).await?;
    let ended = access::end_sign_ins(&mut tx).await?;
    let in_doubt = queue::release_all(&mut tx).await?;
    deliveries::release_all(&mut tx).await?;
    let violations = check::violations(&mut tx).await?;
    if let Some(first) = violations.first().filter(|_| !force) {
        let reason =
            ConflictReason::BackupViolations { count: violations.len(), first: first.clone() };
        return Err(Error::Conflict(reason));
    }
    restored_access::record(&mut tx, ids, now).await?;
    let revoked_keys = match revoke_keys {
        true => Some(restored_access::revoke_keys(&mut tx, ids, now, &after).await?),
        false => None,
    };
    tx.commit().await?;
    let access = restored_access::compare(&before, &after);
    Ok(Restored { in_doubt, violations, ended, access, revoked_keys })
}
