//! The `heliograph number` commands.

use crate::account_lookup;
use crate::commands::context::{CommandContext, or_not_found};
use crate::output::{self, ListRow};
use clap::Subcommand;
use heliograph_domain::account_ref::AccountRef;
use heliograph_service::operations::numbers;
use serde_json::json;
use std::process::ExitCode;

/// The subcommands of `heliograph number`.
#[derive(Subcommand, Debug)]
pub(crate) enum NumberCommand {
    /// List the phone numbers that receive messages, and their accounts
    #[command(after_help = "Example:\n  heliograph number list")]
    List,
    /// Move a phone number to another account; earlier messages stay where they are
    #[command(after_help = "Example:
  heliograph number move 447700900000 --account 7

Change [[numbers]] as well: the service does not start while it names another account.")]
    Move {
        /// The phone number: digits, without a plus sign
        number: String,
        /// ID of the account, or email address of the person who owns it
        #[arg(long, value_name = "ACCOUNT")]
        account: AccountRef,
    },
}

pub(crate) async fn run(command: &CommandContext, what: NumberCommand) -> anyhow::Result<ExitCode> {
    let cx = &command.context;
    match what {
        NumberCommand::List => {
            let row = |(number, id, name): (String, _, String)| {
                let id: heliograph_domain::id::AccountId = id;
                let document = json!({ "number": number, "account": id.0, "accountName": name });
                ListRow { document, cells: vec![number, id.to_string(), name] }
            };
            let all = numbers::list(cx).await?.into_iter().map(row).collect();
            output::print_list(command.json, &["NUMBER", "ACCOUNT", "NAME"], all);
        }
        NumberCommand::Move { number, account } => {
            let account = account_lookup::find(cx, &account).await?;
            let before = or_not_found(numbers::reassign(cx, &number, account.id).await, || {
                format!(
                    "{number} is not assigned to any account; assign it with [[numbers]] in the configuration"
                )
            })?;
            let document =
                json!({ "number": number, "account": account.id.0, "previousAccount": before.0 });
            let text = format!(
                "Moved {number} from account {before} to account {} ({})",
                account.id, account.name
            );
            output::print_result(command.json, &document, &text);
        }
    }
    Ok(ExitCode::SUCCESS)
}
