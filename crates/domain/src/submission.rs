//! Submissions: one part on its way to a carrier, and what became of it.

use crate::message::Failure;
use crate::originator::Originator;
use crate::phone::Recipient;
use crate::text::Segment;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One part of a message, ready for a carrier. All parts of a message carry the same token.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Names the message's lease between engine and carrier; meaningless outside the process.
    pub token: u64,
    /// 1 to 255.
    pub part: u8,
    /// Who it is from.
    pub originator: Originator,
    /// Whom it is for.
    pub recipient: Recipient,
    /// The encoded text of this part.
    pub segment: Segment,
    /// Whose message it is, for a simulated SMSC alone: a reply brings it back.
    pub label: i64,
    /// What is left of the message's validity when it was handed over.
    pub validity: Duration,
    /// The lease's end by this node's monotonic clock: after it the part must not be submitted,
    /// since another node may have taken the message over.
    pub not_after: Instant,
    /// Shared by all parts of the message: whether the engine wants it back.
    pub recall: Recall,
}

/// The engine's way to call a message back that a carrier has not submitted yet: what is left of it is answered
/// with [`Outcome::NotSent`]. Clones are one.
#[derive(Clone, Debug, Default)]
pub struct Recall(Arc<AtomicBool>);

impl Recall {
    /// Calls it back.
    pub fn recall(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was called back.
    pub fn is_recalled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What became of a [`Submission`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The carrier took it and named it so.
    Accepted {
        /// The carrier's own message id, exactly as it was given.
        smsc_id: String,
    },
    /// The carrier was too busy (ESME_RTHROTTLED, ESME_RMSGQFUL): not the message's fault, so it
    /// is not counted as an attempt.
    Throttled,
    /// The carrier said that trying later may help.
    Temporary {
        /// SMPP command_status.
        status: u32,
    },
    /// The carrier's words may mean anything (ESME_RSUBMITFAIL, ESME_RUNKNOWNERR): at most two retries.
    Ambiguous {
        /// SMPP command_status.
        status: u32,
    },
    /// The carrier will never take it.
    Refused(Failure),
    /// It may or may not have arrived: no response came, or the link broke before one could.
    InDoubt,
    /// It certainly never left: the link was down, its lease had run out, or it was called back.
    NotSent,
}
