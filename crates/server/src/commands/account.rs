//! The `heliograph account` commands.

use crate::commands::context::CommandContext;
use crate::output;
use anyhow::bail;
use clap::Subcommand;
use heliograph_service::identity::accounts;
use heliograph_service::identity::magic_links::{self, MagicLinkKind};
use heliograph_service::kernel::error::Error;
use heliograph_store::identity::accounts::Account;
use serde_json::{Value, json};
use std::process::ExitCode;

/// The subcommands of `heliograph account`.
#[derive(Subcommand, Debug)]
pub(crate) enum AccountCommand {
    /// Create an account and print a sign-in link for its owner
    #[command(after_help = "Example:\n  heliograph account create --email ann@example.com")]
    Create {
        /// Email address of the owner; other commands identify the account by it
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
    /// Make an operator an ordinary user, such as the demo operator of the first start
    #[command(after_help = "Example:\n  heliograph account demote --email demo@localhost")]
    Demote {
        /// Email address of the operator
        #[arg(long, value_name = "EMAIL", value_parser = email)]
        email: String,
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
        AccountCommand::Create { email, operator } => {
            let currency = &command.config.accounts.currency;
            let Some(id) = accounts::create(&command.context, &email, currency, operator).await?
            else {
                bail!("{email} already has an account");
            };
            let link = link(command, &email, MagicLinkKind::SignIn).await?;
            let document =
                json!({ "id": id.0, "email": email, "currency": currency, "signInUrl": link });
            let text = format!(
                "Created account {id} for {email} ({currency})\nSign-in link (valid once, for 24 hours): {link}"
            );
            output::print_result(command.json, &document, &text);
        }
        AccountCommand::Link { email, reset } => {
            let (kind, name) = match reset {
                true => (MagicLinkKind::PasswordReset, "resetUrl"),
                false => (MagicLinkKind::SignIn, "signInUrl"),
            };
            let link = link(command, &email, kind).await?;
            output::print_result(command.json, &json!({ "email": email, name: link }), &link);
        }
        AccountCommand::Demote { email } => {
            match accounts::demote_operator(&command.context, &email).await {
                Err(Error::NotFound) => bail!("no operator has the email address {email}"),
                other => other?,
            }
            let text = format!("{email} is no operator any more");
            output::print_result(
                command.json,
                &json!({ "email": email, "operator": false }),
                &text,
            );
        }
        AccountCommand::List => {
            let all = accounts::list(&command.context).await?;
            output::print_list(command.json, all.iter().map(account_row).collect());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Creates a magic link of this kind for the person with this email address.
async fn link(
    command: &CommandContext,
    email: &str,
    kind: MagicLinkKind,
) -> anyhow::Result<String> {
    match magic_links::create(&command.context, email, kind).await {
        Ok(token) => {
            Ok(format!("{}{}", command.config.base_url()?, magic_links::path(kind, &token)))
        }
        Err(Error::NotFound) => {
            bail!("no user with email {email}; run 'heliograph account list' to see accounts")
        }
        Err(other) => Err(other.into()),
    }
}

fn account_row(a: &Account) -> (Value, String) {
    let (available, reserved) = (a.available.to_string(), a.reserved.to_string());
    let (id, created) = (a.id.0, a.created_at.to_string());
    let text = format!("{id}\t{}\t{available} {}\t{reserved} reserved", a.name, a.currency);
    let document = json!({ "id": id, "name": a.name, "currency": a.currency, "available": available,
        "reserved": reserved, "createdAt": created });
    (document, text)
}
