//! Taking a message off the queue that nobody has begun to submit.

use crate::db::Conn;
use crate::error::Result;
use heliograph_domain::id::{CarrierId, MessageId};
use heliograph_domain::lease::Lane;
use heliograph_domain::message::Message;
use heliograph_domain::time::Timestamp;

/// Where a message waits that nobody holds, and nobody ever held without giving it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    carrier: CarrierId,
    lane: Lane,
    due_at: Timestamp,
    id: MessageId,
}

/// Where a message waits; `None` when it is held, or in doubt, or no longer queued.
///
/// # Errors
/// As any read.
pub async fn place(conn: &mut Conn, message: &Message) -> Result<Option<Place>> {
    for lane in Lane::ALL {
        // Where it was put at first. A carrier that put it off has moved it further down, and there the queue is read
        // row by row: that is rare, and its rows are narrow.
        let there =
            "SELECT due_at FROM queue WHERE carrier = $1 AND lane = $2 AND due_at = $3 AND id = $4
            AND owner IS NULL AND lease_until IS NULL AND doubts = 0";
        let below =
            "SELECT due_at FROM queue WHERE carrier = $1 AND lane = $2 AND due_at > $3 AND id = $4
            AND owner IS NULL AND lease_until IS NULL AND doubts = 0";
        let (carrier, id) = (message.carrier, message.id);
        let params = [carrier.0.into(), lane.0.into(), message.due_at().into(), id.0.into()];
        for sql in [there, below] {
            if let Some(due_at) = conn.query_one(sql, &params, |r| r.time(0)).await? {
                return Ok(Some(Place { carrier, lane, due_at, id }));
            }
        }
    }
    Ok(None)
}

/// Takes a message off the queue; false when it does not wait there any more.
///
/// # Errors
/// As any write.
pub async fn cancel(tx: &mut Conn, place: &Place) -> Result<bool> {
    let sql = "DELETE FROM queue WHERE carrier = $1 AND lane = $2 AND due_at = $3 AND id = $4
        AND owner IS NULL AND lease_until IS NULL AND doubts = 0";
    let params =
        [place.carrier.0.into(), place.lane.0.into(), place.due_at.into(), place.id.0.into()];
    Ok(tx.execute(sql, &params).await? > 0)
}
