//! The `heliograph restore` command.

use crate::commands::backup::{contents_json, contents_text, refuse_own_database};
use crate::config::Config;
use crate::output::{self, ProgressBar};
use crate::{data_dir, service_context};
use anyhow::bail;
use clap::Args;
use heliograph_service::kernel::error::{ConflictReason, Error};
use heliograph_service::operations::backup;
use heliograph_store::Db;
use heliograph_store::operations::backup::Backup;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::Instant;

/// The time limit for the database connections of finished commands to close.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The polling interval for open connections.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The arguments of `heliograph restore`.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  heliograph restore /var/backups/heliograph-2026-11-21.db

FILE is validated before anything is changed, and invariants are checked before the restore is committed:
if anything fails, the database stays unchanged. Stop every node first. A running service is detected by
the lock of its data directory and, on PostgreSQL, by open connections; a node whose connections are all
broken at that moment is not detected.")]
pub(crate) struct RestoreArgs {
    /// Backup file to restore
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace existing data, and accept a backup that violates invariants
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(
    config: &Config,
    as_json: bool,
    what: &RestoreArgs,
) -> anyhow::Result<ExitCode> {
    let RestoreArgs { file, force } = what;
    refuse_own_database(config, file)?;
    let data = data_dir::create(config)?;
    let _lock = data_dir::lock(data)?;
    let mut found = Backup::open(file, &data.join("restore.part")).await?;
    let db = service_context::open_database(config).await?;
    refuse_in_use(&db).await?;
    let mut bar = ProgressBar::new();
    let done = backup::restore(&db, &mut found, *force, &mut |done, all| bar.show(done, all)).await;
    drop(bar);
    let done = match done {
        Err(Error::Conflict(ConflictReason::DatabaseNotEmpty(accounts))) => bail!(
            "the database holds accounts already ({accounts}): --force replaces all that it holds"
        ),
        Err(Error::Conflict(ConflictReason::BackupViolations { count, first })) => bail!(
            "the backup breaks invariants ({count}), nothing was changed: {first}; --force takes it nevertheless"
        ),
        done => done?,
    };
    for v in &done.violations {
        output::stderr(v);
    }
    let mut document = contents_json(file, found.contents());
    document.insert("inDoubt".to_owned(), done.in_doubt.into());
    document.insert("violations".to_owned(), done.violations.into());
    let text = format!(
        "Restored {}; in-flight messages to resend: {}",
        contents_text(found.contents()),
        done.in_doubt
    );
    output::print_result(as_json, &document.into(), &text);
    Ok(ExitCode::SUCCESS)
}

async fn refuse_in_use(db: &Db) -> anyhow::Result<()> {
    let started = Instant::now();
    while backup::is_in_use(db).await? {
        if started.elapsed() > DISCONNECT_TIMEOUT {
            bail!(
                "another heliograph is connected to this database; stop every node and wait for running commands to finish"
            );
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}
