//! Cancelling a queued message before its submission begins.

use crate::kernel::commands::cancel::{Cancel, CancelOutcome};
use crate::messaging::progress::MessageChanges;
use async_recursion::async_recursion as boxed;
use heliograph_domain::message::{MessageEvent, MessageState, MessageStatus};
use heliograph_store::messaging::messages;
use heliograph_store::messaging::queue;
use heliograph_store::{StoreResult, Tx};

/// Returns whether no part of a message was sent or may have been sent.
pub fn is_untouched(state: &MessageState) -> bool {
    state.status == MessageStatus::Queued && state.parts_accepted == 0 && !state.in_doubt
}

/// Removes the cancellable messages from the queue.
#[boxed]
pub async fn apply(
    tx: &mut Tx,
    cancels: &[Cancel],
    changes: &mut MessageChanges,
) -> StoreResult<Vec<CancelOutcome>> {
    let mut outcomes = Vec::with_capacity(cancels.len());
    for c in cancels {
        let key = (c.account, c.message);
        // Locked before its queue row, against the lock order: with the row gone and the state
        // refusing, the message would stay queued forever. A deadlock with another node makes the
        // writer retry the batch.
        let states = messages::lock_states(tx, &[key]).await?;
        let removed = match states.first() {
            Some(m) if is_untouched(&m.state) => queue::cancel(tx, &c.place).await?,
            // Requested twice, in one batch or after a commit whose answer was lost.
            Some(m) => {
                let done = m.state.status == MessageStatus::Cancelled;
                outcomes.push(if done { CancelOutcome::Done } else { CancelOutcome::Moved });
                continue;
            }
            None => false,
        };
        if removed {
            changes.add(key, MessageEvent::Cancelled);
        }
        outcomes.push(if removed { CancelOutcome::Done } else { CancelOutcome::Moved });
    }
    Ok(outcomes)
}
