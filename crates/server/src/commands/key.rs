//! `heliograph key`.

use crate::commands::arguments::{Desk, there};
use crate::{greeting, output};
use clap::{Subcommand, ValueEnum};
use heliograph_domain::account::{Mode, Scope, Scopes};
use heliograph_domain::id::ApiKeyId;
use heliograph_service::accounts;
use heliograph_service::api_keys::{self, ApiKey, LONGEST_NAME};
use heliograph_service::audit::Actor;
use serde_json::{Value, json};
use std::process::ExitCode;

/// What can be done with API keys.
#[derive(Subcommand, Debug)]
pub(crate) enum Key {
    /// Make a key; it is printed once, alone on stdout
    #[command(after_help = "Example:
  KEY=$(heliograph key create --account ann@example.com --live --scope send)")]
    Create {
        /// Whose key: the account's email address
        #[arg(long, value_name = "EMAIL")]
        account: String,
        /// Real messages, real money
        #[arg(long, conflicts_with = "test")]
        live: bool,
        /// The simulated carrier, no money (what happens when nothing is said)
        #[arg(long)]
        test: bool,
        /// What to call it
        #[arg(long, default_value = "key", value_parser = name)]
        name: String,
        /// What it may do, again for more; everything when nothing is said
        #[arg(long, value_enum)]
        scope: Vec<ScopeArg>,
    },
    /// List an account's keys
    #[command(after_help = "Example:\n  heliograph key list --account ann@example.com")]
    List {
        /// Whose keys: the account's email address
        #[arg(long, value_name = "EMAIL")]
        account: String,
    },
    /// Revoke a key: the very next request with it fails
    #[command(
        after_help = "Example:\n  heliograph key revoke 0190b0a0-6f2e-7c3d-8a41-2b5c9d7e1f30"
    )]
    Revoke {
        /// The key's id, as 'key list' shows it
        id: ApiKeyId,
    },
}

/// One thing that a key may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ScopeArg {
    /// Send messages
    Send,
    /// Read what there is
    Read,
    /// Change contacts, lists and campaigns
    Manage,
}

/// Reads a name that fits into a line of a list.
fn name(text: &str) -> Result<String, String> {
    let length = text.chars().count();
    match (1..=LONGEST_NAME).contains(&length) && !text.chars().any(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err("must be 1 to 100 printable characters".to_owned()),
    }
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

pub(crate) async fn run(desk: &Desk, what: Key) -> anyhow::Result<ExitCode> {
    let cx = &desk.context;
    let find = async |email: &str| {
        let found = accounts::by_email(cx, &email.trim().to_lowercase()).await;
        there(found, || format!("no account for {email}: see 'heliograph account list'"))
    };
    match what {
        Key::Create { account, live, test: _, name, scope } => {
            let account = find(&account).await?;
            let mode = if live { Mode::Live } else { Mode::Test };
            let random = greeting::random()?;
            let what = (mode, scopes(&scope));
            let by = Actor::operator(account.id);
            let (id, key) = api_keys::create(cx, &by, what, &name, &random).await?;
            if desk.json {
                let (id, key) = (id.to_string(), key.reveal());
                output::result(&json!({ "id": id, "key": key, "mode": mode.name() }).to_string());
            } else {
                output::talk(&format!("key {id} of {}; it is shown only now", account.name));
                output::result(key.reveal());
            }
        }
        Key::List { account } => {
            let all = api_keys::list(cx, find(&account).await?.id).await?;
            output::list(desk.json, all.iter().map(listed).collect());
        }
        Key::Revoke { id } => {
            let unknown = || format!("no valid key {id}: see 'heliograph key list'");
            let account = there(api_keys::owner(cx, id).await, unknown)?;
            there(api_keys::revoke(cx, &Actor::operator(account), id).await, unknown)?;
            output::talk(&format!("key {id} is revoked"));
            if desk.json {
                output::result(&json!({ "id": id.to_string(), "revoked": true }).to_string());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn listed(k: &ApiKey) -> (Value, String) {
    let (id, created) = (k.id.to_string(), k.created_at.to_string());
    let (revoked, scopes) = (k.revoked_at.map(|t| t.to_string()), k.scopes.names());
    let used = k.last_used_at.map(|t| t.to_string());
    let told = json!({ "id": id, "name": k.name, "mode": k.mode.name(), "scopes": scopes,
        "createdAt": created, "lastUsedAt": used, "revokedAt": revoked });
    let revoked = revoked.map_or(String::new(), |t| format!("\trevoked {t}"));
    let scopes = scopes.join(",");
    let used = used.map_or_else(|| "never used".to_owned(), |t| format!("last used {t}"));
    (told, format!("{id}\t{}\t{}\t{scopes}\tmade {created}\t{used}{revoked}", k.mode, k.name))
}
