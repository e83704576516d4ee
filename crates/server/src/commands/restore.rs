//! The `heliograph restore` command.

use crate::commands::backup::{contents_json, contents_text, refuse_own_database};
use crate::commands::running::refuse_in_use;
use crate::config::Config;
use crate::output::{self, ProgressBar};
use crate::system::RandomIds;
use crate::{data_dir, service_context};
use anyhow::bail;
use clap::Args;
use heliograph_domain::account::Role;
use heliograph_service::kernel::error::{ConflictReason, Error};
use heliograph_service::operations::backup::{self, RestoreOptions, Restored};
use heliograph_service::operations::restored_access::RestoredAccess;
use heliograph_store::operations::access::EndedSignIns;
use heliograph_store::operations::backup::Backup;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// The note where the replaced database knows nobody of the backup.
const UNKNOWN: &str = "The replaced database does not show what was revoked after the backup: API keys that were \
    revoked and members who were removed since then have access again. Revoke all API keys with --revoke-keys, and \
    check the members of each account in the dashboard.";
/// The same note after `--revoke-keys`.
const UNKNOWN_MEMBERS: &str = "The replaced database does not show who was removed after the backup: these members \
    have access again. Check the members of each account in the dashboard.";

/// The arguments of `heliograph restore`.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  heliograph restore /var/backups/heliograph-2026-11-21.db

FILE is validated before anything is changed, and invariants are checked before the restore is committed:
if anything fails, the database stays unchanged. Stop every node first. A running service is detected by
the lock of its data directory and, on PostgreSQL, by open connections; a node whose connections are all
broken at that moment is not detected.

All sessions, sign-in links, password reset links and invitations of the backup end. API keys that were
revoked and members who were removed after the backup have access again: they are named if the replaced
database knows them.")]
pub(crate) struct RestoreArgs {
    /// Backup file to restore
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace existing data, and accept a backup that violates invariants
    #[arg(long)]
    force: bool,
    /// Revoke all API keys, in case some were revoked after the backup
    #[arg(long)]
    revoke_keys: bool,
}

pub(crate) async fn run(
    config: &Config,
    as_json: bool,
    what: &RestoreArgs,
) -> anyhow::Result<ExitCode> {
    let RestoreArgs { file, force, revoke_keys } = what;
    refuse_own_database(config, file)?;
    let data = data_dir::create(config)?;
    let _lock = data_dir::lock(data)?;
    let mut found = Backup::open(file, &data.join("restore.part")).await?;
    let db = service_context::open_database(config).await?;
    refuse_in_use(&db).await?;
    let mut bar = ProgressBar::new();
    let ids = RandomIds::default();
    let options = RestoreOptions { force: *force, revoke_keys: *revoke_keys, ids: &ids };
    let done =
        backup::restore(&db, &mut found, options, &mut |done, all| bar.show(done, all)).await;
    drop(bar);
    let done = match done {
        Err(Error::Conflict(ConflictReason::DatabaseNotEmpty(accounts))) => bail!(
            "the database holds accounts already ({accounts}): --force replaces all that it holds"
        ),
        Err(Error::Conflict(ConflictReason::BackupViolations { count, first })) => bail!(
            "the backup breaks invariants ({count}), nothing was changed: {first}; --force takes it nevertheless"
        ),
        done => done?,
    };
    let mut document = contents_json(file, found.contents());
    document.extend(result_json(&done));
    print_notes(&done);
    let text = format!(
        "Restored {}; in-flight messages to resend: {}",
        contents_text(found.contents()),
        done.in_doubt
    );
    output::print_result(as_json, &document.into(), &text);
    Ok(ExitCode::SUCCESS)
}

fn result_json(done: &Restored) -> Map<String, Value> {
    let access = |access: &RestoredAccess| match access {
        RestoredAccess::ApiKey { account, id, name } => {
            json!({ "account": account.0, "apiKey": id.to_string(), "name": name })
        }
        RestoredAccess::Member { account, email, role, before } => json!({ "account": account.0,
            "member": email, "role": role.name(), "roleBefore": before.map(Role::name) }),
    };
    let all = done.access.as_ref().map(|all| all.iter().map(access).collect::<Vec<_>>());
    let ended = json!({ "sessions": done.ended.sessions, "links": done.ended.links,
        "invitations": done.ended.invitations });
    let fields = [
        ("inDoubt", done.in_doubt.into()),
        ("violations", json!(done.violations)),
        ("ended", ended),
        ("restoredAccess", json!(all)),
        ("revokedKeys", json!(done.revoked_keys)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Prints to stderr what the operator has to look at.
fn print_notes(done: &Restored) {
    done.violations.iter().for_each(|v| output::stderr(v));
    let EndedSignIns { sessions, links, invitations } = done.ended;
    output::stderr(&format!(
        "Ended: sessions {sessions}, links {links}, invitations {invitations}. Everyone has to sign in again."
    ));
    if let Some(revoked) = done.revoked_keys {
        output::stderr(&format!("Revoked API keys: {revoked}"));
    }
    let keys_are_valid = done.revoked_keys.is_none();
    match &done.access {
        None => output::stderr(if keys_are_valid { UNKNOWN } else { UNKNOWN_MEMBERS }),
        Some(all) => {
            let still =
                |a: &&RestoredAccess| keys_are_valid || matches!(a, RestoredAccess::Member { .. });
            all.iter().filter(still).for_each(|a| output::stderr(&restored_access(a)));
        }
    }
}

/// Describes access that was taken away after the backup.
fn restored_access(access: &RestoredAccess) -> String {
    match access {
        RestoredAccess::ApiKey { account, id, name } => format!(
            "API key '{name}' of account {account} was revoked after the backup and is valid again; run \
             'heliograph key revoke {id}'"
        ),
        RestoredAccess::Member { account, email, role, before: None } => format!(
            "{email} was removed from account {account} after the backup and is {} again; remove the member in the \
             dashboard",
            role.name()
        ),
        RestoredAccess::Member { account, email, role, before: Some(before) } => format!(
            "{email} was {} of account {account} before the restore and is {} again; change the role in the dashboard",
            before.name(),
            role.name()
        ),
    }
}
