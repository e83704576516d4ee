//! The `heliograph message` commands.

use crate::account_lookup;
use crate::commands::context::{CommandContext, or_not_found};
use crate::output::{self, ListRow};
use crate::writer_thread;
use anyhow::bail;
use clap::{Args, Subcommand};
use heliograph_api::MessageView;
use heliograph_domain::account::Mode;
use heliograph_domain::account_ref::AccountRef;
use heliograph_domain::id::MessageId;
use heliograph_domain::message::{Message, MessageState, MessageStatus};
use heliograph_domain::phone::Recipient;
use heliograph_domain::wording::cancellation;
use heliograph_service::identity::accounts;
use heliograph_service::kernel::audit::{self, Actor, AuditAction};
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::error::Error;
use heliograph_service::messaging::messages::{self, MessageFilter};
use serde_json::{Value, json};
use std::process::ExitCode;
use uuid::Uuid;

/// The subcommands of `heliograph message`.
#[derive(Subcommand, Debug)]
pub(crate) enum MessageCommand {
    /// List the newest messages of an account
    #[command(after_help = "Example:\n  heliograph message list --live --status FAILED")]
    List(ListArgs),
    /// Show a message with its text and timeline
    #[command(
        after_help = "Example:\n  heliograph message show 01a1fd13-fdac-71b5-af6a-ef0fb5c1bcea"
    )]
    Show(MessageArgs),
    /// Cancel a queued message of which no part was sent
    #[command(
        after_help = "Example:\n  heliograph message cancel 01a1fd13-fdac-71b5-af6a-ef0fb5c1bcea"
    )]
    Cancel(MessageArgs),
}

/// The arguments of `heliograph message list`.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// ID of the account, or email address of the person who owns it [default: the only account]
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<AccountRef>,
    /// List live messages
    #[arg(long, conflicts_with = "test")]
    live: bool,
    /// List test messages (default)
    #[arg(long)]
    test: bool,
    /// Only messages with this status, such as FAILED
    #[arg(long)]
    status: Option<MessageStatus>,
    /// Only messages to this number
    #[arg(long, value_name = "NUMBER")]
    recipient: Option<Recipient>,
    /// Only messages with this reference
    #[arg(long)]
    reference: Option<String>,
    /// Number of messages to list
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

/// The arguments of the commands on one message.
#[derive(Args, Debug)]
pub(crate) struct MessageArgs {
    /// ID of the message
    #[arg(value_parser = message_id)]
    id: MessageId,
    /// ID of the account, or email address of the person who owns it [default: the only account]
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<AccountRef>,
}

fn message_id(text: &str) -> Result<MessageId, String> {
    let wrong = "not the ID of a message; run 'heliograph message list' to see IDs";
    text.trim().parse().map_err(|_| wrong.to_owned())
}

pub(crate) async fn run(
    command: &CommandContext,
    what: MessageCommand,
) -> anyhow::Result<ExitCode> {
    match what {
        MessageCommand::List(what) => list(command, what).await?,
        MessageCommand::Show(what) => {
            let (caller, message, state) = find(command, &what).await?;
            print(command, &caller, &message, &state)?;
        }
        MessageCommand::Cancel(what) => cancel(command, &what).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(command: &CommandContext, what: ListArgs) -> anyhow::Result<()> {
    let cx = &command.context;
    let account = account_lookup::find_or_only(cx, what.account.as_ref()).await?;
    let mode = if what.live { Mode::Live } else { Mode::Test };
    let caller = accounts::operator_caller(cx, &account, mode).await?;
    let ListArgs { status, recipient, reference, limit, .. } = what;
    let filter = MessageFilter {
        statuses: status.into_iter().collect(),
        recipient,
        reference,
        ..MessageFilter::default()
    };
    let (mut before, mut found) = (MessageId(Uuid::max()), Vec::new());
    // A page reads a bounded number of rows, of which few may match.
    while found.len() < limit.into() {
        let rest = usize::from(limit) - found.len();
        let page = messages::list(cx, &caller, &filter, before, rest).await?;
        found.extend(page.messages);
        let Some(next) = page.next else { break };
        before = next;
    }
    let rows: anyhow::Result<Vec<ListRow>> =
        found.iter().map(|(m, s)| row(&caller, m, s)).collect();
    let header = ["ID", "CREATED", "STATUS", "SENDER", "RECIPIENT", "PARTS", "REFERENCE"];
    output::print_list(command.json, &header, rows?);
    Ok(())
}

fn row(caller: &Caller, m: &Message, s: &MessageState) -> anyhow::Result<ListRow> {
    let cells = vec![
        m.id.to_string(),
        output::time(m.accepted_at),
        s.status.name().to_owned(),
        m.originator.to_string(),
        m.recipient.to_string(),
        m.parts.to_string(),
        m.reference.clone().unwrap_or_default(),
    ];
    Ok(ListRow { document: serde_json::to_value(MessageView::new(m, s, caller))?, cells })
}

/// Returns the message of an account, in either mode.
async fn find(
    command: &CommandContext,
    what: &MessageArgs,
) -> anyhow::Result<(Caller, Message, MessageState)> {
    let (cx, id) = (&command.context, what.id);
    let account = account_lookup::find_or_only(cx, what.account.as_ref()).await?;
    for mode in [Mode::Live, Mode::Test] {
        let caller = accounts::operator_caller(cx, &account, mode).await?;
        match messages::get(cx, &caller, id).await {
            Err(Error::NotFound) => {}
            found => {
                let (message, state) = found?;
                return Ok((caller, message, state));
            }
        }
    }
    bail!(
        "account {} has no message {id}; run 'heliograph message list' to see messages, or select another account with \
         --account",
        account.id
    )
}

async fn cancel(command: &CommandContext, what: &MessageArgs) -> anyhow::Result<()> {
    let cx = &command.context;
    let (caller, ..) = find(command, what).await?;
    let (writer, thread) = writer_thread::start_alone(cx)?;
    let done = messages::cancel(cx, &writer, &caller, what.id).await;
    // The thread ends when the last handle of its writer is gone.
    drop(writer);
    let _ = thread.join();
    if let Err(Error::NotCancellable(reason)) = &done {
        let why = cancellation::not_cancellable(*reason).trim_end_matches('.');
        bail!("message {} cannot be cancelled: {why}", what.id);
    }
    let (message, state) = or_not_found(done, || format!("message {} was deleted", what.id))?;
    let by = Actor::operator(caller.account);
    audit::record_alone(cx, &by, AuditAction::MessageCancelled, &what.id.to_string()).await?;
    print(command, &caller, &message, &state)
}

/// Prints a message as the API shows it, or as lines of a name and a value.
fn print(
    command: &CommandContext,
    caller: &Caller,
    message: &Message,
    state: &MessageState,
) -> anyhow::Result<()> {
    let document = serde_json::to_value(MessageView::new(message, state, caller))?;
    let text = lines(&document);
    output::print_result(command.json, &document, &text.join("\n"));
    Ok(())
}

fn lines(document: &Value) -> Vec<String> {
    let fields = document.as_object().into_iter().flatten();
    let plain = |value: &Value| match value {
        // Quoted, so that a text cannot inject terminal escape sequences.
        Value::String(text) if text.chars().any(char::is_control) => json!(text).to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let shown = fields.filter(|(_, value)| !value.is_null());
    shown.map(|(name, value)| format!("{name:<18}{}", plain(value))).collect()
}
