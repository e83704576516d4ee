//! `heliograph key`.

use crate::commands::arguments::Desk;
use crate::{greeting, output};
use anyhow::Context;
use clap::{Subcommand, ValueEnum};
use heliograph_domain::account::{Mode, Scope, Scopes};
use heliograph_domain::id::ApiKeyId;
use heliograph_service::{accounts, api_keys};
use serde_json::json;
use std::process::ExitCode;

/// What can be done with API keys.
#[derive(Subcommand, Debug)]
pub(crate) enum Key {
    /// Make a key; it is printed once, alone on stdout
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
    List {
        /// Whose keys: the account's email address
        #[arg(long, value_name = "EMAIL")]
        account: String,
    },
    /// Revoke a key: the very next request with it fails
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
    match (1..=100).contains(&length) && !text.chars().any(char::is_control) {
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
        found.with_context(|| format!("no account for {email}: see 'heliograph account list'"))
    };
    match what {
        Key::Create { account, live, test: _, name, scope } => {
            let account = find(&account).await?;
            let mode = if live { Mode::Live } else { Mode::Test };
            let random = greeting::random()?;
            let what = (mode, scopes(&scope));
            let (id, key) = api_keys::create(cx, account.id, what, &name, &random).await?;
            if desk.json {
                let (id, key) = (id.to_string(), key.reveal());
                output::result(&json!({ "id": id, "key": key, "mode": mode.name() }).to_string());
            } else {
                output::talk(&format!("key {id} of {}; it is shown only now", account.name));
                output::result(key.reveal());
            }
        }
        Key::List { account } => {
            for k in api_keys::list(cx, find(&account).await?.id).await? {
                let revoked = k.revoked_at.map(|t| t.to_string());
                let (id, created) = (k.id.to_string(), k.created_at.to_string());
                output::result(&if desk.json {
                    json!({ "id": id, "name": k.name, "mode": k.mode.name(), "scopes": k.scopes.names(),
                            "createdAt": created, "revokedAt": revoked }).to_string()
                } else {
                    let revoked = revoked.map_or(String::new(), |t| format!("\trevoked {t}"));
                    format!(
                        "{id}\t{}\t{}\t{}\tmade {created}{revoked}",
                        k.mode,
                        k.name,
                        k.scopes.names().join(",")
                    )
                });
            }
        }
        Key::Revoke { id } => {
            let done = api_keys::revoke(cx, id).await;
            done.with_context(|| format!("no valid key {id}: see 'heliograph key list'"))?;
            output::talk(&format!("key {id} is revoked"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
