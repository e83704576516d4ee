//! The `heliograph account` commands.

use crate::commands::context::{CommandContext, or_not_found};
use crate::output;
use anyhow::bail;
use clap::{Args, Subcommand};
use heliograph_domain::account_limit::AccountLimit;
use heliograph_service::identity::account_limits::{self, LimitUse};
use heliograph_service::identity::accounts;
use heliograph_service::identity::magic_links::{self, MagicLinkKind};
use heliograph_service::kernel::audit::Actor;
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
    /// Show the limits of an account with what is used of them, or change them
    #[command(after_help = "Example:
  heliograph account limits --account ann@example.com --set webhook_endpoints=20 --reset mails_per_day")]
    Limits(LimitsArgs),
    /// List accounts and their balances
    #[command(after_help = "Example:\n  heliograph account list --json")]
    List,
}

/// The arguments of `heliograph account limits`.
#[derive(Args, Debug)]
pub(crate) struct LimitsArgs {
    /// Email address of the account
    #[arg(long, value_name = "EMAIL", value_parser = email)]
    account: String,
    /// Set a limit of this account; 0 means no limit. Repeat the option for several limits
    #[arg(long, value_name = "LIMIT=NUMBER", value_parser = limit_value)]
    set: Vec<(AccountLimit, u32)>,
    /// Give the account the default of a limit again
    #[arg(long, value_name = "LIMIT", value_parser = limit)]
    reset: Vec<AccountLimit>,
}

/// Parses the name of a limit.
fn limit(name: &str) -> Result<AccountLimit, String> {
    let names = || AccountLimit::ALL.map(AccountLimit::name).join(", ");
    AccountLimit::from_name(name)
        .ok_or_else(|| format!("unknown limit '{name}'; the limits are {}", names()))
}

/// Parses a limit and its value.
fn limit_value(text: &str) -> Result<(AccountLimit, u32), String> {
    let example = "use LIMIT=NUMBER, such as webhook_endpoints=20";
    let (name, value) = text.split_once('=').ok_or(example)?;
    let value = value
        .trim()
        .parse()
        .map_err(|_| format!("'{value}' is not a number from 0 to {}", u32::MAX))?;
    Ok((limit(name.trim())?, value))
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
        AccountCommand::Limits(what) => limits(command, &what).await?,
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

/// Changes limits of an account, then prints all of them.
async fn limits(command: &CommandContext, what: &LimitsArgs) -> anyhow::Result<()> {
    let (cx, email) = (&command.context, &what.account);
    let account = accounts::by_email(cx, email).await;
    let account = or_not_found(account, || {
        format!("no account for {email}; run 'heliograph account list' to see accounts")
    })?;
    let set = what.set.iter().map(|(limit, value)| (*limit, Some(*value)));
    let changes: Vec<_> = set.chain(what.reset.iter().map(|limit| (*limit, None))).collect();
    if !changes.is_empty() {
        account_limits::change(cx, &Actor::operator(account.id), &changes).await?;
    }
    let all = account_limits::list(cx, account.id).await?;
    output::print_list(command.json, all.into_iter().map(limit_row).collect());
    Ok(())
}

fn limit_row(limit: LimitUse) -> (Value, String) {
    let LimitUse { limit, max, overridden, used } = limit;
    let name = limit.name();
    let shown = max.map_or_else(|| "no limit".to_owned(), |max| max.to_string());
    let used_text = used.map(|used| format!("{used} used of ")).unwrap_or_default();
    let origin = if overridden { "set for this account" } else { "default" };
    let document = json!({ "limit": name, "max": max, "used": used, "overridden": overridden });
    (document, format!("{name}\t{used_text}{shown}\t{origin}"))
}

fn account_row(a: &Account) -> (Value, String) {
    let (available, reserved) = (a.available.to_string(), a.reserved.to_string());
    let (id, created) = (a.id.0, a.created_at.to_string());
    let text = format!("{id}\t{}\t{available} {}\t{reserved} reserved", a.name, a.currency);
    let document = json!({ "id": id, "name": a.name, "currency": a.currency, "available": available,
        "reserved": reserved, "createdAt": created });
    (document, text)
}
