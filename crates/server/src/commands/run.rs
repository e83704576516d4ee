//! Runs the one-shot commands.

use crate::commands::account::AccountCommand;
use crate::commands::cli::CliCommand;
use crate::commands::config as config_command;
use crate::commands::context::CommandContext;
use crate::commands::{account, backup, check, credit, key, listen, message, migrate, number};
use crate::commands::{optout, restore, seal, webhook};
use crate::config::{self, Config};
use crate::{carriers, data_dir, service_context};
use heliograph_domain::id::NodeId;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::watch;

/// Runs a one-shot command, with or without a running service.
pub(crate) fn main(
    file: &Option<PathBuf>,
    json: bool,
    command: CliCommand,
) -> anyhow::Result<ExitCode> {
    if let CliCommand::Config(args) = command {
        return config_command::run(file.as_deref(), json, args);
    }
    let config = config::load(file.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        match command {
            CliCommand::Backup(what) => backup::run(&config, json, &what).await,
            CliCommand::Restore(what) => restore::run(&config, json, &what).await,
            CliCommand::Seal(what) => seal::run(&config, json, what).await,
            CliCommand::Migrate(what) => migrate::run(&config, json, &what).await,
            other => run_with_context(config, json, other).await,
        }
    })
}

/// Runs a command that goes through the service layer.
async fn run_with_context(
    config: Config,
    json: bool,
    command: CliCommand,
) -> anyhow::Result<ExitCode> {
    if !matches!(command, CliCommand::Account(AccountCommand::Create { .. })) {
        data_dir::require_database(&config)?;
    }
    data_dir::create(&config)?;
    let db = service_context::open_database(&config).await?;
    let (settings, _) = carriers::settings(&db, &config).await?;
    let (_keep, settings) = watch::channel(Arc::new(settings));
    // A command takes no leases, so it does not need a node id.
    let context = service_context::build(&config, db, NodeId(0), settings).await?;
    let context = CommandContext { context, config, json };
    match command {
        CliCommand::Account(what) => account::run(&context, what).await,
        CliCommand::Key(what) => key::run(&context, what).await,
        CliCommand::Webhook(what) => webhook::run(&context, what).await,
        CliCommand::Message(what) => message::run(&context, what).await,
        CliCommand::Optout(what) => optout::run(&context, what).await,
        CliCommand::Number(what) => number::run(&context, what).await,
        CliCommand::Listen(what) => listen::run(&context, what).await,
        CliCommand::Credit(what) => credit::run(&context, &what).await,
        CliCommand::Check => check::run(&context).await,
        _ => Ok(ExitCode::SUCCESS),
    }
}
