//! The `heliograph credit` command.

use crate::commands::context::{CommandContext, or_not_found};
use crate::output;
use anyhow::bail;
use clap::Args;
use heliograph_domain::fields::CreditNote;
use heliograph_domain::money::Amount;
use heliograph_service::identity::accounts::{self, MAX_CREDIT};
use heliograph_service::kernel::error::Error;
use serde_json::json;
use std::process::ExitCode;

/// The arguments of `heliograph credit`.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  heliograph credit --account ann@example.com --amount 25.00 --note 'Invoice 7'")]
pub(crate) struct CreditArgs {
    /// Email address of the account
    #[arg(long, value_name = "EMAIL")]
    account: String,
    /// Amount in the account's currency, such as 25.00; negative to remove funds
    #[arg(long, allow_hyphen_values = true)]
    amount: Amount,
    /// Reason, recorded in the ledger; up to 200 characters
    #[arg(long, default_value = "")]
    note: CreditNote,
}

pub(crate) async fn run(command: &CommandContext, what: &CreditArgs) -> anyhow::Result<ExitCode> {
    let cx = &command.context;
    let email = what.account.trim().to_lowercase();
    let account = accounts::by_email(cx, &email).await;
    let account = or_not_found(account, || {
        format!("no account for {email}; run 'heliograph account list' to see accounts")
    })?;
    if what.amount == Amount::ZERO {
        bail!("the amount must not be zero");
    }
    if what.amount > MAX_CREDIT || what.amount < -MAX_CREDIT {
        bail!("the amount is limited to {MAX_CREDIT} per command");
    }
    match accounts::credit(cx, account.id, what.amount, &what.note).await {
        Err(Error::InsufficientBalance) => {
            bail!(
                "insufficient balance: at most {} {} can be removed",
                account.available,
                account.currency
            )
        }
        other => other?,
    }
    let now = accounts::by_email(cx, &email).await?;
    let (available, reserved) = (now.available.to_string(), now.reserved.to_string());
    let text = format!("{email}: {available} {} available, {reserved} reserved", now.currency);
    let document =
        json!({ "available": available, "reserved": reserved, "currency": now.currency });
    output::print_result(command.json, &document, &text);
    Ok(ExitCode::SUCCESS)
}
