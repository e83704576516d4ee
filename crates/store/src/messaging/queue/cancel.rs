//! Cancelling a message that no node has begun to submit.

use crate::db::Conn;
use crate::db::field::Field;
use crate::db::row;
use crate::error::StoreResult;
use heliograph_domain::id::{CarrierId, MessageId};
use heliograph_domain::lease::Lane;
use heliograph_domain::message::Message;
use heliograph_domain::time::Timestamp;

/// The queue row of a message that is not leased, and whose earlier leases were all released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueuePosition {
    carrier: CarrierId,
    lane: Lane,
    due_at: Timestamp,
    id: MessageId,
}

/// Returns the position of a message in the queue; `None` when it is leased, in doubt or no longer
/// queued.
pub async fn position(conn: &mut Conn, message: &Message) -> StoreResult<Option<QueuePosition>> {
    for lane in Lane::ALL {
        // The first statement looks where the message was inserted. A carrier that deferred it has
        // moved it further back, and there the queue is read row by row: that is rare, and the rows
        // are narrow.
        let inserted =
            "SELECT due_at FROM queue WHERE carrier = $1 AND lane = $2 AND due_at = $3 AND id = $4
            AND owner IS NULL AND lease_until IS NULL AND doubts = 0";
        let deferred =
            "SELECT due_at FROM queue WHERE carrier = $1 AND lane = $2 AND due_at > $3 AND id = $4
            AND owner IS NULL AND lease_until IS NULL AND doubts = 0";
        let (carrier, id, due_at) = (message.carrier, message.id, message.due_at());
        let params = [carrier.value(), lane.value(), due_at.value(), id.value()];
        for sql in [inserted, deferred] {
            if let Some(due_at) = conn.query_one(sql, &params, row::get).await? {
                return Ok(Some(QueuePosition { carrier, lane, due_at, id }));
            }
        }
    }
    Ok(None)
}

/// Deletes a message from the queue. False when it is no longer at this position.
pub async fn cancel(tx: &mut Conn, position: &QueuePosition) -> StoreResult<bool> {
    let sql = "DELETE FROM queue WHERE carrier = $1 AND lane = $2 AND due_at = $3 AND id = $4
        AND owner IS NULL AND lease_until IS NULL AND doubts = 0";
    let QueuePosition { carrier, lane, due_at, id } = position;
    let params = [carrier.value(), lane.value(), due_at.value(), id.value()];
    Ok(tx.execute(sql, &params).await? > 0)
}
