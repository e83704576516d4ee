//! The data folder: whose it is, and that nobody else works in it.

use crate::config::Config;
use crate::system::{RandomIds, SystemClock};
use anyhow::{Context, bail};
use heliograph_domain::id::Ids;
use heliograph_domain::time::Clock;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use uuid::Uuid;

/// Makes the data folder if it is not there: for its owner alone, since it holds texts and numbers.
pub(crate) fn create(config: &Config) -> anyhow::Result<&Path> {
    let data = Path::new(&config.server.data_dir);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data)
        .with_context(|| format!("server.data_dir {} can't be made", data.display()))?;
    Ok(data)
}

/// A command that only looks must not find an empty database that it made itself.
pub(crate) fn expect_database(config: &Config) -> anyhow::Result<()> {
    let url = config.database_url()?;
    match url.strip_prefix("sqlite:") {
        Some(path) if !Path::new(path).exists() => bail!(
            "there is no database at {path}: start 'heliograph' or 'heliograph account create' in the right folder, \
             or name its configuration with --config"
        ),
        _ => Ok(()),
    }
}

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
            let fresh = RandomIds::default().next(SystemClock.now());
            std::fs::write(&path, format!("{fresh}\n"))
                .with_context(|| format!("{} can't be written", path.display()))?;
            Ok(fresh)
        }
        Err(e) => Err(e).with_context(|| format!("{} can't be read", path.display())),
    }
}
