//! The `heliograph backup` command.

use crate::config::Config;
use crate::output::{self, ProgressBar};
use crate::{data_dir, service_context};
use anyhow::{Context, bail};
use clap::Args;
use heliograph_store::operations::backup::{self, BackupContents};
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments of `heliograph backup`.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  heliograph backup /var/backups/heliograph-$(date +%F).db

FILE becomes a SQLite database with everything accepted before the command started, whichever database
engine is in use. It contains message texts, phone numbers and secrets, so only its owner can read it.
The backup is written to FILE.part and renamed when complete; a leftover FILE.part is overwritten.")]
pub(crate) struct BackupArgs {
    /// Backup file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Overwrite FILE if it exists
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(
    config: &Config,
    as_json: bool,
    what: &BackupArgs,
) -> anyhow::Result<ExitCode> {
    let BackupArgs { file, force } = what;
    data_dir::require_database(config)?;
    refuse_own_database(config, file)?;
    refuse_existing(file, *force)?;
    let db = service_context::open_database(config).await?;
    let part = PartialFile::create(file)?;
    let mut bar = ProgressBar::new();
    let contents = backup::write(&db, &part.path, &mut |done, all| bar.show(done, all)).await?;
    drop(bar);
    refuse_existing(file, *force)?;
    let bytes = part.finish(file)?;
    let mut document = contents_json(file, &contents);
    document.insert("bytes".to_owned(), bytes.into());
    let text = format!("Wrote {}: {}, {bytes} bytes", file.display(), contents_text(&contents));
    output::print_result(as_json, &document.into(), &text);
    Ok(ExitCode::SUCCESS)
}

/// Describes the contents of a backup as JSON.
pub(crate) fn contents_json(file: &Path, contents: &BackupContents) -> Map<String, Value> {
    let rows: Map<String, Value> =
        contents.rows.iter().map(|(table, n)| (table.clone(), (*n).into())).collect();
    let entry = |name: &str, value: Value| (name.to_owned(), value);
    let version = entry("schemaVersion", contents.version.into());
    [entry("file", file.display().to_string().into()), version, entry("rows", rows.into())]
        .into_iter()
        .collect()
}

/// Describes the contents of a backup as text.
pub(crate) fn contents_text(contents: &BackupContents) -> String {
    let rows: u64 = contents.rows.iter().map(|(_, n)| n).sum();
    format!("{rows} rows in {} tables, schema version {}", contents.rows.len(), contents.version)
}

/// Rejects the database in use as the file to back up to or restore from.
pub(crate) fn refuse_own_database(config: &Config, file: &Path) -> anyhow::Result<()> {
    let url = config.database_url()?;
    let own = url.strip_prefix("sqlite:").map(Path::new);
    if let (Some(Ok(own)), Ok(file)) = (own.map(Path::canonicalize), file.canonicalize())
        && own == file
    {
        bail!("{} is the database in use; choose another file", file.display());
    }
    Ok(())
}

fn refuse_existing(file: &Path, force: bool) -> anyhow::Result<()> {
    if !force && file.symlink_metadata().is_ok() {
        bail!(
            "{} already exists; choose another file or overwrite it with --force",
            file.display()
        );
    }
    Ok(())
}

/// A backup that is being written; removed on drop unless it is finished.
struct PartialFile {
    path: PathBuf,
    /// Locked so that two backups cannot write to one file. Kept open because closing it would
    /// release SQLite's own locks on the file as well.
    lock: File,
    finished: bool,
}

impl PartialFile {
    fn create(file: &Path) -> anyhow::Result<Self> {
        let mut name = file.file_name().context("FILE is not a file name")?.to_owned();
        name.push(".part");
        let path = file.with_file_name(name);
        let failed = || format!("failed to write {}", path.display());
        // A symbolic link planted in a shared directory must not redirect the backup.
        if path.symlink_metadata().is_ok_and(|m| !m.is_file()) {
            bail!("{} is not a regular file; remove it", path.display());
        }
        let lock =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let lock = lock.with_context(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("another backup is writing to {}", path.display())
            }
            Err(TryLockError::Error(e)) => return Err(e).with_context(failed),
        }
        lock.set_len(0).with_context(failed)?;
        lock.set_permissions(Permissions::from_mode(0o600)).with_context(failed)?;
        Ok(Self { path, lock, finished: false })
    }

    /// Syncs the backup to disk, renames it to its final name and returns its size in bytes.
    fn finish(mut self, file: &Path) -> anyhow::Result<u64> {
        let failed = || format!("failed to write {}", file.display());
        self.lock.sync_all().with_context(failed)?;
        let bytes = self.lock.metadata().with_context(failed)?.len();
        std::fs::rename(&self.path, file).with_context(failed)?;
        self.finished = true;
        let directory =
            file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(directory).and_then(|f| f.sync_all()).with_context(failed)?;
        Ok(bytes)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.finished {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
