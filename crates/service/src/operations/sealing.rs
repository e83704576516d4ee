//! Replacing the sealing key.

use crate::kernel::error::Result;
use async_recursion::async_recursion as boxed;
use heliograph_store::{Db, SealingKey, rotate_sealing_key};

/// Seals all secrets of the database with `key`, in one transaction, and returns their number. No
/// other process may use the database; the caller has stored the key.
#[boxed]
pub async fn rotate(db: &Db, key: &SealingKey) -> Result<u64> {
    let mut tx = db.write().await?;
    let secrets = rotate_sealing_key(&mut tx, key).await?;
    tx.commit().await?;
    Ok(secrets)
}
