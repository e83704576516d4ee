//! `heliograph restore`.

use crate::commands::backup::{described, in_words, refuse_own_database};
use crate::config::Config;
use crate::output::{self, Progress};
use crate::{folder, serve};
use anyhow::bail;
use clap::Args;
use heliograph_service::backup;
use heliograph_store::Db;
use heliograph_store::backup::Backup;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::Instant;

/// How long connections of commands that have just ended may take to go.
const GOING: Duration = Duration::from_secs(3);
/// How often they are looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Where the backup is.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  heliograph restore /var/backups/heliograph-2026-11-21.db

FILE is looked through before anything is changed, and all that is restored is checked before it holds:
whatever goes wrong, the database stays as it was. The service must not run. On this data folder it is
noticed by its lock, and on PostgreSQL by the connections of any node or command; a node whose
connections are all broken at that moment is not seen, so stop every node first.")]
pub(crate) struct Restore {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace all that the database holds, and take a backup that breaks invariants
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(
    config: &Config,
    as_json: bool,
    what: &Restore,
) -> anyhow::Result<ExitCode> {
    let Restore { file, force } = what;
    refuse_own_database(config, file)?;
    let data = folder::create(config)?;
    let _lock = folder::lock(data)?;
    let mut found = Backup::open(file, &data.join("restore.part")).await?;
    let db = serve::open(config).await?;
    refuse_in_use(&db).await?;
    let mut bar = Progress::new();
    let done = backup::restore(&db, &mut found, *force, &mut |done, all| bar.show(done, all)).await;
    drop(bar);
    let done = done?;
    for v in &done.violations {
        output::talk(v);
    }
    let mut told = described(file, found.contents());
    told.insert("inDoubt".to_owned(), done.in_doubt.into());
    told.insert("violations".to_owned(), done.violations.into());
    let words = format!(
        "restored {}; messages that were under way, and are sent again: {}",
        in_words(found.contents()),
        done.in_doubt
    );
    output::either(as_json, &told.into(), &words);
    Ok(ExitCode::SUCCESS)
}

async fn refuse_in_use(db: &Db) -> anyhow::Result<()> {
    let begun = Instant::now();
    while backup::is_in_use(db).await? {
        if begun.elapsed() > GOING {
            bail!(
                "another heliograph is connected to this database: stop every node, and wait for commands that still run"
            );
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}
