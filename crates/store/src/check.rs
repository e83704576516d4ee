//! The invariants that `heliograph check` proves, each as a question that must have no answer.

use crate::db::{Conn, Tx};
use crate::error::Result;
use crate::row::Row;

/// (what must hold, a query for what breaks it: the id of a message or nothing, and a text; few rows).
const QUESTIONS: &[(&str, &str)] = &[
    (
        "the ledger's sum is what is available, reserved and captured",
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
        "what an account has reserved is what its messages have",
        "SELECT CAST(NULL AS uuid), 'account ' || a.id || ': reserved ' || a.reserved || ', by its messages ' || coalesce(m.reserved, 0)
         FROM accounts a
         LEFT JOIN (SELECT account, CAST(sum(reserved) AS bigint) AS reserved FROM messages GROUP BY account) m
           ON m.account = a.id
         WHERE a.reserved <> coalesce(m.reserved, 0)",
    ),
    (
        "a message's money and parts agree with its status",
        "SELECT id, 'account ' || account || ': status ' || status || ', ' || parts_delivered
            || '/' || parts_accepted || '/' || parts || ' parts, reserved ' || reserved || ', captured ' || captured
         FROM (SELECT m.*, CASE WHEN status IN (2, 3, 4) THEN 1 ELSE 0 END AS final FROM messages m) m
         WHERE captured <> part_price * parts_accepted OR parts_delivered > parts_accepted OR parts_accepted > parts
            OR (final = 1) <> (done_at IS NOT NULL) OR (status = 3) <> (failure IS NOT NULL)
            OR (final = 1 AND reserved <> 0) OR (final = 0 AND reserved <> part_price * (parts - parts_accepted))
            OR (status = 2 AND parts_delivered <> parts) OR (status = 1 AND parts_accepted <> parts)
         LIMIT 20",
    ),
    (
        "a queued message stands in the queue",
        "SELECT m.id, 'account ' || m.account
         FROM messages m LEFT JOIN queue q ON q.id = m.id
         WHERE m.status = 0 AND q.id IS NULL LIMIT 20",
    ),
    // It may have ended while it waited: then the next claim takes it off.
    (
        "what stands in the queue is a message",
        "SELECT q.id, 'account ' || q.account
         FROM queue q LEFT JOIN messages m ON m.account = q.account AND m.id = q.id
         WHERE m.id IS NULL LIMIT 20",
    ),
    (
        "what is still to be told is an event of an endpoint",
        "SELECT CAST(NULL AS uuid), 'account ' || d.account || ', endpoint ' || d.endpoint || ', due at ' || d.due_at
         FROM deliveries d LEFT JOIN events e ON e.account = d.account AND e.id = d.event
         LEFT JOIN endpoints p ON p.id = d.endpoint AND p.account = d.account
         WHERE e.id IS NULL OR p.id IS NULL LIMIT 20",
    ),
    (
        "an account has one default opt-out list in each mode",
        "SELECT CAST(NULL AS uuid), 'account ' || a.id || ': ' || count(l.id)
         FROM accounts a LEFT JOIN optout_lists l ON l.account = a.id AND l.standard = 1
         GROUP BY a.id HAVING count(l.id) <> 2 LIMIT 20",
    ),
    // A part that was taken after its message had failed has a row, but no longer counts.
    (
        "a message of several parts has a row for each part that a carrier took",
        "SELECT m.id, 'account ' || m.account || ': ' || m.parts_accepted || ' taken, ' || count(p.part) || ' rows'
         FROM messages m LEFT JOIN parts p ON p.account = m.account AND p.message = m.id
         WHERE m.parts > 1 GROUP BY m.account, m.id, m.parts_accepted, m.status
         HAVING count(p.part) < m.parts_accepted OR (count(p.part) > m.parts_accepted AND m.status <> 3) LIMIT 20",
    ),
];

/// All that breaks an invariant, one line each; empty when everything holds. It reads every message,
/// in one snapshot.
///
/// # Errors
/// As any read.
pub async fn violations(tx: &mut Tx) -> Result<Vec<String>> {
    let mut found = integrity(tx).await?;
    // Unlike everything else, this does read whole tables; and the limits of the questions must not make
    // PostgreSQL hope for an early end, and compare each row with each.
    if matches!(**tx, Conn::Postgres(_)) {
        tx.execute("SET LOCAL enable_seqscan = on", &[]).await?;
        tx.execute("SET LOCAL enable_hashjoin = on", &[]).await?;
        tx.execute("SET LOCAL enable_mergejoin = on", &[]).await?;
        tx.execute("SET LOCAL enable_nestloop = off", &[]).await?;
        tx.execute("SET LOCAL statement_timeout = 0", &[]).await?;
    }
    for (rule, question) in QUESTIONS {
        let sql = tx.pick(question, question);
        let broken = tx.query(sql, &[], line).await?;
        found.extend(broken.into_iter().map(|b| format!("{rule}: {b}")));
    }
    Ok(found)
}

fn line(r: &Row<'_>) -> Result<String> {
    let what = r.text(1)?;
    Ok(match r.opt_uuid(0)? {
        Some(id) => format!("message {id} of {what}"),
        None => what,
    })
}

async fn integrity(tx: &mut Tx) -> Result<Vec<String>> {
    if matches!(**tx, Conn::Postgres(_)) {
        return Ok(Vec::new());
    }
    let lines = tx.query("PRAGMA integrity_check", &[], |r| r.text(0)).await?;
    Ok(lines.into_iter().filter(|l| l != "ok").map(|l| format!("the file is sound: {l}")).collect())
}
