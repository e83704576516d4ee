//! `heliograph credit`.

use crate::commands::arguments::{Desk, there};
use crate::output;
use anyhow::bail;
use clap::Args;
use heliograph_domain::money::Amount;
use heliograph_service::accounts;
use heliograph_service::error::Error;
use serde_json::json;
use std::process::ExitCode;

/// Beyond any sum that is meant: a thousand million.
const MOST: Amount = Amount(1_000_000_000_000_000);

/// Whose balance changes, and by how much.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  heliograph credit --account ann@example.com --amount 25.00 --note 'Invoice 7'")]
pub(crate) struct Credit {
    /// The account's email address
    #[arg(long, value_name = "EMAIL")]
    account: String,
    /// The amount in the account's currency, like 25.00; negative takes out
    #[arg(long, allow_hyphen_values = true)]
    amount: Amount,
    /// Why, for the ledger
    #[arg(long, default_value = "")]
    note: String,
}

pub(crate) async fn run(desk: &Desk, what: &Credit) -> anyhow::Result<ExitCode> {
    let cx = &desk.context;
    let email = what.account.trim().to_lowercase();
    let account = accounts::by_email(cx, &email).await;
    let account =
        there(account, || format!("no account for {email}: see 'heliograph account list'"))?;
    if what.amount == Amount::ZERO {
        bail!("the amount must not be zero");
    }
    if what.amount > MOST || what.amount < -MOST {
        bail!("at most {MOST} at a time");
    }
    match accounts::credit(cx, account.id, what.amount, &what.note).await {
        Err(Error::InsufficientBalance) => {
            bail!("only {} {} can be taken out", account.available, account.currency)
        }
        other => other?,
    }
    let now = accounts::by_email(cx, &email).await?;
    let (available, reserved) = (now.available.to_string(), now.reserved.to_string());
    let words = format!("{email} has {available} {}, and {reserved} reserved", now.currency);
    let told = json!({ "available": available, "reserved": reserved, "currency": now.currency });
    output::either(desk.json, &told, &words);
    Ok(ExitCode::SUCCESS)
}
