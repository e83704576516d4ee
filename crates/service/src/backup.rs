//! Going back to a backup: what must hold before, and what is made of work that was under way.

use crate::error::{Error, Result};
use heliograph_store::backup::{Backup, Progress};
use heliograph_store::{Db, accounts, check, deliveries, installation, nodes, queue};

/// What a restore found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Restored {
    /// Messages that a node held when the backup was made: each may have been sent, and is sent again.
    pub in_doubt: u64,
    /// What `check` has to say of it; without `force`, nothing.
    pub violations: Vec<String>,
}

/// Whether other programs of ours are at work on this database, as far as it can tell.
///
/// # Errors
/// As any read.
pub async fn is_in_use(db: &Db) -> Result<bool> {
    Ok(nodes::others(&mut db.read().await?).await? > 0)
}

/// Puts what is in `backup` in the place of all that the database holds, in one transaction. The numbers of nodes
/// come along: a number that once stood for a node never stands for another.
///
/// # Errors
/// [`Error::Conflict`] when there are accounts already, or the backup breaks an invariant, and not `force`.
pub async fn restore(
    db: &Db,
    backup: &mut Backup,
    force: bool,
    progress: Progress<'_>,
) -> Result<Restored> {
    let mut tx = db.write().await?;
    let there = accounts::all(&mut tx).await?.len();
    if there > 0 && !force {
        return Err(Error::Conflict(format!(
            "the database holds accounts already ({there}): --force replaces all that it holds"
        )));
    }
    backup.replace(&mut tx, progress).await?;
    // Its secrets are of no use to a node that can't open them.
    installation::prove_key(&mut tx).await?;
    let in_doubt = queue::free_all(&mut tx).await?;
    deliveries::free_all(&mut tx).await?;
    let violations = check::violations(&mut tx).await?;
    if let Some(first) = violations.first().filter(|_| !force) {
        return Err(Error::Conflict(format!(
            "the backup breaks invariants ({}), nothing was changed: {first}; --force takes it nevertheless",
            violations.len()
        )));
    }
    tx.commit().await?;
    Ok(Restored { in_doubt, violations })
}
