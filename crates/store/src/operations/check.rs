//! The invariants that `heliograph check` verifies, each as a query that must return no row.

use crate::db::row::{self, Row};
use crate::db::{Conn, Tx};
use crate::error::StoreResult;
use uuid::Uuid;

/// Each invariant with a query for its violations. A query returns the id of a message or NULL, and
/// a text.
const INVARIANTS: &[(&str, &str)] = &[
    (
        "the ledger adds up to available, reserved and captured",
        "SELECT CAST(NULL AS uuid), 'account ' || a.id || ': ledger ' || coalesce(l.amount, 0) || ', available ' || a.available
            || ', reserved ' || a.reserved || ', captured ' || coalesce(m.captured, 0)
         FROM accounts a
         LEFT JOIN (SELECT account, CAST(sum(amount) AS bigint) AS amount FROM ledger GROUP BY account) l
           ON l.account = a.id
         LEFT JOIN (SELECT account, CAST(sum(captured) AS bigint) AS captured FROM messages GROUP BY account) m
           ON m.account = a.id
         WHERE coalesce(l.amount, 0) <> a.available + a.reserved + coalesce(m.captured, 0)",
    ),
    (
        "the amount that an account has reserved is the sum over its messages",
        "SELECT CAST(NULL AS uuid), 'account ' || a.id || ': reserved ' || a.reserved || ', by its messages ' || coalesce(m.reserved, 0)
         FROM accounts a
         LEFT JOIN (SELECT account, CAST(sum(reserved) AS bigint) AS reserved FROM messages GROUP BY account) m
           ON m.account = a.id
         WHERE a.reserved <> coalesce(m.reserved, 0)",
    ),
    (
        "the amounts and parts of a message agree with its status",
        "SELECT id, 'account ' || account || ': status ' || status || ', ' || parts_delivered
            || '/' || parts_accepted || '/' || parts || ' parts, reserved ' || reserved || ', captured ' || captured
         FROM (SELECT m.*, CASE WHEN status IN (2, 3, 4) THEN 1 ELSE 0 END AS final FROM messages m) m
         WHERE captured <> part_price * parts_accepted OR (parts_delivered > parts_accepted AND NOT (status = 0 AND parts_delivered = parts))
            OR parts_accepted > parts
            OR (final = 1) <> (done_at IS NOT NULL) OR (status = 3) <> (failure IS NOT NULL)
            OR (final = 1 AND reserved <> 0) OR (final = 0 AND reserved <> part_price * (parts - parts_accepted))
            OR (status = 2 AND parts_delivered <> parts) OR (status = 1 AND parts_accepted <> parts)
         LIMIT 20",
    ),
    (
        "a queued message has a queue row",
        "SELECT m.id, 'account ' || m.account
         FROM messages m LEFT JOIN queue q ON q.id = m.id
         WHERE m.status = 0 AND q.id IS NULL LIMIT 20",
    ),
    // The message may have ended while the row waited; the next claim deletes the row.
    (
        "a queue row has a message",
        "SELECT q.id, 'account ' || q.account
         FROM queue q LEFT JOIN messages m ON m.account = q.account AND m.id = q.id
         WHERE m.id IS NULL LIMIT 20",
    ),
    (
        "a pending delivery has an event and an endpoint",
        "SELECT CAST(NULL AS uuid), 'account ' || d.account || ', endpoint ' || d.endpoint || ', due at ' || d.due_at
         FROM deliveries d LEFT JOIN events e ON e.account = d.account AND e.id = d.event
         LEFT JOIN endpoints p ON p.id = d.endpoint AND p.account = d.account
         WHERE e.id IS NULL OR p.id IS NULL LIMIT 20",
    ),
    (
        "an account has one default opt-out list in each mode",
        "SELECT CAST(NULL AS uuid), 'account ' || a.id || ': ' || count(l.id)
         FROM accounts a LEFT JOIN optout_lists l ON l.account = a.id AND l.is_default = 1
         GROUP BY a.id HAVING count(l.id) <> 2 LIMIT 20",
    ),
    // A part that was accepted after its message had failed has a row, but is not counted.
    (
        "a message of several parts has a row for each part that a carrier accepted",
        "SELECT m.id, 'account ' || m.account || ': ' || m.parts_accepted || ' accepted, ' || count(p.part) || ' rows'
         FROM messages m LEFT JOIN parts p ON p.account = m.account AND p.message = m.id
         WHERE m.parts > 1 GROUP BY m.account, m.id, m.parts_accepted, m.status
         HAVING count(p.part) < m.parts_accepted OR (count(p.part) > m.parts_accepted AND m.status <> 3) LIMIT 20",
    ),
];

/// Returns the violations of all invariants, one line each. Reads every message, in one snapshot.
pub async fn violations(tx: &mut Tx) -> StoreResult<Vec<String>> {
    let mut found = integrity(tx).await?;
    // These queries do scan whole tables, and their limits must not make PostgreSQL choose nested
    // loops in the hope of an early end.
    if matches!(**tx, Conn::Postgres(_)) {
        tx.execute("SET LOCAL enable_seqscan = on", &[]).await?;
        tx.execute("SET LOCAL enable_hashjoin = on", &[]).await?;
        tx.execute("SET LOCAL enable_mergejoin = on", &[]).await?;
        tx.execute("SET LOCAL enable_nestloop = off", &[]).await?;
        tx.execute("SET LOCAL statement_timeout = 0", &[]).await?;
    }
    for (rule, query) in INVARIANTS {
        let sql = tx.pick(query, query);
        let broken = tx.query(sql, &[], line).await?;
        found.extend(broken.into_iter().map(|b| format!("{rule}: {b}")));
    }
    Ok(found)
}

fn line(r: &mut Row<'_>) -> StoreResult<String> {
    let (id, what): (Option<Uuid>, String) = (r.get()?, r.get()?);
    Ok(match id {
        Some(id) => format!("message {id} of {what}"),
        None => what,
    })
}

async fn integrity(tx: &mut Tx) -> StoreResult<Vec<String>> {
    if matches!(**tx, Conn::Postgres(_)) {
        return Ok(Vec::new());
    }
    let lines = tx.query("PRAGMA integrity_check", &[], row::get::<String>).await?;
    Ok(lines
        .into_iter()
        .filter(|l| l != "ok")
        .map(|l| format!("the database file is intact: {l}"))
        .collect())
}
