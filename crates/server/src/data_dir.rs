//! The data directory: its lock, the identity of the node and the sealing key.

use crate::config::{CarrierKind, Config};
use crate::system::{RandomIds, SystemClock};
use anyhow::{Context, bail};
use heliograph_domain::id::Ids;
use heliograph_domain::time::Clock;
use heliograph_store::{KEY_BYTES, SealingKey};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
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

/// Returns the absolute path of the data directory.
pub(crate) fn absolute(config: &Config) -> PathBuf {
    let data = PathBuf::from(&config.server.data_dir);
    std::path::absolute(&data).unwrap_or(data)
}

/// Returns whether the data directory is inside a clone of a git repository, where
/// `git clean -fdx` would delete it.
pub(crate) fn is_in_clone(config: &Config) -> bool {
    absolute(config).ancestors().any(|folder| folder.join(".git").exists())
}

/// Returns a warning if an installation with real carriers keeps its data inside of a clone.
pub(crate) fn warning(config: &Config) -> Option<String> {
    let live = config.carriers.iter().any(|carrier| carrier.kind == CarrierKind::Smpp);
    let warning = || {
        format!(
            "The data directory {} is inside a clone of a git repository: 'git clean -fdx' would delete it. Set \
             server.data_dir to a directory outside.",
            absolute(config).display()
        )
    };
    (live && is_in_clone(config)).then(warning)
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

/// Returns whether a service holds the lock of the data directory.
pub(crate) fn is_locked(data: &Path) -> anyhow::Result<bool> {
    let path = data.join("lock");
    let file = match File::open(&path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        file => file.with_context(|| format!("failed to read {}", path.display()))?,
    };
    match file.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
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

/// The name of the key file in the data directory.
const KEY: &str = "sealing.key";
/// The name of the file that `heliograph seal rotate` writes before it changes the database.
const NEXT_KEY: &str = "sealing.key.new";
/// The name of the file that keeps the key before the last rotation.
const OLD_KEY: &str = "sealing.key.old";

/// Returns the key that encrypts stored secrets: the configured one, or `sealing.key` in the data
/// directory, which is created if missing.
pub(crate) fn sealing_key(config: &Config) -> anyhow::Result<SealingKey> {
    if let Some(key) = config.sealing_key()? {
        return Ok(key);
    }
    let path = create(config)?.join(KEY);
    read_or_create(&path, || Ok(fresh_key()?.reveal()))?;
    read_key(&path)
}

/// Returns the path of the key file if it is needed and does not exist.
pub(crate) fn missing_key(config: &Config) -> Option<PathBuf> {
    let path = Path::new(&config.server.data_dir).join(KEY);
    (config.database.sealing_key.is_none() && !path.exists()).then_some(path)
}

/// Returns the key of a rotation that was interrupted, if there is one.
pub(crate) fn next_key(config: &Config) -> anyhow::Result<Option<SealingKey>> {
    let path = Path::new(&config.server.data_dir).join(NEXT_KEY);
    match config.database.sealing_key.is_none() && path.exists() {
        true => read_key(&path).map(Some),
        false => Ok(None),
    }
}

/// Writes the key of a rotation. A file that an interrupted rotation left is replaced: the database
/// was opened with the current key, so nothing is sealed with that one.
pub(crate) fn create_next_key(data: &Path) -> anyhow::Result<SealingKey> {
    let path = data.join(NEXT_KEY);
    let failed = || format!("failed to write {}", path.display());
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e).with_context(failed),
        _ => {}
    }
    create_key(&path).with_context(failed)
}

/// Makes the key of a rotation the current one, keeps the old one, and returns the path.
pub(crate) fn activate_next_key(data: &Path) -> anyhow::Result<PathBuf> {
    let (path, old) = (data.join(KEY), data.join(OLD_KEY));
    let activate = || {
        std::fs::copy(&path, &old)?;
        File::open(&old)?.sync_all()?;
        std::fs::rename(data.join(NEXT_KEY), &path)?;
        File::open(data)?.sync_all()
    };
    activate().with_context(|| format!("failed to replace {}", path.display()))?;
    Ok(path)
}

fn read_key(path: &Path) -> anyhow::Result<SealingKey> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("failed to read {}", path.display()))?;
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

/// Creates a file with a fresh key, which must not exist, and syncs it to disk.
pub(crate) fn create_key(path: &Path) -> anyhow::Result<SealingKey> {
    let key = fresh_key()?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{}", key.reveal())?;
    file.sync_all()?;
    sync_folder(path)?;
    Ok(key)
}

fn fresh_key() -> anyhow::Result<SealingKey> {
    let mut random = [0; KEY_BYTES];
    getrandom::fill(&mut random)
        .context("failed to read random bytes from the operating system")?;
    Ok(SealingKey::from_random(random))
}

/// Syncs the folder of a file, so that its name is on disk.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
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
        _ => sync_folder(path),
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
    use crate::config;

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

    #[test]
    fn data_inside_of_a_clone_is_warned_about_before_going_live() {
        let home = tempfile::tempdir().unwrap();
        let carrier = "[[carriers]]\nname = 'a'\nkind = 'smpp'\nhost = 'h'\npassword = 'p'\n";
        let server = format!("[server]\ndata_dir = '{}/sub/data'\n", home.path().display());
        let trial = config::read_text(&server).unwrap();
        let live = config::read_text(&format!("{server}{carrier}")).unwrap();
        assert_eq!((warning(&trial), warning(&live)), (None, None));
        std::fs::create_dir(home.path().join(".git")).unwrap();
        assert!(is_in_clone(&trial) && warning(&trial).is_none());
        assert!(warning(&live).unwrap().contains("'git clean -fdx' would delete it"));
    }
}
