//! Submissions: parts (segments) that are handed to a carrier, and their outcomes.

use crate::message::Failure;
use crate::originator::Originator;
use crate::phone::Recipient;
use crate::text::Segment;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One part of a message, ready to submit. All parts of a message have the same token.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Identifies the lease of the message between engine and carrier; meaningless outside the
    /// process.
    pub token: u64,
    /// The number of the part, 1 to 255.
    pub part: u8,
    /// The sender.
    pub originator: Originator,
    /// The recipient.
    pub recipient: Recipient,
    /// The encoded text of this part.
    pub segment: Segment,
    /// A label of the message for the simulated SMSC, which returns it with a reply.
    pub label: i64,
    /// The remaining validity of the message when it was handed over.
    pub validity: Duration,
    /// The beginning of the lease by the monotonic clock of this node. The node's
    /// [`LeaseFence`](crate::lease_fence::LeaseFence) decides how long the part may be submitted.
    pub leased_at: Instant,
    /// The recall flag, shared by all parts of the message.
    pub recall: Recall,
}

/// A flag by which the engine takes back a message that it handed to a carrier: parts not submitted
/// yet end with [`SubmitOutcome::NotSent`]. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Recall(Arc<AtomicBool>);

impl Recall {
    /// Sets the flag.
    pub fn recall(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the flag is set.
    pub fn is_recalled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The outcome of a [`Submission`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SubmitOutcome {
    /// The carrier accepted the part and assigned a message id.
    Accepted {
        /// The message id assigned by the carrier, exactly as received; empty if it is too long.
        smsc_id: String,
    },
    /// The carrier throttled the link (ESME_RTHROTTLED, ESME_RMSGQFUL). This does not count as an
    /// attempt, because the message is not the cause.
    Throttled,
    /// The carrier reported a temporary error: a later attempt may succeed.
    Temporary {
        /// The SMPP command_status.
        status: u32,
    },
    /// The status is ambiguous (ESME_RSUBMITFAIL, ESME_RUNKNOWNERR, generic_nack): the carrier may
    /// have accepted the part. At most two retries.
    Ambiguous {
        /// The SMPP command_status.
        status: u32,
    },
    /// The carrier rejected the part permanently.
    Refused(Failure),
    /// The part may or may not have reached the carrier: no response arrived, or the link broke
    /// before.
    InDoubt,
    /// The part was certainly not sent: the link was down, the lease had ended, or the message was
    /// recalled.
    NotSent,
}
