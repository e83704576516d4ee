//! Opt-out lists, and who is on them.

use crate::bulk::{Ask, Bulk};
use crate::db::Conn;
use crate::error::{Error, Result};
use crate::row::Row;
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, InboundId, OptoutListId};
use heliograph_domain::optout::{Optout, OptoutList, Source};
use heliograph_domain::phone::Recipient;
use heliograph_domain::time::Timestamp;

/// Makes a list.
///
/// # Errors
/// As any write.
pub async fn make(tx: &mut Conn, list: &OptoutList) -> Result<()> {
    let sql = "INSERT INTO optout_lists (account, id, mode, name, standard, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)";
    let params = [
        list.account.0.into(),
        list.id.0.into(),
        list.mode.code().into(),
        list.name.as_str().into(),
        i16::from(list.standard).into(),
        list.created_at.into(),
    ];
    tx.execute(sql, &params).await.map(drop)
}

/// An account's lists in one mode that come after `after`, the oldest first; at most `limit`.
///
/// # Errors
/// As any read.
pub async fn lists(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    after: OptoutListId,
    limit: i64,
) -> Result<Vec<OptoutList>> {
    let sql = "SELECT account, id, mode, name, standard, created_at FROM optout_lists
        WHERE account = $1 AND mode = $2 AND id > $3 ORDER BY id LIMIT $4";
    let params = [account.0.into(), mode.code().into(), after.0.into(), limit.into()];
    conn.query(sql, &params, list).await
}

/// One of an account's lists in one mode.
///
/// # Errors
/// As any read.
pub async fn get(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
    id: OptoutListId,
) -> Result<Option<OptoutList>> {
    let sql = "SELECT account, id, mode, name, standard, created_at FROM optout_lists
        WHERE account = $1 AND mode = $2 AND id = $3";
    conn.query_one(sql, &[account.0.into(), mode.code().into(), id.0.into()], list).await
}

/// An account's default list in one mode.
///
/// # Errors
/// As any read.
pub async fn standard(
    conn: &mut Conn,
    (account, mode): (AccountId, Mode),
) -> Result<Option<OptoutList>> {
    let sql = "SELECT account, id, mode, name, standard, created_at FROM optout_lists
        WHERE account = $1 AND mode = $2 AND standard = 1";
    conn.query_one(sql, &[account.0.into(), mode.code().into()], list).await
}

/// Removes a list that is not the default, with everyone on it; whether there was such a one.
///
/// # Errors
/// As any write.
pub async fn remove_list(tx: &mut Conn, account: AccountId, id: OptoutListId) -> Result<bool> {
    let sql = "DELETE FROM optout_lists WHERE account = $1 AND id = $2 AND standard = 0";
    let there = tx.execute(sql, &[account.0.into(), id.0.into()]).await? > 0;
    if there {
        tx.execute("DELETE FROM optouts WHERE list = $1", &[id.0.into()]).await?;
    }
    Ok(there)
}

const ADD: Bulk = Bulk {
    each: "INSERT INTO optouts (list, number, source, message, originator, note, created_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING list, number",
    all: "INSERT INTO optouts (list, number, source, message, originator, note, created_at)
          SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::smallint[], $4::uuid[], $5::text[], $6::text[],
            $7::bigint[])
          ORDER BY 1, 2 ON CONFLICT DO NOTHING RETURNING list, number",
};

/// Puts numbers on lists; gives back those that were not there yet. The evidence of the others stays as it was.
///
/// # Errors
/// As any write.
pub async fn add(
    tx: &mut Conn,
    all: &[(OptoutListId, &Optout)],
) -> Result<Vec<(OptoutListId, Recipient)>> {
    let rows = all.iter().map(|(list, o)| {
        [
            list.0.into(),
            o.number.into(),
            o.source.code().into(),
            o.message.map(|m| m.0).into(),
            o.originator.as_deref().into(),
            o.note.as_deref().into(),
            o.at.into(),
        ]
    });
    tx.bulk_query(&ADD, &rows.collect(), |r| Ok((OptoutListId(r.uuid(0)?), Recipient(r.small(1)?))))
        .await
}

/// Takes a number off a list; whether it was there.
///
/// # Errors
/// As any write.
pub async fn remove(tx: &mut Conn, list: OptoutListId, number: Recipient) -> Result<bool> {
    let sql = "DELETE FROM optouts WHERE list = $1 AND number = $2";
    Ok(tx.execute(sql, &[list.0.into(), number.into()]).await? > 0)
}

/// One number on a list.
///
/// # Errors
/// As any read.
pub async fn find(
    conn: &mut Conn,
    list: OptoutListId,
    number: Recipient,
) -> Result<Option<Optout>> {
    let sql = "SELECT number, source, message, originator, note, created_at FROM optouts
        WHERE list = $1 AND number = $2";
    conn.query_one(sql, &[list.0.into(), number.into()], optout).await
}

/// The numbers on a list above `after`, in their order; at most `limit`.
///
/// # Errors
/// As any read.
pub async fn of(
    conn: &mut Conn,
    list: OptoutListId,
    after: Recipient,
    limit: i64,
) -> Result<Vec<Optout>> {
    let sql = "SELECT number, source, message, originator, note, created_at FROM optouts
        WHERE list = $1 AND number > $2 ORDER BY number LIMIT $3";
    conn.query(sql, &[list.0.into(), after.into(), limit.into()], optout).await
}

const LISTED: Bulk = Bulk {
    each: "SELECT list, number FROM optouts WHERE list = $1 AND number = $2",
    all: "SELECT o.list, o.number FROM unnest($1::uuid[], $2::bigint[]) AS v (list, number)
          JOIN optouts o ON o.list = v.list AND o.number = v.number",
};

/// Of these numbers, those that are on these lists.
pub fn listed(all: &[(OptoutListId, Recipient)]) -> Ask<'static, (OptoutListId, Recipient), 2> {
    let rows = all.iter().map(|(list, number)| [list.0.into(), (*number).into()]).collect();
    let read = |r: &Row<'_>| Ok((OptoutListId(r.uuid(0)?), Recipient(r.small(1)?)));
    Ask { bulk: &LISTED, rows, read }
}

fn list(r: &Row<'_>) -> Result<OptoutList> {
    Ok(OptoutList {
        account: AccountId(r.int(0)?),
        id: OptoutListId(r.uuid(1)?),
        mode: Mode::from_code(r.small(2)?).ok_or_else(|| Error::corrupt("unknown mode"))?,
        name: r.text(3)?,
        standard: r.int(4)? != 0,
        created_at: r.time(5)?,
    })
}

fn optout(r: &Row<'_>) -> Result<Optout> {
    let source = Source::from_code(r.small(1)?);
    Ok(Optout {
        number: Recipient(r.small(0)?),
        source: source.ok_or_else(|| Error::corrupt("unknown source"))?,
        message: r.opt_uuid(2)?.map(InboundId),
        originator: r.opt_text(3)?,
        note: r.opt_text(4)?,
        at: Timestamp(r.int(5)?),
    })
}
