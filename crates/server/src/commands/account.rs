//! The `heliograph account` commands.

use crate::account_lookup;
use crate::commands::context::{CommandContext, or_not_found};
use crate::output::{self, ListRow};
use anyhow::bail;
use clap::{Args, Subcommand};
use heliograph_domain::account_limit::AccountLimit;
use heliograph_domain::account_ref::AccountRef;
use heliograph_domain::secret::Token;
use heliograph_service::identity::account_limits::{self, LimitUse};
use heliograph_service::identity::accounts::{self, Account};
use heliograph_service::identity::magic_links::{self, LinkCreator, MagicLinkKind};
use heliograph_service::kernel::audit::Actor;
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
    /// Make an operator an ordinary user, such as the demo operator of the first start
    #[command(after_help = "Example:\n  heliograph account demote --email demo@localhost")]
    Demote {
        /// Email address of the operator
        #[arg(long, value_name = "EMAIL", value_parser = email)]
        email: String,
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
    /// ID of the account, or email address of the person who owns it
    #[arg(long, value_name = "ACCOUNT")]
    account: AccountRef,
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
        AccountCommand::Demote { email } => {
            let demoted = accounts::demote_operator(&command.context, &email).await;
            or_not_found(demoted, || format!("no operator has the email address {email}"))?;
            let text = format!("{email} is no operator any more");
            output::print_result(
                command.json,
                &json!({ "email": email, "operator": false }),
                &text,
            );
        }
        AccountCommand::Limits(what) => limits(command, &what).await?,
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

/// Changes limits of an account, then prints all of them.
async fn limits(command: &CommandContext, what: &LimitsArgs) -> anyhow::Result<()> {
    let cx = &command.context;
    let account = account_lookup::find(cx, &what.account).await?;
    let set = what.set.iter().map(|(limit, value)| (*limit, Some(*value)));
    let changes: Vec<_> = set.chain(what.reset.iter().map(|limit| (*limit, None))).collect();
    if !changes.is_empty() {
        account_limits::change(cx, &Actor::operator(account.id), &changes).await?;
    }
    let all = account_limits::list(cx, account.id).await?;
    let header = ["LIMIT", "USED", "MAXIMUM", "ORIGIN"];
    output::print_list(command.json, &header, all.into_iter().map(limit_row).collect());
    Ok(())
}

fn limit_row(limit: LimitUse) -> ListRow {
    let LimitUse { limit, max, overridden, used } = limit;
    let document =
        json!({ "limit": limit.name(), "max": max, "used": used, "overridden": overridden });
    let origin = if overridden { "set for this account" } else { "default" };
    let cells = vec![
        limit.name().to_owned(),
        used.map_or_else(|| "-".to_owned(), |used| used.to_string()),
        max.map_or_else(|| "no limit".to_owned(), |max| max.to_string()),
        origin.to_owned(),
    ];
    ListRow { document, cells }
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
