//! Claiming messages from the table.

use crate::dispatch::{Claimed, Dispatcher};
use heliograph_service::kernel::commands::claim::ClaimMessages;
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::log_limit::LogLimit;
use tokio::sync::oneshot;

/// The maximum number of rows per claim.
const MAX_CLAIM: usize = 512;

static CLAIM_FAILED: LogLimit = LogLimit::new();

impl Dispatcher {
    /// Claims messages if there may be some and a good part of the local queue is free.
    pub(super) fn claim_if_due(&mut self) {
        let worthwhile = (self.claim_ahead / 4).clamp(1, MAX_CLAIM);
        let due = self.may_have_work && self.claim.is_none() && self.queue.is_available();
        if !due || self.queue.free_slots() < worthwhile {
            return;
        }
        let Some(room) = self.queue.reserve_up_to(MAX_CLAIM) else { return };
        let (reply, answer) = oneshot::channel();
        let claim = ClaimMessages { carrier: self.carrier, room, reply };
        if self.writer.try_send(Command::ClaimMessages(claim)).is_ok() {
            self.claim = Some(answer);
            self.may_have_work = false;
        }
    }

    pub(super) fn on_claimed(&mut self, claimed: Option<Claimed>) {
        self.claim = None;
        match claimed {
            Some(Ok(item)) => {
                // Claim again until a claim finds nothing.
                self.may_have_work |= !item.is_empty();
                self.submit_all(item);
            }
            Some(Err(error)) => {
                if let Some(omitted) = CLAIM_FAILED.admit() {
                    tracing::warn!(%error, omitted, "failed to claim messages");
                }
            }
            None => {}
        }
    }
}
