//! `heliograph backup`.

use crate::config::Config;
use crate::output::{self, Progress};
use crate::{folder, serve};
use anyhow::{Context, bail};
use clap::Args;
use heliograph_store::backup::{self, Contents};
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where the backup goes.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  heliograph backup /var/backups/heliograph-$(date +%F).db

FILE is a SQLite database with all that was accepted before the command began, whichever database is
in use. It holds texts, numbers and secrets: only its owner can read it. While it is written, it is
called FILE.part; a FILE.part that was left behind is of no use and is written over.")]
pub(crate) struct Backup {
    /// The file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace FILE if it is there already
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(config: &Config, as_json: bool, what: &Backup) -> anyhow::Result<ExitCode> {
    let Backup { file, force } = what;
    folder::expect_database(config)?;
    refuse_own_database(config, file)?;
    refuse_existing(file, *force)?;
    let db = serve::open(config).await?;
    let part = Part::begin(file)?;
    let mut bar = Progress::new();
    let contents = backup::write(&db, &part.path, &mut |done, all| bar.show(done, all)).await?;
    drop(bar);
    refuse_existing(file, *force)?;
    let bytes = part.finish(file)?;
    let mut told = described(file, &contents);
    told.insert("bytes".to_owned(), bytes.into());
    let words = format!("{} holds {}, {bytes} bytes", file.display(), in_words(&contents));
    output::either(as_json, &told.into(), &words);
    Ok(ExitCode::SUCCESS)
}

/// What is in a backup, for scripts.
pub(crate) fn described(file: &Path, contents: &Contents) -> Map<String, Value> {
    let rows: Map<String, Value> =
        contents.rows.iter().map(|(table, n)| (table.clone(), (*n).into())).collect();
    let entry = |name: &str, value: Value| (name.to_owned(), value);
    let version = entry("schemaVersion", contents.version.into());
    [entry("file", file.display().to_string().into()), version, entry("rows", rows.into())]
        .into_iter()
        .collect()
}

/// The same for people.
pub(crate) fn in_words(contents: &Contents) -> String {
    let rows: u64 = contents.rows.iter().map(|(_, n)| n).sum();
    format!("{rows} rows of {} tables, schema version {}", contents.rows.len(), contents.version)
}

/// The database in use is no place for a backup, and no backup.
pub(crate) fn refuse_own_database(config: &Config, file: &Path) -> anyhow::Result<()> {
    let url = config.database_url()?;
    let own = url.strip_prefix("sqlite:").map(Path::new);
    if let (Some(Ok(own)), Ok(file)) = (own.map(Path::canonicalize), file.canonicalize())
        && own == file
    {
        bail!("{} is the database in use: name another file", file.display());
    }
    Ok(())
}

fn refuse_existing(file: &Path, force: bool) -> anyhow::Result<()> {
    if !force && file.symlink_metadata().is_ok() {
        bail!("{} is there already: name another file, or replace it with --force", file.display());
    }
    Ok(())
}

/// The backup while it is being written; removed if it is not finished.
struct Part {
    path: PathBuf,
    /// Locked, so that two backups do not write into one file. Closing it would also take away SQLite's own locks
    /// on the file.
    lock: File,
    finished: bool,
}

impl Part {
    fn begin(file: &Path) -> anyhow::Result<Self> {
        let mut name = file.file_name().context("FILE names no file")?.to_owned();
        name.push(".part");
        let path = file.with_file_name(name);
        let cant = || format!("{} can't be written", path.display());
        // A link that somebody else left in a folder for all must not lead to a file of ours.
        if path.symlink_metadata().is_ok_and(|m| !m.is_file()) {
            bail!("{} is no file: remove it", path.display());
        }
        let lock =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let lock = lock.with_context(cant)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("another backup is writing {}", path.display()),
            Err(TryLockError::Error(e)) => return Err(e).with_context(cant),
        }
        lock.set_len(0).with_context(cant)?;
        lock.set_permissions(Permissions::from_mode(0o600)).with_context(cant)?;
        Ok(Self { path, lock, finished: false })
    }

    /// Makes it durable and gives it its name; its size.
    fn finish(mut self, file: &Path) -> anyhow::Result<u64> {
        let cant = || format!("{} can't be written", file.display());
        self.lock.sync_all().with_context(cant)?;
        let bytes = self.lock.metadata().with_context(cant)?.len();
        std::fs::rename(&self.path, file).with_context(cant)?;
        self.finished = true;
        let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|f| f.sync_all()).with_context(cant)?;
        Ok(bytes)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.finished {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
