//! Pending invitations to accounts.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table, qualified};
use crate::error::StoreResult;
use heliograph_domain::account::Role;
use heliograph_domain::id::{AccountId, InvitationId, UserId};
use heliograph_domain::secret::TokenHash;
use heliograph_domain::time::Timestamp;

record! {
    /// An invitation, without its token.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Invitation {
        /// The invitation's id.
        pub id: InvitationId,
        /// The account.
        pub account: AccountId,
        /// The email address of the invited person, lower-case.
        pub email: String,
        /// The role that the person will have.
        pub role: Role,
        /// The member who invites.
        pub inviter: UserId => invited_by,
        /// The time of the invitation.
        pub created_at: Timestamp,
        /// The time at which the invitation expires.
        pub expires_at: Timestamp,
    }
}

record! {
    /// The key of an invitation.
    struct InvitationKey {
        hash: TokenHash,
    }
}

const INVITATIONS: Table = Table { name: "invitations", key: InvitationKey::COLUMNS };

static INSERT: Sql = Sql::new(|| {
    INVITATIONS.insert_one(&[InvitationKey::COLUMNS, Invitation::COLUMNS].concat(), &[], "")
});

/// Stores an invitation. It replaces an earlier one of the same person to the same account.
pub async fn insert(tx: &mut Conn, invitation: &Invitation, hash: &TokenHash) -> StoreResult<()> {
    let Invitation { account, email, created_at, .. } = invitation;
    let sql = "DELETE FROM invitations WHERE account = $1 AND email = $2 AND expires_at > $3";
    tx.execute(sql, &[account.value(), email.value(), created_at.value()]).await?;
    let mut params = vec![hash.value()];
    invitation.push(&mut params);
    tx.execute(&INSERT, &params).await.map(drop)
}

static LIST: Sql =
    Sql::new(|| INVITATIONS.select_by(columns!(Invitation: account), Invitation::COLUMNS, "id"));

/// Returns the invitations of an account, oldest first.
pub async fn list(conn: &mut Conn, account: AccountId) -> StoreResult<Vec<Invitation>> {
    conn.query(&LIST, &[account.value()], row::record).await
}

static BY_HASH: Sql = Sql::new(|| {
    format!(
        "SELECT {}, a.name FROM invitations i JOIN accounts a ON a.id = i.account WHERE i.hash = $1",
        qualified("i", Invitation::COLUMNS)
    )
});

/// Returns the invitation with this token hash and the account's name.
pub async fn by_hash(
    conn: &mut Conn,
    hash: &TokenHash,
) -> StoreResult<Option<(Invitation, String)>> {
    conn.query_one(&BY_HASH, &[hash.value()], |r| Ok((r.record()?, r.get()?))).await
}

/// Revokes an invitation and returns the invited email address. The row stays until
/// [`delete_expired`], so that the same form, submitted again, does not restore the invitation.
pub async fn revoke(
    tx: &mut Conn,
    account: AccountId,
    id: InvitationId,
) -> StoreResult<Option<String>> {
    let sql = "UPDATE invitations SET expires_at = created_at WHERE account = $1 AND id = $2
        AND expires_at > created_at RETURNING email";
    tx.query_one(sql, &[account.value(), id.value()], row::get).await
}

static CONSUME: Sql = Sql::new(|| {
    format!("{} RETURNING email", INVITATIONS.delete_by(columns!(Invitation: account, id)))
});

/// Uses up an invitation and returns the invited email address.
pub async fn consume(
    tx: &mut Conn,
    account: AccountId,
    id: InvitationId,
) -> StoreResult<Option<String>> {
    tx.query_one(&CONSUME, &[account.value(), id.value()], row::get).await
}

/// Deletes expired invitations.
pub async fn delete_expired(tx: &mut Conn, now: Timestamp) -> StoreResult<u64> {
    tx.execute("DELETE FROM invitations WHERE expires_at <= $1", &[now.value()]).await
}
