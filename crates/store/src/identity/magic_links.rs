//! Magic links: links that work once, to sign in, to reset a password, or to enter the second
//! factor.

use crate::db::Conn;
use crate::db::field::{Field, codes};
use crate::db::record::{Record, columns, record};
use crate::db::row;
use crate::db::table::{Sql, Table, names};
use crate::error::StoreResult;
use heliograph_domain::id::UserId;
use heliograph_domain::secret::TokenHash;
use heliograph_domain::time::Timestamp;

/// The purpose of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MagicLinkKind {
    /// Sign in.
    SignIn,
    /// Set a new password.
    PasswordReset,
    /// Enter the second factor, after the password was right.
    TwoFactor,
}

codes! { "kind of link": MagicLinkKind; }

impl MagicLinkKind {
    const fn code(self) -> i16 {
        match self {
            Self::SignIn => 0,
            Self::PasswordReset => 1,
            Self::TwoFactor => 2,
        }
    }

    const fn from_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::SignIn),
            1 => Some(Self::PasswordReset),
            2 => Some(Self::TwoFactor),
            _ => None,
        }
    }
}

record! {
    /// A link, without its token.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct MagicLink {
        /// The user.
        pub user: UserId => user_id,
        /// The purpose.
        pub kind: MagicLinkKind,
        /// The time at which the link was created.
        pub created_at: Timestamp,
        /// The time at which the link expires.
        pub expires_at: Timestamp,
        /// True if an operator created the link for somebody else.
        pub by_operator: bool,
    }
}

record! {
    /// The key of a link.
    struct MagicLinkKey {
        hash: TokenHash,
    }
}

const MAGIC_LINKS: Table = Table { name: "magic_links", key: MagicLinkKey::COLUMNS };

static INSERT: Sql = Sql::new(|| {
    MAGIC_LINKS.insert_one(&[MagicLinkKey::COLUMNS, MagicLink::COLUMNS].concat(), &[], "")
});

/// Stores a link.
pub async fn insert(tx: &mut Conn, link: &MagicLink, hash: &TokenHash) -> StoreResult<()> {
    let mut params = vec![hash.value()];
    link.push(&mut params);
    tx.execute(&INSERT, &params).await.map(drop)
}

static BY_HASH: Sql = Sql::new(|| MAGIC_LINKS.select_one(MagicLink::COLUMNS));

/// Returns the link with this token hash.
pub async fn by_hash(conn: &mut Conn, hash: &TokenHash) -> StoreResult<Option<MagicLink>> {
    conn.query_one(&BY_HASH, &[hash.value()], row::record).await
}

static TAKE: Sql =
    Sql::new(|| format!("{} RETURNING {}", MAGIC_LINKS.delete_one(), names(MagicLink::COLUMNS)));

/// Uses up a link and returns it. `None` when the link does not exist or was used before.
pub async fn take(tx: &mut Conn, hash: &TokenHash) -> StoreResult<Option<MagicLink>> {
    tx.query_one(&TAKE, &[hash.value()], row::record).await
}

static DELETE_FOR_USER: Sql =
    Sql::new(|| MAGIC_LINKS.delete_by(columns!(MagicLink: user => user_id)));

/// Deletes all links of a user: after one was used, or the password changed.
pub async fn delete_for_user(tx: &mut Conn, user: UserId) -> StoreResult<u64> {
    tx.execute(&DELETE_FOR_USER, &[user.value()]).await
}

/// Deletes expired links.
pub async fn delete_expired(tx: &mut Conn, now: Timestamp) -> StoreResult<u64> {
    tx.execute("DELETE FROM magic_links WHERE expires_at <= $1", &[now.value()]).await
}
