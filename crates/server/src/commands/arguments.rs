//! The arguments of every command, and what the commands beside a running service share.

use crate::commands::{account, check, credit, key};
use crate::config::{self, Config};
use crate::serve;
use crate::simulator::SmscArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
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
pub(crate) struct Cli {
    /// The configuration [default: heliograph.toml, if it is there]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print results as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What can be asked.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run the service (what happens when no command is given)
    Serve(ServeArgs),
    /// Run the simulated SMSC alone
    Smsc(SmscArgs),
    /// Open accounts and list them
    #[command(subcommand)]
    Account(account::Account),
    /// Make, list and revoke API keys
    #[command(subcommand)]
    Key(key::Key),
    /// Put money into an account by hand, or take it out
    Credit(credit::Credit),
    /// Prove that no message is lost and no balance drifts: exit 1 and a list when something is wrong
    Check,
}

impl Default for Command {
    fn default() -> Self {
        Self::Serve(ServeArgs::default())
    }
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
    /// A proxy in front speaks HTTPS: allows to listen beyond this machine
    #[arg(long)]
    behind_proxy: bool,
    /// What this node does
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Role::Web, Role::Engine])]
    pub(crate) role: Vec<Role>,
}

impl Default for ServeArgs {
    fn default() -> Self {
        Self { listen: None, behind_proxy: false, role: vec![Role::Web, Role::Engine] }
    }
}

impl ServeArgs {
    /// Puts what was said on the command line over the configuration.
    pub(crate) fn apply(&self, config: &mut Config) {
        if let Some(listen) = self.listen {
            config.server.listen = listen;
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
    let config = config::load(file.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        std::fs::create_dir_all(&config.server.data_dir)?;
        let db = serve::open(&config).await?;
        let (settings, _) = serve::settings(&db, &config).await?;
        let (_keep, settings) = watch::channel(Arc::new(settings));
        // A command signs no lease, so it is no node.
        let context = serve::context(db, NodeId(0), settings);
        let desk = Desk { context, config, json };
        match command {
            Command::Account(what) => account::run(&desk, what).await,
            Command::Key(what) => key::run(&desk, what).await,
            Command::Credit(what) => credit::run(&desk, &what).await,
            Command::Check => check::run(&desk).await,
            Command::Serve(_) | Command::Smsc(_) => Ok(ExitCode::SUCCESS),
        }
    })
}
