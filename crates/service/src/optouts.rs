//! Opt-outs: who is not written to, and how people get on a list and off it.

use crate::audit::{self, Actor};
use crate::caller::Caller;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::once::{Answer, Asked};
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::id::{AccountId, OptoutListId};
use heliograph_domain::message::Message;
use heliograph_domain::optout::{Optout, OptoutList, STANDARD, Source};
use heliograph_domain::phone::Recipient;
use heliograph_store::{Conn, optouts};
use std::collections::HashSet;
use std::sync::Arc;

/// Lists that an account may have in one mode.
const MOST: i64 = 1_000;
/// Numbers that one transaction adds.
pub const BATCH: usize = 1_000;

/// A recipient on the list that a message enforces.
pub type Pair = (OptoutListId, Recipient);

/// Whom a message must not reach if they are on its list.
pub fn pair(message: &Message) -> Option<Pair> {
    Some((OptoutListId(message.optout_list?), message.recipient))
}

/// Of these messages, the ids of those whose recipient is on the list that they enforce.
///
/// # Errors
/// As any read.
pub async fn held_back<'a>(
    tx: &mut Conn,
    messages: impl Iterator<Item = &'a Message>,
) -> heliograph_store::Result<HashSet<uuid::Uuid>> {
    let all: Vec<_> = messages.filter_map(|m| Some((m.id.0, pair(m)?))).collect();
    let pairs: Vec<Pair> = all.iter().map(|(_, pair)| *pair).collect();
    let listed: HashSet<Pair> = tx.ask(optouts::listed(&pairs)).await?.into_iter().collect();
    Ok(all.into_iter().filter(|(_, pair)| listed.contains(pair)).map(|(id, _)| id).collect())
}

/// The same for messages that are on their way to a carrier: each look at them is a new one.
///
/// # Errors
/// What keeps the database away.
pub async fn opted_out(
    cx: &Context,
    messages: &[Arc<Message>],
) -> heliograph_store::Result<HashSet<uuid::Uuid>> {
    let mut conn = cx.db.read().await?;
    held_back(&mut conn, messages.iter().map(|m| &**m)).await
}

/// The lists that a new account begins with: the default one in each mode.
///
/// # Errors
/// As any write.
pub async fn begin(
    cx: &Context,
    tx: &mut Conn,
    account: AccountId,
) -> heliograph_store::Result<()> {
    for mode in [Mode::Live, Mode::Test] {
        let (id, created_at) = cx.next_id();
        let (id, name) = (OptoutListId(id), STANDARD.to_owned());
        let list = OptoutList { id, account, mode, name, standard: true, created_at };
        optouts::make(tx, &list).await?;
    }
    Ok(())
}

/// Which of the caller's lists is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// The default.
    Standard,
    /// The one with this id.
    Id(OptoutListId),
}

/// The caller's lists that come after `after`, the oldest first.
///
/// # Errors
/// [`Error::Scope`], or what keeps the database away.
pub async fn lists(
    cx: &Context,
    caller: &Caller,
    after: OptoutListId,
    limit: i64,
) -> Result<Vec<OptoutList>> {
    caller.needs(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    Ok(optouts::lists(&mut conn, (caller.account, caller.mode), after, limit).await?)
}

/// One of the caller's lists.
///
/// # Errors
/// [`Error::NotFound`] also for what is another account's or mode's.
pub async fn list(cx: &Context, caller: &Caller, which: Which) -> Result<OptoutList> {
    caller.needs(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    find(&mut conn, caller, which).await
}

async fn find(conn: &mut Conn, caller: &Caller, which: Which) -> Result<OptoutList> {
    let whose = (caller.account, caller.mode);
    let found = match which {
        Which::Standard => optouts::standard(conn, whose).await?,
        Which::Id(id) => optouts::get(conn, whose, id).await?,
    };
    found.ok_or(Error::NotFound)
}

/// Makes a list.
///
/// # Errors
/// [`Error::Conflict`] when there are too many.
pub async fn make(
    cx: &Context,
    caller: &Caller,
    name: String,
    asked: Asked<'_, OptoutList>,
) -> Result<Answer<OptoutList>> {
    caller.needs(Scope::Manage)?;
    if let Some(answer) = asked.before(cx).await? {
        return Ok(Answer::Before(answer));
    }
    let (id, created_at) = cx.next_id();
    let (account, mode, standard) = (caller.account, caller.mode, false);
    let list = OptoutList { id: OptoutListId(id), account, mode, name, standard, created_at };
    let mut tx = cx.db.write().await?;
    let none = OptoutListId(uuid::Uuid::nil());
    let there = optouts::lists(&mut tx, (account, mode), none, MOST).await?;
    if i64::try_from(there.len()).is_ok_and(|n| n >= MOST) {
        return Err(Error::Conflict(format!("There are {MOST} lists already.")));
    }
    optouts::make(&mut tx, &list).await?;
    if !asked.keep(cx, &mut tx, (id, &list)).await? {
        drop(tx);
        return asked.twin(cx).await;
    }
    tx.commit().await?;
    Ok(Answer::Now(list))
}

/// Removes a list with everyone on it; where a person does that in the dashboard, who.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::Conflict`] for the default list, which an account always has.
pub async fn remove_list(
    cx: &Context,
    caller: &Caller,
    which: Which,
    by: Option<&Actor>,
) -> Result<()> {
    caller.needs(Scope::Manage)?;
    let mut tx = cx.db.write().await?;
    let list = find(&mut tx, caller, which).await?;
    if !optouts::remove_list(&mut tx, caller.account, list.id).await? {
        let why = "The default list can't be removed: an account always has one.";
        return Err(Error::Conflict(why.to_owned()));
    }
    if let Some(actor) = by {
        audit::write(cx, &mut tx, actor, ("opt-out list removed", &list.name)).await?;
    }
    Ok(tx.commit().await?)
}

/// The numbers on a list above `after`, in their order.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn numbers(
    cx: &Context,
    caller: &Caller,
    which: Which,
    (after, limit): (Recipient, i64),
) -> Result<Vec<Optout>> {
    caller.needs(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let list = find(&mut conn, caller, which).await?;
    Ok(optouts::of(&mut conn, list.id, after, limit).await?)
}

/// One number on a list.
///
/// # Errors
/// [`Error::NotFound`] when there is no such list, or the number is not on it.
pub async fn number(
    cx: &Context,
    caller: &Caller,
    which: Which,
    number: Recipient,
) -> Result<Optout> {
    caller.needs(Scope::Read)?;
    let mut conn = cx.db.read().await?;
    let list = find(&mut conn, caller, which).await?;
    optouts::find(&mut conn, list.id, number).await?.ok_or(Error::NotFound)
}

/// Puts one number on a list; what stands there now, and whether it is new. What was there keeps its evidence.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn add_one(
    cx: &Context,
    caller: &Caller,
    which: Which,
    (number, note): (Recipient, Option<String>),
    asked: Asked<'_, (Optout, bool)>,
) -> Result<Answer<(Optout, bool)>> {
    caller.needs(Scope::Manage)?;
    if let Some(answer) = asked.before(cx).await? {
        return Ok(Answer::Before(answer));
    }
    let mut tx = cx.db.write().await?;
    let list = find(&mut tx, caller, which).await?.id;
    let (source, message, originator, at) = (Source::Api, None, None, cx.db.now());
    let optout = Optout { number, source, message, originator, note, at };
    let new = !optouts::add(&mut tx, &[(list, &optout)]).await?.is_empty();
    let there = if new { Some(optout) } else { optouts::find(&mut tx, list, number).await? };
    let done = (there.ok_or(Error::NotFound)?, new);
    if !asked.keep(cx, &mut tx, (list.0, &done)).await? {
        drop(tx);
        return asked.twin(cx).await;
    }
    tx.commit().await?;
    Ok(Answer::Now(done))
}

/// Puts numbers from a file, each with a note, on a list; how many were not there yet. What is there keeps its evidence.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn import(
    cx: &Context,
    caller: &Caller,
    which: Which,
    numbers: Vec<(Recipient, Option<String>)>,
    asked: Asked<'_, usize>,
) -> Result<Answer<usize>> {
    caller.needs(Scope::Manage)?;
    if let Some(answer) = asked.before(cx).await? {
        return Ok(Answer::Before(answer));
    }
    // Also when there is nothing to add.
    let made = find(&mut cx.db.read().await?, caller, which).await?.id;
    let mut added = 0;
    for batch in numbers.chunks(BATCH) {
        let mut tx = cx.db.write().await?;
        let list = find(&mut tx, caller, which).await?.id;
        let at = cx.db.now();
        let row = |(number, note): &(Recipient, Option<String>)| {
            let (message, originator, note) = (None, None, note.clone());
            Optout { number: *number, source: Source::Import, message, originator, note, at }
        };
        let rows: Vec<Optout> = batch.iter().map(row).collect();
        let rows: Vec<_> = rows.iter().map(|row| (list, row)).collect();
        added += optouts::add(&mut tx, &rows).await?.len();
        tx.commit().await?;
    }
    // Last: what was interrupted is done again when it is asked again, and adds what is missing.
    let mut tx = cx.db.write().await?;
    if !asked.keep(cx, &mut tx, (made.0, &added)).await? {
        drop(tx);
        return asked.twin(cx).await;
    }
    tx.commit().await?;
    Ok(Answer::Now(added))
}

/// Takes a number off a list; where a person does that in the dashboard, who.
///
/// # Errors
/// [`Error::NotFound`] when there is no such list, or the number is not on it.
pub async fn remove(
    cx: &Context,
    caller: &Caller,
    which: Which,
    number: Recipient,
    by: Option<&Actor>,
) -> Result<()> {
    caller.needs(Scope::Manage)?;
    let mut tx = cx.db.write().await?;
    let list = find(&mut tx, caller, which).await?;
    if !optouts::remove(&mut tx, list.id, number).await? {
        return Err(Error::NotFound);
    }
    if let Some(actor) = by {
        let what = format!("+{number}, from {}", list.name);
        audit::write(cx, &mut tx, actor, ("opt-out removed", &what)).await?;
    }
    Ok(tx.commit().await?)
}
