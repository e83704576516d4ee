//! Access after a restore: what ends, and what was revoked since the backup.

use crate::kernel::audit::AuditAction;
use crate::kernel::error::Result;
use heliograph_domain::account::Role;
use heliograph_domain::id::{AccountId, ApiKeyId, AuditId, Ids};
use heliograph_domain::time::Timestamp;
use heliograph_store::Conn;
use heliograph_store::identity::accounts;
use heliograph_store::identity::api_keys;
use heliograph_store::identity::audit::{self, AuditEntry};
use heliograph_store::operations::access::Access;

/// Access that was taken away after the backup, and that the restore gives back.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RestoredAccess {
    /// An API key that was revoked.
    ApiKey {
        /// The account.
        account: AccountId,
        /// The key.
        id: ApiKeyId,
        /// The name of the key.
        name: String,
    },
    /// A member who was removed, or had a less powerful role.
    Member {
        /// The account.
        account: AccountId,
        /// The email address.
        email: String,
        /// The role after the restore.
        role: Role,
        /// The role before the restore; `None` for a removed member.
        before: Option<Role>,
    },
}

/// Returns the access that exists again, by account. `None` when the replaced database knows
/// nobody of the backup, so that it cannot tell.
pub(super) fn compare(before: &Access, after: &Access) -> Option<Vec<RestoredAccess>> {
    if before.users.is_disjoint(&after.users) {
        return None;
    }
    let revoked = |id: &ApiKeyId| before.keys.get(id).is_some_and(|key| key.revoked);
    let keys = after.keys.iter().filter(|(id, key)| !key.revoked && revoked(id));
    let keys = keys.map(|(id, key)| RestoredAccess::ApiKey {
        account: key.account,
        id: *id,
        name: key.name.clone(),
    });
    let members = after.members.iter().filter_map(|(at, member)| {
        let before = before.members.get(at).map(|m| m.role);
        // `Role` begins with the most powerful one.
        let more = before.is_none_or(|role| member.role < role);
        more.then(|| RestoredAccess::Member {
            account: at.0,
            email: member.email.clone(),
            role: member.role,
            before,
        })
    });
    let mut all: Vec<_> = keys.chain(members).collect();
    all.sort();
    Some(all)
}

/// Revokes all valid API keys and returns their number.
pub(super) async fn revoke_keys(
    tx: &mut Conn,
    ids: &dyn Ids,
    now: Timestamp,
    access: &Access,
) -> Result<u64> {
    let mut count = 0;
    for (id, key) in &access.keys {
        if let Some(name) = api_keys::revoke(tx, (key.account, *id), now).await? {
            let entry = entry(ids, now, key.account, AuditAction::ApiKeyRevoked, name);
            audit::insert(tx, &entry).await?;
            count += 1;
        }
    }
    Ok(count)
}

/// Writes the restore to the audit log of every account.
pub(super) async fn record(tx: &mut Conn, ids: &dyn Ids, now: Timestamp) -> Result<()> {
    for account in accounts::all(tx).await? {
        let entry = entry(ids, now, account.id, AuditAction::BackupRestored, String::new());
        audit::insert(tx, &entry).await?;
    }
    Ok(())
}

fn entry(
    ids: &dyn Ids,
    at: Timestamp,
    account: AccountId,
    action: AuditAction,
    detail: String,
) -> AuditEntry {
    let (id, action) = (AuditId(ids.next(at)), action.code().to_owned());
    AuditEntry { id, account, actor: None, action, detail, address: String::new(), at }
}
