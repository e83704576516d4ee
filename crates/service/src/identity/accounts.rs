//! Accounts: creating them, and crediting their balance.

use crate::audience::optouts;
use crate::kernel::audit::{self, Actor, AuditAction};
use crate::kernel::caller::Caller;
use crate::kernel::context::Context;
use crate::kernel::error::{ConflictReason, Error, Result, UserAccount};
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::{Mode, Role, Scope, Scopes};
use heliograph_domain::account_ref::AccountRef;
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
use std::collections::HashMap;
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
    Ok(users::is_operator_by_email(&mut cx.db.read().await?, DEMO).await?)
}

/// Makes a person an ordinary user: the operator's pages are no longer shown to them.
///
/// # Errors
/// [`Error::NotFound`] when no operator has this email address.
#[boxed]
pub async fn demote_operator(cx: &Context, email: &str) -> Result<()> {
    let mut tx = cx.db.write().await?;
    if !users::is_operator_by_email(&mut tx, email).await? {
        return Err(Error::NotFound);
    }
    users::demote_operator(&mut tx, email).await?;
    Ok(tx.commit().await?)
}

/// Creates an account for the person with this email address; `None` when they own one. A person
/// who was removed from their accounts gets a new one. The caller vouches for
/// the address, which needs no confirmation.
#[boxed]
pub async fn create(
    cx: &Context,
    email: &str,
    currency: &str,
    operator: bool,
) -> Result<Option<AccountId>> {
    let mut tx = cx.db.write().await?;
    let account = match accounts::user_by_email(&mut tx, email).await? {
        None => {
            let new = NewAccount { email, currency, operator, confirmed: true };
            create_in(cx, &mut tx, new).await?.map(|(made, _)| made)
        }
        Some(user) if owned_accounts(&mut tx, user).await?.is_empty() => {
            if operator {
                users::set_operator(&mut tx, user).await?;
            }
            Some(open(cx, &mut tx, user, email, currency).await?)
        }
        Some(_) => None,
    };
    if let Some(account) = account {
        let by = Actor::operator(account);
        audit::record(cx, &mut tx, &by, AuditAction::AccountOpened, email).await?;
    }
    tx.commit().await?;
    Ok(account)
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

/// Returns the accounts that a user owns.
async fn owned_accounts(conn: &mut Conn, user: UserId) -> Result<Vec<AccountId>> {
    let all = accounts::list_for_user(conn, user).await?;
    let owned = all.into_iter().filter(|(.., role)| *role == Role::Owner);
    Ok(owned.map(|(id, ..)| id).collect())
}

/// Creates an account within a transaction and returns it with its owner, who is a new user; `None`
/// when the email address is taken.
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
    Ok(Some((open(cx, tx, user, &new.email, currency).await?, user)))
}

/// Creates an account with its first owner.
async fn open(
    cx: &Context,
    tx: &mut Conn,
    user: UserId,
    name: &str,
    currency: &str,
) -> Result<AccountId> {
    let account = accounts::insert(tx, name, currency, cx.db.now()).await?;
    memberships::insert(tx, &Membership { user, account, role: Role::Owner }).await?;
    optouts::create_default_lists(cx, tx, account).await?;
    Ok(account)
}

/// Returns all accounts, the oldest first.
#[boxed]
pub async fn list(cx: &Context) -> Result<Vec<Account>> {
    let mut conn = cx.db.read().await?;
    Ok(accounts::all(&mut conn).await?)
}

/// Returns all accounts with the email addresses of their owners, the oldest first.
#[boxed]
pub async fn list_with_owners(cx: &Context) -> Result<Vec<(Account, Vec<String>)>> {
    let mut conn = cx.db.read().await?;
    let mut owners: HashMap<AccountId, Vec<String>> = HashMap::new();
    for (account, owner) in memberships::owners(&mut conn).await? {
        owners.entry(account).or_default().push(owner);
    }
    let with_owners = |account: Account| {
        let owners = owners.remove(&account.id).unwrap_or_default();
        (account, owners)
    };
    Ok(accounts::all(&mut conn).await?.into_iter().map(with_owners).collect())
}

/// Returns accounts after `after` with their members, the oldest first, for operators. `part` is the
/// account's ID, or occurs in its name or in the email address of a member.
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

/// Returns the account that an operator named.
///
/// # Errors
/// [`Error::NotFound`] when there is no such account or person;
/// [`ConflictReason::AmbiguousAccount`] when the person does not own exactly one account. A role
/// that others gave the person never counts, because an invitation would redirect money, API keys
/// and messages.
#[boxed]
pub async fn resolve(cx: &Context, name: &AccountRef) -> Result<Account> {
    let mut conn = cx.db.read().await?;
    let id = match name {
        AccountRef::Id(id) => *id,
        AccountRef::Owner(email) => {
            let user = accounts::user_by_email(&mut conn, email).await?.ok_or(Error::NotFound)?;
            match owned_accounts(&mut conn, user).await?.as_slice() {
                [one] => *one,
                _ => {
                    let all = accounts::list_for_user(&mut conn, user).await?;
                    let all =
                        all.into_iter().map(|(id, name, role)| UserAccount { id, name, role });
                    return Err(Error::Conflict(ConflictReason::AmbiguousAccount(all.collect())));
                }
            }
        }
    };
    accounts::by_id(&mut conn, id).await?.ok_or(Error::NotFound)
}

/// Returns the operator at the command line as a caller with all permissions in an account.
#[boxed]
pub async fn operator_caller(cx: &Context, account: &Account, mode: Mode) -> Result<Caller> {
    let mut conn = cx.db.read().await?;
    let list = heliograph_store::audience::optouts::default_list(&mut conn, (account.id, mode));
    Ok(Caller {
        account: account.id,
        mode,
        scopes: Scopes::ALL,
        key: None,
        user: None,
        currency: account.currency.clone(),
        optout_list: list.await?.ok_or(Error::NotFound)?.id,
    })
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

/// The largest amount of one credit or debit, a million: more is a typing error.
pub const MAX_CREDIT: Amount = Amount(1_000_000_000_000);

/// Credits an account manually, or debits it with a negative amount; the balance never falls below
/// zero. `actor` names the account.
///
/// # Errors
/// [`Error::InsufficientBalance`] when less is available than debited.
#[boxed]
pub async fn credit(cx: &Context, actor: &Actor, amount: Amount, note: &CreditNote) -> Result<()> {
    credit_once(cx, actor, cx.next_id().0, amount, note).await
}

async fn add(tx: &mut Conn, entry: &LedgerEntry) -> Result<AddOutcome> {
    match ledger::add(tx, entry).await? {
        AddOutcome::InsufficientBalance => Err(Error::InsufficientBalance),
        AddOutcome::IdConflict => Err(Error::IdempotencyKeyReused),
        added => Ok(added),
    }
}

/// Does the same as [`credit`]; repeated requests with the same `once` credit the account once
/// (idempotency).
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
