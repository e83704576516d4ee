//! The data folder: whose it is, and that nobody else works in it.

use crate::config::Config;
use crate::system::{RandomIds, SystemClock};
use anyhow::{Context, bail};
use heliograph_domain::id::Ids;
use heliograph_domain::time::Clock;
use heliograph_store::{KEY_BYTES, SealingKey};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
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

/// The key that seals secrets: the configured one, or that of the data folder, which gets one if it has none.
pub(crate) fn sealing_key(config: &Config) -> anyhow::Result<SealingKey> {
    if let Some(key) = config.sealing_key()? {
        return Ok(key);
    }
    let path = create(config)?.join("sealing.key");
    if !path.exists() {
        make_key(&path).with_context(|| format!("{} can't be written", path.display()))?;
    }
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{} can't be read", path.display()))?;
    SealingKey::parse(&text).with_context(|| {
        format!("{} is no sealing key: put the one of a backup in its place", path.display())
    })
}

/// Whoever comes first makes the key. It is written under another name before, so that nobody reads half of it.
fn make_key(path: &Path) -> anyhow::Result<()> {
    let mut random = [0; KEY_BYTES];
    getrandom::fill(&mut random).context("the operating system gives no randomness")?;
    let part = path.with_extension(std::process::id().to_string());
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    writeln!(file, "{}", SealingKey::from_random(random).reveal())?;
    file.sync_all()?;
    let made = std::fs::hard_link(&part, path);
    std::fs::remove_file(&part)?;
    match made {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(e.into()),
        _ => Ok(()),
    }
}
