//! The arguments of every command, and what the commands beside a running service share.

use crate::commands::config as config_command;
use crate::commands::{account, backup, check, credit, key, listen, migrate, restore, webhook};
use crate::config::{self, Config};
use crate::simulator::SmscArgs;
use crate::{carriers, folder, serve};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use heliograph_domain::id::NodeId;
use heliograph_service::context::Context;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::watch;

/// Heliograph sends SMS: one JSON request over HTTP, queued durably, delivered over SMPP.
#[derive(Parser, Debug)]
#[command(name = "heliograph", version, about)]
#[command(after_help = "Example:
  heliograph --config /etc/heliograph.toml

Results go to stdout, everything else to stderr; with --json a result is one JSON document, and so is
{\"error\": \"...\"} when a command fails. Exit codes: 0 done, 1 failed, 2 wrong usage.")]
pub(crate) struct Cli {
    /// The configuration; without this, heliograph.toml if it is there
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print results as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    serve: ServeArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

impl Cli {
    /// What was asked: without a command, to serve. Words for `serve` before another command are
    /// refused rather than passed over.
    pub(crate) fn command(self) -> Command {
        match self.command {
            None => Command::Serve(self.serve),
            Some(command) if self.serve.is_default() => command,
            Some(_) => {
                let what = "--listen, --tls-cert, --tls-key, --behind-proxy and --role belong behind 'serve', or to no command at all";
                Self::command_for_usage().error(ErrorKind::ArgumentConflict, what).exit()
            }
        }
    }

    fn command_for_usage() -> clap::Command {
        <Self as CommandFactory>::command()
    }
}

/// What can be asked.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run the service (what happens when no command is given)
    #[command(
        after_help = "Example:\n  heliograph serve --listen 127.0.0.1:9000 --role web,engine"
    )]
    Serve(ServeArgs),
    /// Run the simulated SMSC alone
    #[command(after_help = "Example:\n  heliograph smsc --port 2775 --control-port 2776")]
    Smsc(SmscArgs),
    /// Open accounts and list them
    #[command(after_help = "Example:\n  heliograph account list")]
    #[command(subcommand)]
    Account(account::Accounts),
    /// Make, list and revoke API keys
    #[command(after_help = "Example:\n  heliograph key create --account ann@example.com")]
    #[command(subcommand)]
    Key(key::Key),
    /// Register webhook endpoints, try them out, and tell them things again
    #[command(after_help = "Example:\n  heliograph webhook list --account ann@example.com")]
    #[command(subcommand)]
    Webhook(webhook::Webhook),
    /// Show an account's events on this machine, verified, as they happen; beside a running service
    Listen(listen::Listen),
    /// Put money into an account by hand, or take it out
    Credit(credit::Credit),
    /// Prove that no message is lost and no balance drifts: exit 1 and a list when something is wrong
    #[command(after_help = "Example:\n  heliograph check && echo all is well")]
    Check,
    /// Copy the database into one file, beside a running service
    Backup(backup::Backup),
    /// Put a backup in the place of the database
    Restore(restore::Restore),
    /// Bring the database's schema up to date, or say whether it is
    Migrate(migrate::Migrate),
    /// Print the effective configuration, and where each value comes from; secrets are masked
    #[command(after_help = "Example:\n  heliograph config | grep -v '# default'")]
    Config,
}

/// What part of the service a node runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Role {
    /// Answers HTTP requests.
    Web,
    /// Talks to carriers.
    Engine,
}

/// How to run the service.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Address and port, instead of server.listen
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Speak HTTPS with the certificate in this PEM file, instead of server.tls_cert
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key in PEM, instead of server.tls_key
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// A proxy in front speaks HTTPS: allows to listen beyond this machine
    #[arg(long)]
    behind_proxy: bool,
    /// What this node does
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Role::Web, Role::Engine])]
    pub(crate) role: Vec<Role>,
}

impl ServeArgs {
    fn is_default(&self) -> bool {
        let default_door =
            self.listen.is_none() && self.tls_cert.is_none() && self.tls_key.is_none();
        default_door && !self.behind_proxy && self.role == [Role::Web, Role::Engine]
    }

    /// Puts what was said on the command line over the configuration.
    pub(crate) fn apply(&self, config: &mut Config) {
        if let Some(listen) = self.listen {
            config.server.listen = listen;
        }
        if let Some(cert) = &self.tls_cert {
            config.server.tls_cert = Some(cert.clone());
        }
        if let Some(key) = &self.tls_key {
            config.server.tls_key = Some(key.clone());
        }
        config.server.behind_proxy |= self.behind_proxy;
    }
}

/// What a command works with.
pub(crate) struct Desk {
    pub(crate) context: Context,
    pub(crate) config: Config,
    pub(crate) json: bool,
}

/// Runs a command that looks at the database once; beside a running service or without one.
pub(crate) fn main(
    file: &Option<PathBuf>,
    json: bool,
    command: Command,
) -> anyhow::Result<ExitCode> {
    if matches!(command, Command::Config) {
        return config_command::run(file.as_deref(), json);
    }
    let config = config::load(file.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        match command {
            Command::Backup(what) => backup::run(&config, json, &what).await,
            Command::Restore(what) => restore::run(&config, json, &what).await,
            Command::Migrate(what) => migrate::run(&config, json, &what).await,
            other => at_desk(config, json, other).await,
        }
    })
}

/// Runs a command that works by the rules of the service.
async fn at_desk(config: Config, json: bool, command: Command) -> anyhow::Result<ExitCode> {
    if !matches!(command, Command::Account(account::Accounts::Create { .. })) {
        folder::expect_database(&config)?;
    }
    folder::create(&config)?;
    let db = serve::open(&config).await?;
    let (settings, _) = carriers::settings(&db, &config).await?;
    let (_keep, settings) = watch::channel(Arc::new(settings));
    // A command signs no lease, so it is no node.
    let context = serve::context(db, NodeId(0), settings);
    let desk = Desk { context, config, json };
    match command {
        Command::Account(what) => account::run(&desk, what).await,
        Command::Key(what) => key::run(&desk, what).await,
        Command::Webhook(what) => webhook::run(&desk, what).await,
        Command::Listen(what) => listen::run(&desk, what).await,
        Command::Credit(what) => credit::run(&desk, &what).await,
        Command::Check => check::run(&desk).await,
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// What was looked for, or in these words that it is not there.
pub(crate) fn there<T>(
    found: heliograph_service::error::Result<T>,
    words: impl FnOnce() -> String,
) -> anyhow::Result<T> {
    found.map_err(|e| match e {
        heliograph_service::error::Error::NotFound => anyhow::Error::msg(words()),
        e => e.into(),
    })
}
