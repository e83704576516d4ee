//! The data folder: whose it is, and that nobody else works in it.

use crate::system::{RandomIds, SystemClock};
use anyhow::{Context, bail};
use heliograph_domain::id::Ids;
use heliograph_domain::time::Clock;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use uuid::Uuid;

/// One service per folder: a second one would free the leases of the first.
pub(crate) fn lock(data: &Path) -> anyhow::Result<File> {
    let path = data.join("lock");
    let file =
        File::create(&path).with_context(|| format!("{} can't be written", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!(
                "another heliograph is running on {}: stop it, or choose another server.data_dir",
                data.display()
            )
        }
        Err(TryLockError::Error(e)) => {
            Err(e).with_context(|| format!("{} can't be locked", path.display()))
        }
    }
}

/// By which the node recognises leases of its former self.
pub(crate) fn identity(data: &Path) -> anyhow::Result<Uuid> {
    let path = data.join("node");
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            text.trim().parse().with_context(|| format!("{} is no node's identity", path.display()))
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let fresh = RandomIds.next(SystemClock.now());
            std::fs::write(&path, format!("{fresh}\n"))
                .with_context(|| format!("{} can't be written", path.display()))?;
            Ok(fresh)
        }
        Err(e) => Err(e).with_context(|| format!("{} can't be read", path.display())),
    }
}
