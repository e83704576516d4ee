//! The `heliograph key` commands.

use crate::commands::context::{CommandContext, or_not_found};
use crate::output::{self, ListRow};
use crate::{account_lookup, welcome};
use anyhow::bail;
use clap::{Subcommand, ValueEnum};
use heliograph_domain::account::{Mode, Scope, Scopes};
use heliograph_domain::account_ref::AccountRef;
use heliograph_domain::fields::KeyName;
use heliograph_domain::id::ApiKeyId;
use heliograph_domain::wording::limits;
use heliograph_service::identity::api_keys::{self, ApiKeyRecord, KeySpec};
use heliograph_service::kernel::audit::Actor;
use heliograph_service::kernel::error::{ConflictReason, Error};
use serde_json::json;
use std::process::ExitCode;

/// The subcommands of `heliograph key`.
#[derive(Subcommand, Debug)]
pub(crate) enum KeyCommand {
    /// Create an API key; the key is printed once, alone on stdout
    #[command(after_help = "Example:
  KEY=$(heliograph key create --account ann@example.com --live --scope send)")]
    Create {
        /// ID of the account, or email address of the person who owns it
        #[arg(long, value_name = "ACCOUNT")]
        account: AccountRef,
        /// Create a live key, which sends real messages and spends balance
        #[arg(long, conflicts_with = "test")]
        live: bool,
        /// Create a test key, which sends to the simulated carrier for free (default)
        #[arg(long)]
        test: bool,
        /// Display name of the key
        #[arg(long, default_value = "key")]
        name: KeyName,
        /// Permission to grant; repeat for more [default: all]
        #[arg(long, value_enum)]
        scope: Vec<ScopeArg>,
    },
    /// List the API keys of an account
    #[command(after_help = "Example:\n  heliograph key list --account ann@example.com")]
    List {
        /// ID of the account, or email address of the person who owns it
        #[arg(long, value_name = "ACCOUNT")]
        account: AccountRef,
    },
    /// Revoke an API key; takes effect immediately
    #[command(
        after_help = "Example:\n  heliograph key revoke 0190b0a0-6f2e-7c3d-8a41-2b5c9d7e1f30"
    )]
    Revoke {
        /// ID of the key, as shown by 'key list'
        #[arg(value_parser = key_id)]
        id: ApiKeyId,
    },
}

/// A permission of an API key, as a command line value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ScopeArg {
    /// Send messages
    Send,
    /// Read messages and account data
    Read,
    /// Manage contacts, lists and campaigns
    Manage,
}

fn scopes(args: &[ScopeArg]) -> Scopes {
    if args.is_empty() {
        return Scopes::ALL;
    }
    let scope = |s: &ScopeArg| match s {
        ScopeArg::Send => Scope::Send,
        ScopeArg::Read => Scope::Read,
        ScopeArg::Manage => Scope::Manage,
    };
    args.iter().map(scope).collect()
}

pub(crate) async fn run(command: &CommandContext, what: KeyCommand) -> anyhow::Result<ExitCode> {
    let cx = &command.context;
    match what {
        KeyCommand::Create { account, live, test: _, name, scope } => {
            let account = account_lookup::find(cx, &account).await?;
            let mode = if live { Mode::Live } else { Mode::Test };
            let random = welcome::random_bytes()?;
            let spec = KeySpec { mode, scopes: scopes(&scope), name: &name };
            let by = Actor::operator(account.id);
            let (id, key) = match api_keys::create(cx, &by, spec, &random).await {
                Err(Error::Conflict(ConflictReason::ApiKeyLimit(limit))) => {
                    bail!(limits::api_keys(limit))
                }
                created => created?,
            };
            if command.json {
                let (id, key) = (id.to_string(), key.reveal());
                output::stdout(&json!({ "id": id, "key": key, "mode": mode.name() }).to_string());
            } else {
                output::stderr(&format!(
                    "Created key {id} for {}. Save it now: it will not be shown again.",
                    account.name
                ));
                output::stdout(key.reveal());
            }
        }
        KeyCommand::List { account } => {
            let all = api_keys::list(cx, account_lookup::find(cx, &account).await?.id).await?;
            let header = ["ID", "MODE", "NAME", "SCOPES", "CREATED", "LAST USED", "REVOKED"];
            output::print_list(command.json, &header, all.iter().map(key_row).collect());
        }
        KeyCommand::Revoke { id } => {
            let unknown = || format!("no active key {id}; run 'heliograph key list' to see keys");
            let account = or_not_found(api_keys::owner(cx, id).await, unknown)?;
            or_not_found(api_keys::revoke(cx, &Actor::operator(account), id).await, unknown)?;
            output::stderr(&format!("Revoked key {id}"));
            if command.json {
                output::stdout(&json!({ "id": id.to_string(), "revoked": true }).to_string());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn key_row(k: &ApiKeyRecord) -> ListRow {
    let (id, created) = (k.id.to_string(), k.created_at.to_string());
    let revoked = k.revoked_at.map(|t| t.to_string());
    let used = k.last_used_at.map(|t| t.to_string());
    let document = json!({ "id": id, "name": k.name, "mode": k.mode.name(),
        "scopes": k.scopes.names(), "createdAt": created, "lastUsedAt": used, "revokedAt": revoked });
    let time = |at: Option<_>, absent: &str| at.map_or(absent.to_owned(), output::time);
    let cells = vec![
        id,
        k.mode.name().to_owned(),
        k.name.clone(),
        k.scopes.names().join(","),
        output::time(k.created_at),
        time(k.last_used_at, "never"),
        k.revoked_at.map_or(String::new(), |at| format!("revoked {}", output::time(at))),
    ];
    ListRow { document, cells }
}

/// Parses the ID of an API key.
fn key_id(text: &str) -> Result<ApiKeyId, String> {
    let wrong = "not the ID of an API key; run 'heliograph key list --account ACCOUNT' to see IDs";
    text.trim().parse().map_err(|_| wrong.to_owned())
}
