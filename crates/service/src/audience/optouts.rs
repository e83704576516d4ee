//! Opt-out lists: recipients who must not be written to, and how numbers are added and removed.

use crate::kernel::account_limits;
use crate::kernel::audit::{self, Actor, AuditAction};
use crate::kernel::caller::Caller;
use crate::kernel::context::Context;
use crate::kernel::error::{ConflictReason, Error, Result};
use crate::kernel::idempotency::{IdempotentOutcome, IdempotentRequest, OPTOUT_NUMBERS};
use async_recursion::async_recursion as boxed;
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::fields::{ListName, Note};
use heliograph_domain::id::{AccountId, OptoutListId};
use heliograph_domain::message::Message;
use heliograph_domain::optout::{DEFAULT_LIST, Optout, OptoutList, OptoutSource};
use heliograph_domain::phone::Recipient;
use heliograph_store::Conn;
use heliograph_store::audience::optouts;
use std::collections::HashSet;
use std::sync::Arc;

/// The largest number of lists of an account in one mode.
const MOST: i64 = 1_000;
/// The number of numbers that one transaction adds.
pub const BATCH: usize = 1_000;

/// A recipient on an opt-out list.
pub type ListEntry = (OptoutListId, Recipient);

/// Returns the list entry that forbids a message; `None` when it enforces no list.
pub fn enforced_entry(message: &Message) -> Option<ListEntry> {
    Some((OptoutListId(message.optout_list?), message.recipient))
}

/// Returns the ids of the messages whose recipient is on the list that they enforce.
pub async fn find_opted_out<'a>(
    tx: &mut Conn,
    messages: impl Iterator<Item = &'a Message>,
) -> heliograph_store::StoreResult<HashSet<uuid::Uuid>> {
    let all: Vec<_> = messages.filter_map(|m| Some((m.id.0, enforced_entry(m)?))).collect();
    let pairs: Vec<ListEntry> = all.iter().map(|(_, pair)| *pair).collect();
    let listed: HashSet<ListEntry> =
        tx.query_many(optouts::listed(&pairs)).await?.into_iter().collect();
    Ok(all.into_iter().filter(|(_, pair)| listed.contains(pair)).map(|(id, _)| id).collect())
}

/// Returns the same as [`find_opted_out`], read afresh, for messages on their way to a carrier.
#[boxed]
pub async fn opted_out(
    cx: &Context,
    messages: &[Arc<Message>],
) -> heliograph_store::StoreResult<HashSet<uuid::Uuid>> {
    let mut conn = cx.db.read().await?;
    find_opted_out(&mut conn, messages.iter().map(|m| &**m)).await
}

/// Creates the lists of a new account: the default one in each mode.
#[boxed]
pub async fn create_default_lists(
    cx: &Context,
    tx: &mut Conn,
    account: AccountId,
) -> heliograph_store::StoreResult<()> {
    for mode in [Mode::Live, Mode::Test] {
        let (id, created_at) = cx.next_id();
        let id = OptoutListId(id);
        let name = DEFAULT_LIST.to_owned();
        let list = OptoutList { id, account, mode, name, standard: true, created_at };
        optouts::create_list(tx, &list).await?;
    }
    Ok(())
}

/// A reference to one of the caller's lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptoutListRef {
    /// The default list.
    Default,
    /// The list with this id.
    Id(OptoutListId),
}

/// Returns the caller's lists after `after`, the oldest first.
#[boxed]
pub async fn lists(
    cx: &Context,
    caller: &Caller,
    after: OptoutListId,
    limit: i64,
) -> Result<Vec<OptoutList>> {
    caller.require_scope(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    Ok(optouts::lists(&mut conn, (caller.account, caller.mode), after, limit).await?)
}

/// Returns one of the caller's lists.
#[boxed]
pub async fn list(cx: &Context, caller: &Caller, which: OptoutListRef) -> Result<OptoutList> {
    caller.require_scope(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    find(&mut conn, caller, which).await
}

async fn find(conn: &mut Conn, caller: &Caller, which: OptoutListRef) -> Result<OptoutList> {
    let whose = (caller.account, caller.mode);
    let found = match which {
        OptoutListRef::Default => optouts::default_list(conn, whose).await?,
        OptoutListRef::Id(id) => optouts::get_list(conn, whose, id).await?,
    };
    found.ok_or(Error::NotFound)
}

/// Creates a list.
///
/// # Errors
/// [`Error::Conflict`] when there are too many, or one of this name.
pub async fn create_list(
    cx: &Context,
    caller: &Caller,
    name: ListName,
    asked: IdempotentRequest<'_, OptoutList>,
) -> Result<IdempotentOutcome<OptoutList>> {
    caller.require_scope(Scope::Manage)?;
    if let Some(answer) = asked.stored_answer(cx).await? {
        return Ok(IdempotentOutcome::Replayed(answer));
    }
    let (id, created_at) = cx.next_id();
    let account = caller.account;
    let mode = caller.mode;
    let name = name.into_string();
    let standard = false;
    let list = OptoutList { id: OptoutListId(id), account, mode, name, standard, created_at };
    let mut tx = cx.db.write().await?;
    optouts::lock_lists(&mut tx, (account, mode)).await?;
    let none = OptoutListId(uuid::Uuid::nil());
    let there = optouts::lists(&mut tx, (account, mode), none, MOST).await?;
    if i64::try_from(there.len()).is_ok_and(|n| n >= MOST) {
        return Err(Error::Conflict(ConflictReason::OptoutListLimit(MOST)));
    }
    if !optouts::create_list(&mut tx, &list).await? {
        drop(tx);
        // Another request with the same idempotency key may just have created it.
        return match asked.stored_answer(cx).await? {
            Some(answer) => Ok(IdempotentOutcome::Replayed(answer)),
            None => Err(Error::Conflict(ConflictReason::OptoutListExists)),
        };
    }
    if !asked.save(cx, &mut tx, id, &list).await? {
        drop(tx);
        return asked.concurrent_answer(cx).await;
    }
    tx.commit().await?;
    Ok(IdempotentOutcome::Fresh(list))
}

/// Renames a list.
///
/// # Errors
/// [`Error::Conflict`] for the default list, and for the name of another list.
#[boxed]
pub async fn rename_list(
    cx: &Context,
    caller: &Caller,
    which: OptoutListRef,
    name: ListName,
) -> Result<OptoutList> {
    caller.require_scope(Scope::Manage)?;
    let mut tx = cx.db.write().await?;
    optouts::lock_lists(&mut tx, (caller.account, caller.mode)).await?;
    let list = find(&mut tx, caller, which).await?;
    if list.standard {
        return Err(Error::Conflict(ConflictReason::DefaultOptoutListName));
    }
    if !optouts::rename_list(&mut tx, &list, name.as_str()).await? {
        return Err(Error::Conflict(ConflictReason::OptoutListExists));
    }
    tx.commit().await?;
    Ok(OptoutList { name: name.into_string(), ..list })
}

/// Removes a list with all its numbers. `by` is the member who does it in the dashboard.
///
/// # Errors
/// [`Error::Conflict`] for the default list, which an account always has.
#[boxed]
pub async fn remove_list(
    cx: &Context,
    caller: &Caller,
    which: OptoutListRef,
    by: Option<&Actor>,
) -> Result<()> {
    caller.require_scope(Scope::Manage)?;
    let mut tx = cx.db.write().await?;
    let list = find(&mut tx, caller, which).await?;
    if !optouts::delete_list(&mut tx, caller.account, list.id).await? {
        return Err(Error::Conflict(ConflictReason::DefaultOptoutList));
    }
    if let Some(actor) = by {
        audit::record(cx, &mut tx, actor, AuditAction::OptoutListRemoved, &list.name).await?;
    }
    Ok(tx.commit().await?)
}

/// Returns the numbers on a list above `after`, in ascending order.
#[boxed]
pub async fn numbers(
    cx: &Context,
    caller: &Caller,
    which: OptoutListRef,
    after: Recipient,
    limit: i64,
) -> Result<Vec<Optout>> {
    caller.require_scope(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let list = find(&mut conn, caller, which).await?;
    Ok(optouts::list_numbers(&mut conn, list.id, after, limit).await?)
}

/// Returns a number on a list.
#[boxed]
pub async fn number(
    cx: &Context,
    caller: &Caller,
    which: OptoutListRef,
    number: Recipient,
) -> Result<Optout> {
    caller.require_scope(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let list = find(&mut conn, caller, which).await?;
    optouts::find(&mut conn, list.id, number).await?.ok_or(Error::NotFound)
}

/// A number to add to a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewOptout {
    /// The number.
    pub number: Recipient,
    /// The note of the person who adds it.
    pub note: Option<Note>,
}

/// Adds a number to a list; returns the entry and whether it is new. An existing entry keeps its
/// evidence.
pub async fn add(
    cx: &Context,
    caller: &Caller,
    which: OptoutListRef,
    new: NewOptout,
    asked: IdempotentRequest<'_, (Optout, bool)>,
) -> Result<IdempotentOutcome<(Optout, bool)>> {
    caller.require_scope(Scope::Manage)?;
    if let Some(answer) = asked.stored_answer(cx).await? {
        return Ok(IdempotentOutcome::Replayed(answer));
    }
    account_limits::require_row_room(&cx.db, &cx.limits, caller.account, 1).await?;
    let mut tx = cx.db.write().await?;
    let list = find(&mut tx, caller, which).await?.id;
    let NewOptout { number, note } = new;
    let optout = Optout {
        number,
        source: OptoutSource::Api,
        message: None,
        originator: None,
        note: note.map(Note::into_string),
        at: cx.db.now(),
    };
    let new = !optouts::add(&mut tx, &[(list, &optout)]).await?.is_empty();
    let there = if new { Some(optout) } else { optouts::find(&mut tx, list, number).await? };
    let done = (there.ok_or(Error::NotFound)?, new);
    if !asked.save(cx, &mut tx, list.0, &done).await? {
        drop(tx);
        return asked.concurrent_answer(cx).await;
    }
    tx.commit().await?;
    cx.limits.count_rows(caller.account, usize::from(new));
    Ok(IdempotentOutcome::Fresh(done))
}

/// Adds a number to a list as [`add`] does, without idempotency; returns whether it is new.
#[boxed]
pub async fn add_one(
    cx: &Context,
    caller: &Caller,
    which: OptoutListRef,
    new: NewOptout,
) -> Result<bool> {
    let keep = |_: &(Optout, bool)| String::new();
    let asked = IdempotentRequest::new(caller, OPTOUT_NUMBERS, "", None, &keep);
    match add(cx, caller, which, new, asked).await? {
        IdempotentOutcome::Fresh((_, is_new)) => Ok(is_new),
        IdempotentOutcome::Replayed(_) => Ok(false),
    }
}

/// Numbers to import.
#[derive(Clone, Debug)]
pub struct OptoutImport<'a> {
    /// The numbers, each with a note.
    pub numbers: Vec<(Recipient, Option<Note>)>,
    /// The member who imports them in the dashboard.
    pub by: Option<&'a Actor>,
}

/// Adds imported numbers to a list; returns how many are new. Existing entries
/// keep their evidence.
pub async fn import(
    cx: &Context,
    caller: &Caller,
    which: OptoutListRef,
    import: OptoutImport<'_>,
    asked: IdempotentRequest<'_, usize>,
) -> Result<IdempotentOutcome<usize>> {
    caller.require_scope(Scope::Manage)?;
    if let Some(answer) = asked.stored_answer(cx).await? {
        return Ok(IdempotentOutcome::Replayed(answer));
    }
    // The list must exist even when there is nothing to add.
    let made = find(&mut cx.db.read().await?, caller, which).await?;
    account_limits::require_row_room(&cx.db, &cx.limits, caller.account, import.numbers.len())
        .await?;
    let mut added = 0;
    for batch in import.numbers.chunks(BATCH) {
        let mut tx = cx.db.write().await?;
        let list = find(&mut tx, caller, which).await?.id;
        let at = cx.db.now();
        let row = |(number, note): &(Recipient, Option<Note>)| Optout {
            number: *number,
            source: OptoutSource::Import,
            message: None,
            originator: None,
            note: note.as_ref().map(Note::to_string),
            at,
        };
        let rows: Vec<Optout> = batch.iter().map(row).collect();
        let rows: Vec<_> = rows.iter().map(|row| (list, row)).collect();
        added += optouts::add(&mut tx, &rows).await?.len();
        tx.commit().await?;
    }
    cx.limits.count_rows(caller.account, added);
    // Last, so that a repeated request completes an interrupted import.
    let mut tx = cx.db.write().await?;
    if !asked.save(cx, &mut tx, made.id.0, &added).await? {
        drop(tx);
        return asked.concurrent_answer(cx).await;
    }
    if let Some(actor) = import.by {
        let detail = format!("{}: {added} added, {} in total", made.name, import.numbers.len());
        audit::record(cx, &mut tx, actor, AuditAction::OptoutsImported, &detail).await?;
    }
    tx.commit().await?;
    Ok(IdempotentOutcome::Fresh(added))
}

/// Removes a number from a list. `by` is the member who does it in the dashboard.
#[boxed]
pub async fn remove(
    cx: &Context,
    caller: &Caller,
    which: OptoutListRef,
    number: Recipient,
    by: Option<&Actor>,
) -> Result<()> {
    caller.require_scope(Scope::Manage)?;
    let mut tx = cx.db.write().await?;
    let list = find(&mut tx, caller, which).await?;
    if !optouts::remove(&mut tx, list.id, number).await? {
        return Err(Error::NotFound);
    }
    if let Some(actor) = by {
        let what = format!("+{number}, from {}", list.name);
        audit::record(cx, &mut tx, actor, AuditAction::OptoutRemoved, &what).await?;
    }
    Ok(tx.commit().await?)
}
