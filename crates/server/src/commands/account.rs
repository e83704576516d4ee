//! `heliograph account`.

use crate::commands::arguments::Desk;
use crate::output;
use anyhow::bail;
use clap::Subcommand;
use heliograph_service::accounts;
use heliograph_service::error::Error;
use heliograph_service::one_time_links::{self, Kind};
use heliograph_store::accounts::Account;
use serde_json::{Value, json};
use std::process::ExitCode;

/// What can be done with accounts.
#[derive(Subcommand, Debug)]
pub(crate) enum Accounts {
    /// Open an account for a person
    #[command(after_help = "Example:\n  heliograph account create --email ann@example.com")]
    Create {
        /// The person's address, by which commands name the account
        #[arg(long, value_name = "EMAIL", value_parser = email)]
        email: String,
        /// The person operates this installation
        #[arg(long)]
        operator: bool,
    },
    /// Make a link with which a person signs in to the dashboard, once, within a day
    #[command(after_help = "Example:\n  heliograph account link --email ann@example.com")]
    Link {
        /// The person's address
        #[arg(long, value_name = "EMAIL", value_parser = email)]
        email: String,
        /// A link with which they choose a new password instead, within an hour; their second factor is asked for still
        #[arg(long)]
        reset: bool,
    },
    /// List all accounts with their balances
    #[command(after_help = "Example:\n  heliograph account list --json")]
    List,
}

/// Reads an address.
fn email(text: &str) -> Result<String, String> {
    let wrong = "this is no email address: write it like ann@example.com";
    heliograph_domain::email::parse(text).ok_or_else(|| wrong.to_owned())
}

pub(crate) async fn run(desk: &Desk, what: Accounts) -> anyhow::Result<ExitCode> {
    match what {
        Accounts::Create { email, operator } => {
            let currency = &desk.config.accounts.currency;
            let Some(id) = accounts::create(&desk.context, &email, currency, operator).await?
            else {
                bail!("{email} has an account already");
            };
            let link = link(desk, &email, Kind::SignIn).await?;
            let told =
                json!({ "id": id.0, "email": email, "currency": currency, "signInUrl": link });
            let words = format!(
                "account {id} for {email}, in {currency}\nsign in, once, within a day: {link}"
            );
            output::either(desk.json, &told, &words);
        }
        Accounts::Link { email, reset } => {
            let (kind, name) = match reset {
                true => (Kind::Reset, "resetUrl"),
                false => (Kind::SignIn, "signInUrl"),
            };
            let link = link(desk, &email, kind).await?;
            output::either(desk.json, &json!({ "email": email, name: link }), &link);
        }
        Accounts::List => {
            let all = accounts::list(&desk.context).await?;
            output::list(desk.json, all.iter().map(listed).collect());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A link that lets this person in.
async fn link(desk: &Desk, email: &str, kind: Kind) -> anyhow::Result<String> {
    match one_time_links::make(&desk.context, email, kind).await {
        Ok(token) => {
            Ok(format!("{}{}", desk.config.base_url()?, one_time_links::path(kind, &token)))
        }
        Err(Error::NotFound) => {
            bail!("nobody has the address {email}: see 'heliograph account list'")
        }
        Err(other) => Err(other.into()),
    }
}

fn listed(a: &Account) -> (Value, String) {
    let (available, reserved) = (a.available.to_string(), a.reserved.to_string());
    let (id, created) = (a.id.0, a.created_at.to_string());
    let words = format!("{id}\t{}\t{available} {}\t{reserved} reserved", a.name, a.currency);
    let told = json!({ "id": id, "name": a.name, "currency": a.currency, "available": available,
        "reserved": reserved, "createdAt": created });
    (told, words)
}
