//! The command line: global options and subcommands.

use crate::commands::account::AccountCommand;
use crate::commands::backup::BackupArgs;
use crate::commands::credit::CreditArgs;
use crate::commands::key::KeyCommand;
use crate::commands::listen::ListenArgs;
use crate::commands::message::MessageCommand;
use crate::commands::migrate::MigrateArgs;
use crate::commands::number::NumberCommand;
use crate::commands::optout::OptoutCommand;
use crate::commands::restore::RestoreArgs;
use crate::commands::seal::SealCommand;
use crate::commands::webhook::WebhookCommand;
use crate::serve_args::ServeArgs;
use crate::simulator::{self, SmscArgs};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::path::PathBuf;

const SERVE: &str = "serve";
/// The commands that print no result, and so take no `--json`.
const WITHOUT_JSON: [&str; 2] = [SERVE, "smsc"];

/// Self-hosted SMS gateway: HTTP API in, durable queue, SMPP out
#[derive(Parser, Debug)]
#[command(name = "heliograph", version, about)]
#[command(after_help = "Example:
  heliograph --config /etc/heliograph.toml

Results go to stdout, everything else to stderr. With --json, a command prints one JSON document;
if it fails, the document is {\"error\": \"...\"}. Exit codes: 0 success, 1 failure, 2 usage error.")]
pub(crate) struct Cli {
    /// Configuration file [default: heliograph.toml if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    serve: ServeArgs,
    #[command(subcommand)]
    command: Option<CliCommand>,
}

impl Cli {
    /// Parses the command line; exits with 2 when it is invalid.
    pub(crate) fn read() -> Self {
        let json = Arg::new("json").long("json").hide(true).action(ArgAction::SetTrue);
        let hidden = |command: clap::Command, name| {
            command.mut_subcommand(name, |sub| sub.arg(json.clone()))
        };
        let matches =
            WITHOUT_JSON.into_iter().fold(Self::command_for_usage(), hidden).get_matches();
        let (name, in_sub) = match matches.subcommand() {
            None => (SERVE, false),
            Some((name, sub)) => (name, WITHOUT_JSON.contains(&name) && sub.get_flag("json")),
        };
        if WITHOUT_JSON.contains(&name) && (in_sub || matches.get_flag("json")) {
            let what = format!("--json has no effect with '{name}', which prints no result");
            Self::command_for_usage().error(ErrorKind::ArgumentConflict, what).exit()
        }
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Returns the selected command; `serve` when none is given. Options of `serve` in front of
    /// another command are rejected, not silently ignored.
    pub(crate) fn command(self) -> CliCommand {
        match self.command {
            None => CliCommand::Serve(self.serve),
            Some(command) if self.serve.is_default() => command,
            Some(_) => {
                let what = "--listen, --tls-cert, --tls-key, --behind-proxy and --role can only be used with 'serve' or without a command";
                Self::command_for_usage().error(ErrorKind::ArgumentConflict, what).exit()
            }
        }
    }

    fn command_for_usage() -> clap::Command {
        <Self as CommandFactory>::command()
    }
}

/// The subcommands.
#[derive(Subcommand, Debug)]
pub(crate) enum CliCommand {
    /// Run the service [default command]
    #[command(
        after_help = "Example:\n  heliograph serve --listen 127.0.0.1:9000 --role web,engine"
    )]
    Serve(ServeArgs),
    /// Run a standalone SMSC simulator
    #[command(after_help = simulator::EXAMPLE, after_long_help = simulator::LONG_HELP)]
    Smsc(SmscArgs),
    /// Manage accounts
    #[command(after_help = "Example:\n  heliograph account list")]
    #[command(subcommand)]
    Account(AccountCommand),
    /// Manage API keys
    #[command(after_help = "Example:\n  heliograph key create --account ann@example.com")]
    #[command(subcommand)]
    Key(KeyCommand),
    /// Manage webhook endpoints, send test events and replay events
    #[command(after_help = "Example:\n  heliograph webhook list --account ann@example.com")]
    #[command(subcommand)]
    Webhook(WebhookCommand),
    /// List, show and cancel messages
    #[command(after_help = "Example:\n  heliograph message list --live")]
    #[command(subcommand)]
    Message(MessageCommand),
    /// Manage opt-out lists
    #[command(after_help = "Example:\n  heliograph optout list --live")]
    #[command(subcommand)]
    Optout(OptoutCommand),
    /// Manage the phone numbers that receive messages
    #[command(after_help = "Example:\n  heliograph number list")]
    #[command(subcommand)]
    Number(NumberCommand),
    /// Stream an account's webhook events to this terminal or forward them to a local URL
    Listen(ListenArgs),
    /// Add funds to an account or remove them
    Credit(CreditArgs),
    /// Verify database invariants; exits with 1 and lists violations if there are any
    #[command(after_help = "Example:\n  heliograph check && echo OK")]
    Check,
    /// Back up the database to a file while the service runs
    Backup(BackupArgs),
    /// Restore the database from a backup
    Restore(RestoreArgs),
    /// Replace the key that encrypts the secrets in the database
    #[command(after_help = "Example:\n  heliograph seal rotate")]
    #[command(subcommand)]
    Seal(SealCommand),
    /// Apply database schema migrations, or check for pending ones
    Migrate(MigrateArgs),
    /// Print the effective configuration and the origin of each value (secrets are masked)
    #[command(after_help = "Example:\n  heliograph config | grep -v '# default'")]
    Config(ConfigArgs),
}
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct ConfigArgs {
    /// Check the configuration for risks before going live, instead of printing it; exits with 1 if
    /// the service would not start with it
    #[arg(long)]
    pub(crate) check: bool,
}
