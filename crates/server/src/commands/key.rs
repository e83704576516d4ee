//! The `heliograph key` commands.

use crate::commands::context::{CommandContext, or_not_found};
use crate::{output, welcome};
use anyhow::bail;
use clap::{Subcommand, ValueEnum};
use heliograph_domain::account::{Mode, Scope, Scopes};
use heliograph_domain::fields::KeyName;
use heliograph_domain::id::ApiKeyId;
use heliograph_domain::wording::limits;
use heliograph_service::identity::accounts;
use heliograph_service::identity::api_keys::{self, ApiKeyRecord, KeySpec};
use heliograph_service::kernel::audit::Actor;
use heliograph_service::kernel::error::{ConflictReason, Error};
use serde_json::{Value, json};
use std::process::ExitCode;

/// The subcommands of `heliograph key`.
#[derive(Subcommand, Debug)]
pub(crate) enum KeyCommand {
    /// Create an API key; the key is printed once, alone on stdout
    #[command(after_help = "Example:
  KEY=$(heliograph key create --account ann@example.com --live --scope send)")]
    Create {
        /// Email address of the account
        #[arg(long, value_name = "EMAIL")]
        account: String,
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
        /// Email address of the account
        #[arg(long, value_name = "EMAIL")]
        account: String,
    },
    /// Revoke an API key; takes effect immediately
    #[command(
        after_help = "Example:\n  heliograph key revoke 0190b0a0-6f2e-7c3d-8a41-2b5c9d7e1f30"
    )]
    Revoke {
        /// Id of the key, as shown by 'key list'
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
    let find = async |email: &str| {
        let found = accounts::by_email(cx, &email.trim().to_lowercase()).await;
        or_not_found(found, || {
            format!("no account for {email}; run 'heliograph account list' to see accounts")
        })
    };
    match what {
        KeyCommand::Create { account, live, test: _, name, scope } => {
            let account = find(&account).await?;
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
            let all = api_keys::list(cx, find(&account).await?.id).await?;
            output::print_list(command.json, all.iter().map(key_row).collect());
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

fn key_row(k: &ApiKeyRecord) -> (Value, String) {
    let (id, created) = (k.id.to_string(), k.created_at.to_string());
    let (revoked, scopes) = (k.revoked_at.map(|t| t.to_string()), k.scopes.names());
    let used = k.last_used_at.map(|t| t.to_string());
    let document = json!({ "id": id, "name": k.name, "mode": k.mode.name(), "scopes": scopes,
        "createdAt": created, "lastUsedAt": used, "revokedAt": revoked });
    let revoked = revoked.map_or(String::new(), |t| format!("\trevoked {t}"));
    let scopes = scopes.join(",");
    let used = used.map_or_else(|| "never used".to_owned(), |t| format!("last used {t}"));
    (
        document,
        format!("{id}\t{}\t{}\t{scopes}\tcreated {created}\t{used}{revoked}", k.mode, k.name),
    )
}
