//! The `heliograph credit` command.

use crate::account_lookup;
use crate::commands::context::CommandContext;
use crate::output::{self, UsageError};
use anyhow::bail;
use clap::Args;
use heliograph_domain::account_ref::AccountRef;
use heliograph_domain::fields::CreditNote;
use heliograph_domain::money::Amount;
use heliograph_service::identity::accounts::{self, MAX_CREDIT};
use heliograph_service::kernel::audit::Actor;
use heliograph_service::kernel::error::Error;
use serde_json::json;
use std::process::ExitCode;

/// The arguments of `heliograph credit`.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  heliograph credit --account ann@example.com --amount 25.00 --note 'Invoice 7'")]
pub(crate) struct CreditArgs {
    /// ID of the account, or email address of the person who owns it
    #[arg(long, value_name = "ACCOUNT")]
    account: AccountRef,
    /// Amount in the account's currency, such as 25.00; negative to remove funds
    #[arg(long, allow_hyphen_values = true)]
    amount: Amount,
    /// Reason, recorded in the ledger; up to 200 characters
    #[arg(long, default_value = "")]
    note: CreditNote,
}

pub(crate) async fn run(command: &CommandContext, what: &CreditArgs) -> anyhow::Result<ExitCode> {
    let cx = &command.context;
    let account = account_lookup::find(cx, &what.account).await?;
    if what.amount == Amount::ZERO {
        return Err(UsageError::error("the amount must not be zero"));
    }
    if what.amount > MAX_CREDIT || what.amount < -MAX_CREDIT {
        let text = format!("the amount is limited to {MAX_CREDIT} per command");
        return Err(UsageError::error(text));
    }
    match accounts::credit(cx, &Actor::operator(account.id), what.amount, &what.note).await {
        Err(Error::InsufficientBalance) => {
            bail!(
                "insufficient balance: at most {} {} can be removed",
                account.available,
                account.currency
            )
        }
        other => other?,
    }
    let now = account_lookup::find(cx, &AccountRef::Id(account.id)).await?;
    let (available, reserved) = (now.available.to_string(), now.reserved.to_string());
    let text = format!(
        "Account {} ({}): {available} {} available, {reserved} reserved",
        now.id, now.name, now.currency
    );
    let document = json!({ "account": now.id.0, "available": available, "reserved": reserved,
        "currency": now.currency });
    output::print_result(command.json, &document, &text);
    Ok(ExitCode::SUCCESS)
}
