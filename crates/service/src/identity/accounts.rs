//! Accounts: creating them, and crediting their balance.

use crate::audience::optouts;
use crate::kernel::audit::{self, Actor, AuditAction};
use crate::kernel::caller::Caller;
use crate::kernel::context::Context;
use crate::kernel::error::{Error, Result};
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::{Mode, Role, Scope};
use heliograph_domain::fields::CreditNote;
use heliograph_domain::id::{AccountId, UserId};
use heliograph_domain::money::Amount;
use heliograph_store::Conn;
use heliograph_store::billing::ledger::{self, AddOutcome, LedgerEntry, LedgerKind};
use heliograph_store::identity::accounts;
pub use heliograph_store::identity::accounts::{Account, FirstSteps};
pub use heliograph_store::identity::memberships::Member;
use heliograph_store::identity::memberships::{self, Membership};
use heliograph_store::identity::users::{self, NewUser};
use uuid::Uuid;

/// The email address of the operator whom the first start creates, for trials.
pub const DEMO: &str = "demo@localhost";

/// Returns whether the demo operator should be removed: live carriers are configured, and anybody
/// with a link of the first start, or with the command line's output, could operate them.
#[boxed]
pub async fn has_leftover_demo_operator(cx: &Context) -> Result<bool> {
    if !cx.settings().live_carriers {
        return Ok(false);
    }
    Ok(users::is_operator(&mut cx.db.read().await?, DEMO).await?)
}

/// Makes a person an ordinary user: the operator's pages are no longer shown to them.
///
/// # Errors
/// [`Error::NotFound`] when no operator has this email address.
#[boxed]
pub async fn demote_operator(cx: &Context, email: &str) -> Result<()> {
    let mut tx = cx.db.write().await?;
    if !users::is_operator(&mut tx, email).await? {
        return Err(Error::NotFound);
    }
    users::demote_operator(&mut tx, email).await?;
    Ok(tx.commit().await?)
}

/// Creates an account for the person with this email address; `None` when they have one. The caller
/// vouches for the address, which needs no confirmation.
#[boxed]
pub async fn create(
    cx: &Context,
    email: &str,
    currency: &str,
    operator: bool,
) -> Result<Option<AccountId>> {
    let mut tx = cx.db.write().await?;
    let confirmed = true;
    let new = NewAccount { email, currency, operator, confirmed };
    let made = create_in(cx, &mut tx, new).await?;
    tx.commit().await?;
    Ok(made.map(|(account, _)| account))
}

/// An account to create, and its owner.
#[derive(Clone, Copy)]
pub(crate) struct NewAccount<'a> {
    /// The email address of the owner.
    pub(crate) email: &'a str,
    /// The currency, ISO 4217.
    pub(crate) currency: &'a str,
    /// True if the owner is an operator of the installation.
    pub(crate) operator: bool,
    /// True if the address of the owner needs no confirmation.
    pub(crate) confirmed: bool,
}

/// Creates an account within a transaction and returns it with its owner.
pub(crate) async fn create_in(
    cx: &Context,
    tx: &mut Conn,
    account: NewAccount<'_>,
) -> Result<Option<(AccountId, UserId)>> {
    let NewAccount { email, currency, operator, confirmed } = account;
    let (user, now) = cx.next_id();
    let user = UserId(user);
    let confirmed_at = confirmed.then_some(now);
    let email = email.to_owned();
    let new = NewUser { id: user, email, operator, created_at: now, confirmed_at };
    if !users::insert(tx, &new).await? {
        return Ok(None);
    }
    let account = accounts::insert(tx, &new.email, currency, now).await?;
    memberships::insert(tx, &Membership { user, account, role: Role::Owner }).await?;
    optouts::create_default_lists(cx, tx, account).await?;
    Ok(Some((account, user)))
}

/// Returns all accounts, the oldest first.
#[boxed]
pub async fn list(cx: &Context) -> Result<Vec<Account>> {
    let mut conn = cx.db.read().await?;
    Ok(accounts::all(&mut conn).await?)
}

/// Returns accounts after `after` with their members, the oldest first, for operators. `part`
/// occurs in the account's name or in the email address of a member.
#[boxed]
pub async fn page(
    cx: &Context,
    part: &str,
    after: AccountId,
    limit: i64,
) -> Result<Vec<(Account, Vec<Member>)>> {
    let mut conn = cx.db.read().await?;
    let mut all = Vec::new();
    for account in accounts::search(&mut conn, &part.to_lowercase(), after, limit).await? {
        let people = memberships::list(&mut conn, account.id).await?;
        all.push((account, people));
    }
    Ok(all)
}

/// Returns which first steps the caller's account has completed, in either mode.
#[boxed]
pub async fn first_steps(cx: &Context, caller: &Caller) -> Result<FirstSteps> {
    caller.require_scope(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    Ok(accounts::first_steps(&mut conn, caller.account).await?)
}

/// Returns the account of the user with this email address.
#[boxed]
pub async fn by_email(cx: &Context, email: &str) -> Result<Account> {
    let mut conn = cx.db.read().await?;
    accounts::by_email(&mut conn, email).await?.ok_or(Error::NotFound)
}

/// Returns the available and the reserved balance of the caller's account. In test mode both are
/// zero: test messages are free, and a test key does not see live balances.
#[boxed]
pub async fn balance(cx: &Context, caller: &Caller) -> Result<(Amount, Amount)> {
    caller.require_scope(Scope::Read)?;
    if caller.mode == Mode::Test {
        return Ok((Amount::ZERO, Amount::ZERO));
    }
    let mut conn = cx.db.read().await?;
    accounts::balance(&mut conn, caller.account).await?.ok_or(Error::NotFound)
}

/// Credits an account manually, or debits it with a negative amount; the balance never falls below
/// zero.
///
/// # Errors
/// [`Error::InsufficientBalance`] when less is available than debited.
#[boxed]
pub async fn credit(
    cx: &Context,
    account: AccountId,
    amount: Amount,
    note: &CreditNote,
) -> Result<()> {
    let (id, at) = cx.next_id();
    let (kind, note) = (LedgerKind::Credit, note.as_str().to_owned());
    let entry = LedgerEntry { account, id, kind, amount, note, at };
    let mut tx = cx.db.write().await?;
    add(&mut tx, &entry).await?;
    Ok(tx.commit().await?)
}

async fn add(tx: &mut Conn, entry: &LedgerEntry) -> Result<AddOutcome> {
    match ledger::add(tx, entry).await? {
        AddOutcome::InsufficientBalance => Err(Error::InsufficientBalance),
        AddOutcome::IdConflict => Err(Error::IdempotencyKeyReused),
        added => Ok(added),
    }
}

/// Does the same as [`credit`] for an operator in the dashboard: `actor` names the account, and
/// repeated requests with the same `once` credit it once (idempotency).
///
/// # Errors
/// Those of [`credit`], and [`Error::IdempotencyKeyReused`].
#[boxed]
pub async fn credit_once(
    cx: &Context,
    actor: &Actor,
    once: Uuid,
    amount: Amount,
    note: &CreditNote,
) -> Result<()> {
    let account = actor.account;
    let at = cx.db.now();
    let (kind, note) = (LedgerKind::Credit, note.as_str().to_owned());
    let entry = LedgerEntry { account, id: once, kind, amount, note, at };
    let mut tx = cx.db.write().await?;
    if add(&mut tx, &entry).await? == AddOutcome::AlreadyAdded {
        return Ok(());
    }
    audit::record(cx, &mut tx, actor, AuditAction::CreditAdded, &amount.to_string()).await?;
    Ok(tx.commit().await?)
}
