//! Users and their credentials.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::record::{Record, columns, record};
use crate::db::row::{self, Row};
use crate::db::sealing::{Place, Sealer};
use crate::db::table::{Sql, Table};
use crate::error::{StoreError, StoreResult};
use heliograph_domain::id::{SessionId, UserId};
use heliograph_domain::time::Timestamp;
use heliograph_domain::totp::TotpSecret;

/// A user.
#[derive(Clone, Debug)]
pub struct User {
    /// The user's id.
    pub id: UserId,
    /// The email address, lower-case.
    pub email: String,
    /// The time at which the person proved that they read the mail of the address.
    pub confirmed_at: Option<Timestamp>,
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
    /// The session that began the set-up, and when it did.
    pub begun: Option<(SessionId, Timestamp)>,
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
        confirmed_at: Option<Timestamp>,
        password_hash: Option<String>,
        totp_secret: Option<String>,
        totp_step: Option<i64>,
        totp_session: Option<SessionId>,
        totp_begun_at: Option<Timestamp>,
    }
}

impl UserRow {
    fn open(self, sealer: &Sealer) -> StoreResult<User> {
        let Self { id, email, confirmed_at, password_hash, totp_secret, .. } = self;
        let (step, begun) = (self.totp_step, self.totp_session.zip(self.totp_begun_at));
        let totp = |sealed: String| {
            let text = sealer.open(Place("users", &id.0), &sealed)?;
            let secret =
                TotpSecret::parse(&text).ok_or_else(|| StoreError::corrupt("bad TOTP secret"))?;
            Ok(UserTotp { secret, step, begun })
        };
        let totp = totp_secret.map(totp).transpose()?;
        Ok(User { id, email, confirmed_at, password_hash, totp })
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
        /// The time at which the address was confirmed, if it needs no confirmation.
        pub confirmed_at: Option<Timestamp>,
    }
}

static INSERT: Sql =
    Sql::new(|| USERS.insert_one(NewUser::COLUMNS, &[], "ON CONFLICT (email) DO NOTHING"));

/// Creates a user. False when the email address is taken.
pub async fn insert(tx: &mut Conn, new: &NewUser) -> StoreResult<bool> {
    Ok(tx.execute(&INSERT, &new.values()).await? > 0)
}

/// Returns whether the user with this email address is an operator.
pub async fn is_operator_by_email(conn: &mut Conn, email: &str) -> StoreResult<bool> {
    let sql = "SELECT operator FROM users WHERE email = $1";
    Ok(conn.query_one(sql, &[email.into()], row::get).await?.unwrap_or(false))
}

/// Makes an operator an ordinary user.
pub async fn demote_operator(tx: &mut Conn, email: &str) -> StoreResult<()> {
    tx.execute("UPDATE users SET operator = 0 WHERE email = $1", &[email.into()]).await.map(drop)
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

/// Marks the address of a user as confirmed. False when it was confirmed before.
pub async fn confirm(tx: &mut Conn, id: UserId, at: Timestamp) -> StoreResult<bool> {
    let sql = "UPDATE users SET confirmed_at = $2 WHERE id = $1 AND confirmed_at IS NULL";
    Ok(tx.execute(sql, &[id.value(), at.value()]).await? > 0)
}

/// Stores a TOTP secret, which takes effect when a code confirms it in the session that began the
/// set-up. False when two-factor authentication is enabled already.
pub async fn set_totp_secret(
    tx: &mut Conn,
    id: UserId,
    secret: &TotpSecret,
    (session, at): (SessionId, Timestamp),
) -> StoreResult<bool> {
    let sealed = tx.sealer()?.seal(Place("users", &id.0), &secret.reveal())?;
    let sql = "UPDATE users SET totp_secret = $2, totp_session = $3, totp_begun_at = $4
        WHERE id = $1 AND totp_step IS NULL";
    let params = [id.value(), sealed.value(), session.value(), at.value()];
    Ok(tx.execute(sql, &params).await? > 0)
}

/// Drops a TOTP secret that no code has confirmed.
pub async fn drop_pending_totp(tx: &mut Conn, id: UserId) -> StoreResult<()> {
    let sql = "UPDATE users SET totp_secret = NULL, totp_session = NULL, totp_begun_at = NULL
        WHERE id = $1 AND totp_step IS NULL";
    tx.execute(sql, &[id.value()]).await.map(drop)
}

/// Uses up a time step. False when this step or a later one was used before.
pub async fn use_totp_step(tx: &mut Conn, id: UserId, step: i64) -> StoreResult<bool> {
    let sql = "UPDATE users SET totp_step = $2
        WHERE id = $1 AND totp_secret IS NOT NULL AND (totp_step IS NULL OR totp_step < $2)";
    Ok(tx.execute(sql, &[id.value(), step.into()]).await? > 0)
}

/// Disables two-factor authentication.
pub async fn clear_totp(tx: &mut Conn, id: UserId) -> StoreResult<()> {
    let sql = "UPDATE users SET totp_secret = NULL, totp_step = NULL, totp_session = NULL,
        totp_begun_at = NULL, code_failures = 0, codes_after = NULL WHERE id = $1";
    tx.execute(sql, &[id.value()]).await.map(drop)
}

/// Counts a try at a two-factor code, and returns the number of tries since the last right code.
/// `None` when no try is allowed yet.
pub async fn count_code_try(tx: &mut Conn, id: UserId, now: Timestamp) -> StoreResult<Option<i64>> {
    let sql = "UPDATE users SET code_failures = code_failures + 1
        WHERE id = $1 AND coalesce(codes_after, 0) <= $2 RETURNING code_failures";
    tx.query_one(sql, &[id.value(), now.value()], row::get).await
}

/// Returns the time before which no two-factor code of the user is accepted.
pub async fn codes_after(conn: &mut Conn, id: UserId) -> StoreResult<Option<Timestamp>> {
    let sql = "SELECT codes_after FROM users WHERE id = $1";
    Ok(conn.query_one(sql, &[id.value()], row::get).await?.flatten())
}

/// Accepts no two-factor code of the user before `until`; `None` lifts the delay.
pub async fn delay_codes(tx: &mut Conn, id: UserId, until: Option<Timestamp>) -> StoreResult<()> {
    let sql = "UPDATE users SET codes_after = $2 WHERE id = $1";
    tx.execute(sql, &[id.value(), until.value()]).await.map(drop)
}

/// Forgets the tries at two-factor codes, after a right one.
pub async fn forget_code_tries(tx: &mut Conn, id: UserId) -> StoreResult<()> {
    let sql = "UPDATE users SET code_failures = 0, codes_after = NULL WHERE id = $1";
    tx.execute(sql, &[id.value()]).await.map(drop)
}
