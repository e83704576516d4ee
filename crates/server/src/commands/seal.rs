//! The `heliograph seal` commands.

use crate::commands::running::refuse_in_use;
use crate::config::Config;
use crate::{data_dir, output, service_context};
use anyhow::{Context as _, bail};
use clap::Subcommand;
use heliograph_service::operations::sealing;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// The subcommands of `heliograph seal`.
#[derive(Subcommand, Debug)]
pub(crate) enum SealCommand {
    /// Replace the sealing key and encrypt all secrets in the database with the new one
    #[command(after_help = "Example:
  heliograph seal rotate

Stop every node first. The new key is on disk before the database changes, so a crash at any moment leaves
a pair of key and database that opens. Backups that were made before still need the old key, which is kept
as sealing.key.old in the data directory. Copy the new sealing.key to every node.")]
    Rotate {
        /// File to write the new key to; required if database.sealing_key is set, which must then
        /// be changed to this file
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
}

pub(crate) async fn run(
    config: &Config,
    as_json: bool,
    what: SealCommand,
) -> anyhow::Result<ExitCode> {
    let SealCommand::Rotate { to } = what;
    data_dir::require_database(config)?;
    let data = data_dir::create(config)?;
    let _lock = data_dir::lock(data)?;
    let file = match (&config.database.sealing_key, to) {
        (Some(_), Some(file)) => Some(file),
        (None, None) => None,
        (Some(_), None) => bail!(
            "database.sealing_key is set: name a file for the new key with --to FILE, and set database.sealing_key to \
             that file afterwards"
        ),
        (None, Some(_)) => bail!(
            "--to is only for installations that set database.sealing_key; without it, the key is sealing.key in {}",
            data.display()
        ),
    };
    let db = service_context::open_database(config).await?;
    refuse_in_use(&db).await?;
    let key = match &file {
        Some(file) => data_dir::create_key(file)
            .with_context(|| format!("failed to write {}", file.display()))?,
        None => data_dir::create_next_key(data)?,
    };
    let secrets = sealing::rotate(&db, &key).await?;
    let (path, next) = match file {
        Some(file) => {
            let next = format!(
                "Set database.sealing_key = {{ file = \"{}\" }} on every node before you start the service. Keep the old \
                 key for the backups that were made with it.",
                file.display()
            );
            (file, next)
        }
        None => {
            let path = data_dir::activate_next_key(data)?;
            let next = format!(
                "Copy {} to every other node. The old key is in sealing.key.old: move it to where you keep the key of \
                 your backups, because backups that were made before need it.",
                path.display()
            );
            (path, next)
        }
    };
    output::stderr(&next);
    let document = json!({ "file": path.display().to_string(), "secrets": secrets });
    let text = format!("Replaced the sealing key; secrets encrypted again: {secrets}");
    output::print_result(as_json, &document, &text);
    Ok(ExitCode::SUCCESS)
}
