//! Cancelling: a message that nobody has begun to submit is called back by its owner.

use crate::progress::Changes;
use crate::writer::{Cancel, Cancelled};
use heliograph_domain::message::{Event, State, Status};
use heliograph_store::{Result, Tx, messages, queue};

/// Whether nothing of a message went out, or may have gone out.
pub fn is_untouched(state: &State) -> bool {
    state.status == Status::Queued && state.parts_accepted == 0 && !state.in_doubt
}

/// Takes what can be called back off the queue.
///
/// # Errors
/// As any write.
pub async fn apply(
    tx: &mut Tx,
    cancels: &[Cancel],
    changes: &mut Changes,
) -> Result<Vec<Cancelled>> {
    let mut verdicts = Vec::with_capacity(cancels.len());
    for c in cancels {
        let key = (c.account, c.message);
        // Locked before its row of the queue, against the order: with the row gone and the state refusing, the message
        // would be queued for ever. Where that meets another node's order, the batch is written again.
        let states = messages::lock_states(tx, &[key]).await?;
        let there = match states.first() {
            Some(m) if is_untouched(&m.state) => queue::cancel(tx, &c.place).await?,
            // Asked twice, in one batch or after a commit whose answer was lost.
            Some(m) => {
                let done = m.state.status == Status::Cancelled;
                verdicts.push(if done { Cancelled::Done } else { Cancelled::Moved });
                continue;
            }
            None => false,
        };
        if there {
            changes.add(key, Event::Cancelled);
        }
        verdicts.push(if there { Cancelled::Done } else { Cancelled::Moved });
    }
    Ok(verdicts)
}
