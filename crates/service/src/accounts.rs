//! Accounts: opening them and putting money in.

use crate::audit::{self, Actor};
use crate::caller::Caller;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::optouts;
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::id::{AccountId, UserId};
use heliograph_domain::money::Amount;
pub use heliograph_store::accounts::{Account, FirstSteps};
use heliograph_store::ledger::{self, Added, Entry, Kind};
pub use heliograph_store::memberships::Member;
use heliograph_store::{Conn, accounts, memberships};
use uuid::Uuid;

/// Opens an account for the person with this address; `None` when they have one.
///
/// # Errors
/// What keeps the database away.
pub async fn create(
    cx: &Context,
    email: &str,
    currency: &str,
    operator: bool,
) -> Result<Option<AccountId>> {
    let mut tx = cx.db.write().await?;
    let made = open(cx, &mut tx, email, (currency, operator)).await?;
    tx.commit().await?;
    Ok(made.map(|(account, _)| account))
}

/// The same in a transaction that does more, and who the person is.
///
/// # Errors
/// As any write.
pub async fn open(
    cx: &Context,
    tx: &mut Conn,
    email: &str,
    (currency, operator): (&str, bool),
) -> Result<Option<(AccountId, UserId)>> {
    let (user, now) = cx.next_id();
    let user = UserId(user);
    let made = accounts::create(tx, (user, email), currency, operator, now).await?;
    let Some(account) = made else { return Ok(None) };
    optouts::begin(cx, tx, account).await?;
    Ok(Some((account, user)))
}

/// All accounts, the oldest first.
///
/// # Errors
/// What keeps the database away.
pub async fn list(cx: &Context) -> Result<Vec<Account>> {
    let mut conn = cx.db.read().await?;
    Ok(accounts::all(&mut conn).await?)
}

/// Accounts that come after `after`, the oldest first, with the people of each: the operator's view. `part` stands in
/// their name or in the address of one of their people.
///
/// # Errors
/// What keeps the database away.
pub async fn page(
    cx: &Context,
    part: &str,
    after: AccountId,
    limit: i64,
) -> Result<Vec<(Account, Vec<Member>)>> {
    let mut conn = cx.db.read().await?;
    let mut all = Vec::new();
    for account in accounts::page(&mut conn, &part.to_lowercase(), after, limit).await? {
        let people = memberships::of(&mut conn, account.id).await?;
        all.push((account, people));
    }
    Ok(all)
}

/// How far the caller's account has come, in either mode.
///
/// # Errors
/// [`Error::Scope`], or what keeps the database away.
pub async fn first_steps(cx: &Context, caller: &Caller) -> Result<FirstSteps> {
    caller.needs(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    Ok(accounts::first_steps(&mut conn, caller.account).await?)
}

/// The account of the person with this address.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn by_email(cx: &Context, email: &str) -> Result<Account> {
    let mut conn = cx.db.read().await?;
    accounts::by_email(&mut conn, email).await?.ok_or(Error::NotFound)
}

/// What the caller's account has: available, and reserved for messages on their way. A test key has no money, and needs
/// none; it does not see that of the live ones.
///
/// # Errors
/// [`Error::Scope`], or what keeps the database away.
pub async fn balance(cx: &Context, caller: &Caller) -> Result<(Amount, Amount)> {
    caller.needs(Scope::Read)?;
    if caller.mode == Mode::Test {
        return Ok((Amount::ZERO, Amount::ZERO));
    }
    let mut conn = cx.db.read().await?;
    accounts::balance(&mut conn, caller.account).await?.ok_or(Error::NotFound)
}

/// Puts money into an account by hand, or takes it out; the balance never falls below zero.
///
/// # Errors
/// [`Error::InsufficientBalance`] when more would be taken than is available.
pub async fn credit(cx: &Context, account: AccountId, amount: Amount, note: &str) -> Result<()> {
    let (id, _) = cx.next_id();
    let mut tx = cx.db.write().await?;
    add(cx, &mut tx, (account, id), amount, note).await?;
    Ok(tx.commit().await?)
}

async fn add(
    cx: &Context,
    tx: &mut Conn,
    (account, id): (AccountId, Uuid),
    amount: Amount,
    note: &str,
) -> Result<Added> {
    let entry = Entry { id, account, kind: Kind::Credit, amount, note, at: cx.db.now() };
    match ledger::add(tx, &entry).await? {
        Added::Not => Err(Error::InsufficientBalance),
        Added::Other => Err(Error::IdempotencyKeyReused),
        added => Ok(added),
    }
}

/// The same as [`credit`] by an operator in the dashboard: `actor` names the account, and what is asked twice under one
/// `once` is done once.
///
/// # Errors
/// As [`credit`].
pub async fn credit_once(
    cx: &Context,
    actor: &Actor,
    once: Uuid,
    amount: Amount,
    note: &str,
) -> Result<()> {
    let mut tx = cx.db.write().await?;
    if add(cx, &mut tx, (actor.account, once), amount, note).await? == Added::Before {
        return Ok(());
    }
    audit::write(cx, &mut tx, actor, ("credit added", &amount.to_string())).await?;
    Ok(tx.commit().await?)
}
