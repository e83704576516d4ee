//! The `heliograph account` commands.

use crate::commands::context::{CommandContext, or_not_found};
use crate::output::{self, ListRow};
use anyhow::bail;
use clap::Subcommand;
use heliograph_domain::secret::Token;
use heliograph_service::identity::accounts::{self, Account};
use heliograph_service::identity::magic_links::{self, LinkCreator, MagicLinkKind};
use serde_json::json;
use std::process::ExitCode;

/// The subcommands of `heliograph account`.
#[derive(Subcommand, Debug)]
pub(crate) enum AccountCommand {
    /// Create an account and print a sign-in link for its owner
    #[command(after_help = "Example:\n  heliograph account create --email ann@example.com")]
    Create {
        /// Email address of the owner
        #[arg(long, value_name = "EMAIL", value_parser = email)]
        email: String,
        /// Make the owner an operator of this installation
        #[arg(long)]
        operator: bool,
    },
    /// Create a one-time sign-in link for the dashboard (valid for 24 hours)
    #[command(after_help = "Example:\n  heliograph account link --email ann@example.com")]
    Link {
        /// Email address of the person
        #[arg(long, value_name = "EMAIL", value_parser = email)]
        email: String,
        /// Create a password reset link instead (valid for 1 hour); two-factor authentication still
        /// applies
        #[arg(long)]
        reset: bool,
    },
    /// List accounts and their balances
    #[command(after_help = "Example:\n  heliograph account list --json")]
    List,
}

/// Parses an email address.
fn email(text: &str) -> Result<String, String> {
    let wrong = "invalid email address (example: ann@example.com)";
    heliograph_domain::email::parse(text).ok_or_else(|| wrong.to_owned())
}

pub(crate) async fn run(
    command: &CommandContext,
    what: AccountCommand,
) -> anyhow::Result<ExitCode> {
    match what {
        AccountCommand::Create { email, operator } => create(command, &email, operator).await?,
        AccountCommand::Link { email, reset } => {
            let (kind, name) = match reset {
                true => (MagicLinkKind::PasswordReset, "resetUrl"),
                false => (MagicLinkKind::SignIn, "signInUrl"),
            };
            let creator = LinkCreator { user: None, address: "" };
            let cx = &command.context;
            let token = magic_links::create_by_operator(cx, creator, &email, kind).await;
            let token = or_not_found(token, || {
                format!("no user with email {email}; run 'heliograph account list' to see accounts")
            })?;
            let link = url(command, kind, &token)?;
            output::print_result(command.json, &json!({ "email": email, name: link }), &link);
        }
        AccountCommand::List => {
            let all = accounts::list_with_owners(&command.context).await?;
            let header = ["ID", "NAME", "OWNERS", "AVAILABLE", "RESERVED", "CREATED"];
            output::print_list(command.json, &header, all.iter().map(account_row).collect());
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(command: &CommandContext, email: &str, operator: bool) -> anyhow::Result<()> {
    let (cx, currency) = (&command.context, &command.config.accounts.currency);
    let Some(id) = accounts::create(cx, email, currency, operator).await? else {
        bail!("{email} already has an account; run 'heliograph account list' to see its ID");
    };
    let token = magic_links::create(cx, email, MagicLinkKind::SignIn).await?;
    let link = url(command, MagicLinkKind::SignIn, &token)?;
    let document = json!({ "id": id.0, "email": email, "currency": currency, "signInUrl": link });
    let text = format!(
        "Created account {id} for {email} ({currency})\nSign-in link (valid once, for 24 hours): {link}"
    );
    output::print_result(command.json, &document, &text);
    Ok(())
}

/// Returns the URL of a magic link.
fn url(command: &CommandContext, kind: MagicLinkKind, token: &Token) -> anyhow::Result<String> {
    Ok(format!("{}{}", command.config.base_url()?, magic_links::path(kind, token)))
}

fn account_row((a, owners): &(Account, Vec<String>)) -> ListRow {
    let (available, reserved) = (a.available.to_string(), a.reserved.to_string());
    let document = json!({ "id": a.id.0, "name": a.name, "owners": owners, "currency": a.currency,
        "available": available, "reserved": reserved, "createdAt": a.created_at.to_string() });
    let money = |amount: &str| format!("{amount} {}", a.currency);
    let cells = vec![
        a.id.to_string(),
        a.name.clone(),
        owners.join(","),
        money(&available),
        money(&reserved),
        output::time(a.created_at),
    ];
    ListRow { document, cells }
}
