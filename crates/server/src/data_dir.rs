//! The data directory: its lock, the identity of the node and the sealing key.

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

/// Creates the data directory if needed, accessible by its owner only: it contains message texts
/// and phone numbers.
pub(crate) fn create(config: &Config) -> anyhow::Result<&Path> {
    let data = Path::new(&config.server.data_dir);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data)
        .with_context(|| format!("server.data_dir: failed to create {}", data.display()))?;
    Ok(data)
}

/// Fails if the SQLite database does not exist, so that a read-only command does not create an
/// empty one.
pub(crate) fn require_database(config: &Config) -> anyhow::Result<()> {
    let url = config.database_url()?;
    match url.strip_prefix("sqlite:") {
        Some(path) if !Path::new(path).exists() => bail!(
            "no database at {path}; run the command in the directory of the service, select its configuration with \
             --config, or create a database with 'heliograph serve' or 'heliograph account create'"
        ),
        _ => Ok(()),
    }
}

/// Locks the data directory: a second service would release the leases of the first.
pub(crate) fn lock(data: &Path) -> anyhow::Result<File> {
    let path = data.join("lock");
    let file =
        File::create(&path).with_context(|| format!("failed to write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!(
                "another heliograph is running on {}; stop it or set another server.data_dir",
                data.display()
            )
        }
        Err(TryLockError::Error(e)) => {
            Err(e).with_context(|| format!("failed to lock {}", path.display()))
        }
    }
}

/// Returns the identity by which a node recognises the leases of its previous run; created on the
/// first start.
pub(crate) fn node_identity(data: &Path) -> anyhow::Result<Uuid> {
    let path = data.join("node");
    let fresh = || Ok(RandomIds::default().next(SystemClock.now()).to_string());
    read_or_create(&path, fresh)?.trim().parse().with_context(|| {
        format!(
            "{} does not contain the identity of a node (a UUID). Restore the file, or delete it: the node then gets \
             another identity, and messages that it was sending are sent again after a minute, marked as possible \
             duplicates",
            path.display()
        )
    })
}

/// Returns the key that encrypts stored secrets: the configured one, or `sealing.key` in the data
/// directory, which is created if missing.
pub(crate) fn sealing_key(config: &Config) -> anyhow::Result<SealingKey> {
    if let Some(key) = config.sealing_key()? {
        return Ok(key);
    }
    let path = create(config)?.join("sealing.key");
    let text = read_or_create(&path, || {
        let mut random = [0; KEY_BYTES];
        getrandom::fill(&mut random)
            .context("failed to read random bytes from the operating system")?;
        Ok(SealingKey::from_random(random).reveal())
    })?;
    SealingKey::parse(&text).with_context(|| {
        format!("{} is not a valid sealing key; restore it from your backup", path.display())
    })
}

/// Returns the content of a file. A file that is missing, or empty because the disk was full when it
/// was written, gets one line of fresh content.
fn read_or_create(
    path: &Path,
    fresh: impl FnOnce() -> anyhow::Result<String>,
) -> anyhow::Result<String> {
    if is_empty(path)? {
        write_line(path, &fresh()?)
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    // Another process may have written it first.
    std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))
}

/// Returns whether a file is missing or blank.
fn is_empty(path: &Path) -> anyhow::Result<bool> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().is_empty()),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(true),
        Err(e) => Err(e).with_context(|| format!("failed to read {}", path.display())),
    }
}

/// Writes a file atomically, readable by its owner only: under another name first, so that neither a
/// concurrent reader nor a full disk leaves half of it. If the file was missing, the first of several
/// writers wins.
fn write_line(path: &Path, line: &str) -> std::io::Result<()> {
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let written = write_part(&part, line).and_then(|()| match path.exists() {
        true => std::fs::rename(&part, path),
        false => std::fs::hard_link(&part, path),
    });
    // Also after a failure: the next attempt may have the same process id.
    let _ = std::fs::remove_file(&part);
    match written {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(e),
        _ => path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all()),
    }
}

fn write_part(part: &Path, line: &str) -> std::io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(part)?;
    writeln!(file, "{line}")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let all = std::fs::read_dir(folder).unwrap();
        all.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn the_identity_is_kept_and_an_empty_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let first = node_identity(folder.path()).unwrap();
        assert_eq!(node_identity(folder.path()).unwrap(), first);
        let file = folder.path().join("node");
        // As a first start on a full disk left it.
        std::fs::write(&file, "").unwrap();
        let second = node_identity(folder.path()).unwrap();
        assert_ne!(second, first);
        assert_eq!(node_identity(folder.path()).unwrap(), second);
        assert_eq!(names(folder.path()), ["node"]);
        std::fs::write(&file, "not a uuid").unwrap();
        let error = node_identity(folder.path()).unwrap_err().to_string();
        assert!(error.contains("does not contain the identity of a node"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "not a uuid", "nothing is overwritten");
    }

    /// A file that cannot be written in full does not appear.
    #[test]
    fn a_failed_write_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        // The name of the part is taken by a folder, which cannot be opened for writing.
        let part = folder.path().join(format!("node.{}.part", std::process::id()));
        std::fs::create_dir(&part).unwrap();
        let error = format!("{:#}", node_identity(folder.path()).unwrap_err());
        assert!(error.contains("failed to write"), "{error}");
        assert!(!folder.path().join("node").exists());
        std::fs::remove_dir(&part).unwrap();
        node_identity(folder.path()).unwrap();
    }
}
