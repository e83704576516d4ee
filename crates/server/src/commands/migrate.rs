//! The `heliograph migrate` command.

use crate::config::Config;
use crate::{data_dir, output, service_context};
use anyhow::Context;
use clap::Args;
use heliograph_store::Db;
use serde_json::json;
use std::process::ExitCode;

/// The arguments of `heliograph migrate`.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  heliograph migrate --check || heliograph migrate

The service applies migrations when it starts. Migrations only go forward: to downgrade, restore a backup
with the version of heliograph that created it.")]
pub(crate) struct MigrateArgs {
    /// Change nothing; exit with 1 if migrations are pending
    #[arg(long)]
    check: bool,
}

pub(crate) async fn run(
    config: &Config,
    as_json: bool,
    what: &MigrateArgs,
) -> anyhow::Result<ExitCode> {
    let schema = Db::schema(&config.database_url()?).await.context("database.url")?;
    let (from, to) = (schema.found, schema.known);
    let current = from == Some(to);
    let document = json!({ "from": from, "to": to, "upToDate": current || !what.check });
    let from = from.map_or("none".to_owned(), |v| v.to_string());
    if current {
        output::print_result(as_json, &document, &format!("Schema is up to date (version {to})"));
        return Ok(ExitCode::SUCCESS);
    }
    if what.check {
        output::print_result(
            as_json,
            &document,
            &format!("Migrations pending: schema version {from} to {to}"),
        );
        return Ok(ExitCode::FAILURE);
    }
    data_dir::create(config)?;
    service_context::open_database(config).await?;
    output::print_result(as_json, &document, &format!("Migrated schema version {from} to {to}"));
    Ok(ExitCode::SUCCESS)
}
