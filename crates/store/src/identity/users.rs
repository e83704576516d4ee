//! Users and their credentials.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row::{self, Row};
use crate::db::sealing::{Place, Sealer};
use crate::db::table::{Sql, Table};
use crate::error::{StoreError, StoreResult};
use heliograph_domain::id::UserId;
use heliograph_domain::time::Timestamp;
use heliograph_domain::totp::TotpSecret;

/// A user.
#[derive(Clone, Debug)]
pub struct User {
    /// The user's id.
    pub id: UserId,
    /// The email address, lower-case.
    pub email: String,
    /// The hash of the password.
    pub password_hash: Option<String>,
    /// The TOTP secret, also while its set-up is not confirmed.
    pub totp: Option<UserTotp>,
}

/// The TOTP secret of a user.
#[derive(Clone, Debug)]
pub struct UserTotp {
    /// The secret that the authenticator app has too.
    pub secret: TotpSecret,
    /// The last time step that was used; `None` until the first code confirms the secret.
    pub step: Option<i64>,
}

impl User {
    /// Returns the TOTP secret when two-factor authentication is enabled.
    pub fn two_factor(&self) -> Option<&UserTotp> {
        self.totp.as_ref().filter(|t| t.step.is_some())
    }
}

record! {
    /// The columns of `users` that make a [`User`]. The TOTP secret is sealed.
    struct UserRow {
        id: UserId,
        email: String,
        password_hash: Option<String>,
        totp_secret: Option<String>,
        totp_step: Option<i64>,
    }
}

impl UserRow {
    fn open(self, sealer: &Sealer) -> StoreResult<User> {
        let Self { id, email, password_hash, totp_secret, totp_step: step } = self;
        let totp = |sealed: String| {
            let text = sealer.open(Place("users", &id.0), &sealed)?;
            let secret =
                TotpSecret::parse(&text).ok_or_else(|| StoreError::corrupt("bad TOTP secret"))?;
            Ok(UserTotp { secret, step })
        };
        let totp = totp_secret.map(totp).transpose()?;
        Ok(User { id, email, password_hash, totp })
    }
}

const USERS: Table = Table { name: "users", key: columns!(UserRow: id) };

static BY_EMAIL: Sql = Sql::new(|| USERS.select_by(columns!(UserRow: email), UserRow::COLUMNS, ""));

/// Returns the user with this email address.
pub async fn by_email(conn: &mut Conn, email: &str) -> StoreResult<Option<User>> {
    let sealer = conn.sealer()?;
    let open = |r: &mut Row<'_>| r.record::<UserRow>()?.open(&sealer);
    conn.query_one(&BY_EMAIL, &[email.into()], open).await
}

static BY_ID: Sql = Sql::new(|| USERS.select_one(UserRow::COLUMNS));

/// Returns the user with this id.
pub async fn by_id(conn: &mut Conn, id: UserId) -> StoreResult<Option<User>> {
    let sealer = conn.sealer()?;
    let open = |r: &mut Row<'_>| r.record::<UserRow>()?.open(&sealer);
    conn.query_one(&BY_ID, &[id.value()], open).await
}

record! {
    /// A user who is created.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct NewUser {
        /// The user's id.
        pub id: UserId,
        /// The email address, lower-case.
        pub email: String,
        /// True if the user is an operator of the installation.
        pub operator: bool,
        /// The time at which the user is created.
        pub created_at: Timestamp,
    }
}

static INSERT: Sql =
    Sql::new(|| USERS.insert_one(NewUser::COLUMNS, &[], "ON CONFLICT (email) DO NOTHING"));

/// Creates a user. False when the email address is taken.
pub async fn insert(tx: &mut Conn, new: &NewUser) -> StoreResult<bool> {
    Ok(tx.execute(&INSERT, &new.values()).await? > 0)
}

/// Returns whether a user is an operator of the installation.
pub async fn is_operator(conn: &mut Conn, id: UserId) -> StoreResult<bool> {
    let sql = "SELECT operator FROM users WHERE id = $1";
    Ok(conn.query_one(sql, &[id.value()], row::get).await?.unwrap_or(false))
}

/// Makes a user an operator of the installation.
pub async fn set_operator(tx: &mut Conn, id: UserId) -> StoreResult<()> {
    tx.execute("UPDATE users SET operator = 1 WHERE id = $1", &[id.value()]).await.map(drop)
}

static SET_PASSWORD: Sql = Sql::new(|| USERS.update_one(columns!(UserRow: password_hash)));

/// Stores the hash of a new password.
pub async fn set_password(tx: &mut Conn, id: UserId, hash: &str) -> StoreResult<()> {
    tx.execute(&SET_PASSWORD, &[id.value(), hash.into()]).await.map(drop)
}

/// Stores a TOTP secret, which takes effect when a code confirms it. False when two-factor
/// authentication is enabled already.
pub async fn set_totp_secret(tx: &mut Conn, id: UserId, secret: &TotpSecret) -> StoreResult<bool> {
    let sealed = tx.sealer()?.seal(Place("users", &id.0), &secret.reveal())?;
    let sql = "UPDATE users SET totp_secret = $2 WHERE id = $1 AND totp_step IS NULL";
    Ok(tx.execute(sql, &[id.value(), sealed.value()]).await? > 0)
}

/// Uses up a time step. False when this step or a later one was used before.
pub async fn use_totp_step(tx: &mut Conn, id: UserId, step: i64) -> StoreResult<bool> {
    let sql = "UPDATE users SET totp_step = $2
        WHERE id = $1 AND totp_secret IS NOT NULL AND (totp_step IS NULL OR totp_step < $2)";
    Ok(tx.execute(sql, &[id.value(), step.into()]).await? > 0)
}

/// Disables two-factor authentication.
pub async fn clear_totp(tx: &mut Conn, id: UserId) -> StoreResult<()> {
    let sql = "UPDATE users SET totp_secret = NULL, totp_step = NULL WHERE id = $1";
    tx.execute(sql, &[id.value()]).await.map(drop)
}
