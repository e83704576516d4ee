//! The access that people and programs have, for a comparison before and after a restore.

use crate::db::Conn;
use crate::db::row::{self, Row};
use crate::error::StoreResult;
use heliograph_domain::account::Role;
use heliograph_domain::id::{AccountId, ApiKeyId, UserId};
use heliograph_domain::time::Timestamp;
use std::collections::{HashMap, HashSet};

/// An API key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyAccess {
    /// The account.
    pub account: AccountId,
    /// The name.
    pub name: String,
    /// True if the key was revoked.
    pub revoked: bool,
}

/// A member of an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberAccess {
    /// The user's email address.
    pub email: String,
    /// The role.
    pub role: Role,
}

/// The access to all accounts at one instant.
#[derive(Clone, Default, Debug)]
pub struct Access {
    /// All users.
    pub users: HashSet<UserId>,
    /// All API keys.
    pub keys: HashMap<ApiKeyId, KeyAccess>,
    /// The members of all accounts.
    pub members: HashMap<(AccountId, UserId), MemberAccess>,
}

/// Returns the access to all accounts.
pub async fn load(conn: &mut Conn) -> StoreResult<Access> {
    let users = conn.query("SELECT id FROM users", &[], row::get).await?;
    let sql = "SELECT id, account, name, revoked_at FROM api_keys";
    let read = |r: &mut Row<'_>| {
        let id: ApiKeyId = r.get()?;
        let (account, name) = (r.get()?, r.get()?);
        let revoked = r.get::<Option<Timestamp>>()?.is_some();
        Ok((id, KeyAccess { account, name, revoked }))
    };
    let keys = conn.query(sql, &[], read).await?;
    let sql = "SELECT m.account, m.user_id, u.email, m.role FROM memberships m
        JOIN users u ON u.id = m.user_id";
    let read = |r: &mut Row<'_>| {
        let (account, user): (AccountId, UserId) = (r.get()?, r.get()?);
        Ok(((account, user), MemberAccess { email: r.get()?, role: r.get()? }))
    };
    let members = conn.query(sql, &[], read).await?;
    Ok(Access {
        users: users.into_iter().collect(),
        keys: keys.into_iter().collect(),
        members: members.into_iter().collect(),
    })
}

/// The number of rows of each kind that [`end_sign_ins`] deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndedSignIns {
    /// Dashboard sessions.
    pub sessions: u64,
    /// Sign-in links, password reset links and pending two-factor steps.
    pub links: u64,
    /// Invitations.
    pub invitations: u64,
}

/// Deletes all sessions, links and invitations, and the queued emails, which may contain links.
pub async fn end_sign_ins(tx: &mut Conn) -> StoreResult<EndedSignIns> {
    let ended = EndedSignIns {
        sessions: tx.execute("DELETE FROM sessions", &[]).await?,
        links: tx.execute("DELETE FROM magic_links", &[]).await?,
        invitations: tx.execute("DELETE FROM invitations", &[]).await?,
    };
    tx.execute("DELETE FROM mails", &[]).await?;
    Ok(ended)
}
