//! Ids that a carrier gives to several parts to the same recipient. This is rare: one statement for
//! each part.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::record::columns;
use crate::db::table::{Sql, equals, names};
use crate::error::StoreResult;
use crate::messaging::carrier_refs::{
    AcceptedPart, RECORD_ACCEPTED, RefKey, RefRow, key_and_part, matched, parameters,
};
use heliograph_domain::id::{ALL_PARTS, PartKey};
use heliograph_domain::time::Timestamp;

/// Makes room for a newer part: the row gets the next number.
static SET_BACK: Sql = Sql::new(|| {
    format!(
        "UPDATE carrier_refs SET reuse = 1 + (SELECT max(reuse) FROM carrier_refs WHERE {by})
         WHERE {by} AND reuse = 0",
        by = equals(BY)
    )
});

const BY: &[crate::db::record::Column] = columns!(RefRow: carrier, smsc_id, recipient);

/// Records a part whose id stands for another part. Returns whether that is a part of another
/// message.
pub(super) async fn record_accepted(
    tx: &mut Conn,
    accepted: &AcceptedPart,
    at: Timestamp,
) -> StoreResult<bool> {
    let (account, message, number) = &accepted.part;
    // A message of one part has it accepted twice, if it was submitted twice.
    let number = if *number == 0 { 0 } else { ALL_PARTS };
    let same_message = "UPDATE carrier_refs SET part = $1, at = $2
        WHERE carrier = $3 AND smsc_id = $4 AND recipient = $5 AND account = $6 AND message = $7";
    let AcceptedPart { carrier, smsc_id, recipient, .. } = accepted;
    let key = [carrier.value(), smsc_id.value(), recipient.value()];
    let [c, i, r] = key;
    let params = [number.value(), at.value(), c, i, r, account.value(), message.value()];
    if tx.execute(same_message, &params).await? > 0 {
        return Ok(false);
    }
    tx.execute(&SET_BACK, &key).await?;
    tx.bulk_query(&RECORD_ACCEPTED, &parameters([accepted].iter(), at), matched).await?;
    Ok(true)
}

static TAKE_REUSED: Sql = Sql::new(|| {
    format!(
        "DELETE FROM carrier_refs WHERE {by} AND reuse = (SELECT max(reuse) FROM carrier_refs WHERE {by})
           AND reuse > 0 RETURNING {returned}",
        by = equals(BY),
        returned = names(columns!(RefRow: carrier, smsc_id, recipient, account, message, part))
    )
});

/// Returns whether parts wait whose id was given to a newer message.
pub async fn has_reused(tx: &mut Conn) -> StoreResult<bool> {
    let sql = "SELECT 1 FROM carrier_refs WHERE reuse > 0 LIMIT 1";
    Ok(tx.query_one(sql, &[], |_| Ok(())).await?.is_some())
}

/// Deletes and returns the newest part with this name whose id was given to a newer message, which
/// has its receipt.
pub async fn take_reused(tx: &mut Conn, name: &RefKey) -> StoreResult<Option<PartKey>> {
    let params = [name.carrier.value(), name.smsc_id.value(), name.recipient.value()];
    let taken = tx.query_one(&TAKE_REUSED, &params, key_and_part).await?;
    Ok(taken.map(|(_, part)| part))
}
