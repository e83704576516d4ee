//! `heliograph migrate`.

use crate::config::Config;
use crate::{folder, output, serve};
use anyhow::Context;
use clap::Args;
use heliograph_store::Db;
use serde_json::json;
use std::process::ExitCode;

/// Whether to change anything.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  heliograph migrate --check || heliograph migrate

The service does the same by itself when it starts. Schemas only go forward: to go back, restore a backup
with the program that made it.")]
pub(crate) struct Migrate {
    /// Change nothing: exit 1 when there is something to do
    #[arg(long)]
    check: bool,
}

pub(crate) async fn run(
    config: &Config,
    as_json: bool,
    what: &Migrate,
) -> anyhow::Result<ExitCode> {
    let schema = Db::schema(&config.database_url()?).await.context("database.url")?;
    let (from, to) = (schema.found, schema.known);
    let current = from == Some(to);
    let told = json!({ "from": from, "to": to, "upToDate": current || !what.check });
    let from = from.map_or("nothing".to_owned(), |v| format!("version {v}"));
    if current {
        output::either(as_json, &told, &format!("the schema has {from}, which is the newest"));
        return Ok(ExitCode::SUCCESS);
    }
    if what.check {
        output::either(as_json, &told, &format!("the schema would go from {from} to version {to}"));
        return Ok(ExitCode::FAILURE);
    }
    folder::create(config)?;
    serve::open(config).await?;
    output::either(as_json, &told, &format!("the schema went from {from} to version {to}"));
    Ok(ExitCode::SUCCESS)
}
