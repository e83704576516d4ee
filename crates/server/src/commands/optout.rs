//! The `heliograph optout` commands.

use crate::account_lookup;
use crate::commands::context::{CommandContext, or_not_found};
use crate::output::{self, ListRow};
use clap::{Args, Subcommand};
use heliograph_api::OptoutView;
use heliograph_domain::account::Mode;
use heliograph_domain::account_ref::AccountRef;
use heliograph_domain::fields::Note;
use heliograph_domain::id::OptoutListId;
use heliograph_domain::optout::Optout;
use heliograph_domain::phone::Recipient;
use heliograph_service::audience::optouts::{self, NewOptout, OptoutListRef};
use heliograph_service::identity::accounts;
use heliograph_service::kernel::audit::{self, Actor, AuditAction};
use heliograph_service::kernel::caller::Caller;
use serde_json::json;
use std::process::ExitCode;

/// The numbers that one query reads.
const PAGE: i64 = 1_000;

/// The subcommands of `heliograph optout`.
#[derive(Subcommand, Debug)]
pub(crate) enum OptoutCommand {
    /// List the numbers on an opt-out list
    #[command(after_help = "Example:\n  heliograph optout list --live --account 7")]
    List(ListSelection),
    /// Add a number to an opt-out list
    #[command(
        after_help = "Example:\n  heliograph optout add +447700900123 --live --note 'asked by phone'"
    )]
    Add {
        /// Number in international format
        number: Recipient,
        #[command(flatten)]
        selection: ListSelection,
        /// Reason, shown with the number
        #[arg(long)]
        note: Option<Note>,
    },
    /// Remove a number from an opt-out list
    #[command(after_help = "Example:\n  heliograph optout remove +447700900123 --live")]
    Remove {
        /// Number in international format
        number: Recipient,
        #[command(flatten)]
        selection: ListSelection,
    },
}

/// The selection of an opt-out list.
#[derive(Args, Debug)]
pub(crate) struct ListSelection {
    /// ID of the account, or email address of the person who owns it [default: the only account]
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<AccountRef>,
    /// Use the list of live messages
    #[arg(long, conflicts_with = "test", required_unless_present = "test")]
    live: bool,
    /// Use the list of test messages
    #[arg(long)]
    test: bool,
    /// ID of the list [default: the default list, which single messages enforce]
    #[arg(long, value_name = "LIST", value_parser = list_id)]
    list: Option<OptoutListId>,
}

fn list_id(text: &str) -> Result<OptoutListId, String> {
    let wrong = "not the ID of an opt-out list; the API and the dashboard show the IDs of lists";
    text.trim().parse().map_err(|_| wrong.to_owned())
}

impl ListSelection {
    async fn caller(&self, command: &CommandContext) -> anyhow::Result<Caller> {
        let cx = &command.context;
        let account = account_lookup::find_or_only(cx, self.account.as_ref()).await?;
        let mode = if self.live { Mode::Live } else { Mode::Test };
        Ok(accounts::operator_caller(cx, &account, mode).await?)
    }

    fn list(&self) -> OptoutListRef {
        self.list.map_or(OptoutListRef::Default, OptoutListRef::Id)
    }
}

pub(crate) async fn run(command: &CommandContext, what: OptoutCommand) -> anyhow::Result<ExitCode> {
    match what {
        OptoutCommand::List(selection) => list(command, &selection).await?,
        OptoutCommand::Add { number, selection, note } => {
            add(command, &selection, NewOptout { number, note }).await?;
        }
        OptoutCommand::Remove { number, selection } => remove(command, &selection, number).await?,
    }
    Ok(ExitCode::SUCCESS)
}

fn unknown_list() -> String {
    "the account has no such opt-out list in this mode".to_owned()
}

async fn list(command: &CommandContext, selection: &ListSelection) -> anyhow::Result<()> {
    let (cx, caller) = (&command.context, selection.caller(command).await?);
    let (mut after, mut rows) = (Recipient(0), Vec::new());
    loop {
        let page = optouts::numbers(cx, &caller, selection.list(), after, PAGE).await;
        let page = or_not_found(page, unknown_list)?;
        let Some(last) = page.last() else { break };
        after = last.number;
        for optout in &page {
            rows.push(row(optout)?);
        }
    }
    output::print_list(command.json, &["NUMBER", "SOURCE", "SINCE", "NOTE"], rows);
    Ok(())
}

fn row(optout: &Optout) -> anyhow::Result<ListRow> {
    let cells = vec![
        format!("+{}", optout.number),
        optout.source.name().to_owned(),
        output::time(optout.at),
        optout.note.clone().unwrap_or_default(),
    ];
    Ok(ListRow { document: serde_json::to_value(OptoutView::new(optout))?, cells })
}

async fn add(
    command: &CommandContext,
    selection: &ListSelection,
    new: NewOptout,
) -> anyhow::Result<()> {
    let (cx, caller, number) = (&command.context, selection.caller(command).await?, new.number);
    let is_new =
        or_not_found(optouts::add_one(cx, &caller, selection.list(), new).await, unknown_list)?;
    if is_new {
        let by = Actor::operator(caller.account);
        let detail = format!("+{number}");
        audit::record_alone(cx, &by, AuditAction::OptoutAdded, &detail).await?;
    }
    let text = match is_new {
        true => format!("Added +{number}"),
        false => format!("+{number} is on the list already"),
    };
    let document = json!({ "number": number.to_string(), "added": is_new });
    output::print_result(command.json, &document, &text);
    Ok(())
}

async fn remove(
    command: &CommandContext,
    selection: &ListSelection,
    number: Recipient,
) -> anyhow::Result<()> {
    let (cx, caller) = (&command.context, selection.caller(command).await?);
    let by = Actor::operator(caller.account);
    let removed = optouts::remove(cx, &caller, selection.list(), number, Some(&by)).await;
    or_not_found(removed, || format!("+{number} is not on the opt-out list"))?;
    let document = json!({ "number": number.to_string(), "removed": true });
    output::print_result(command.json, &document, &format!("Removed +{number}"));
    Ok(())
}
