//! The command that records what a carrier reported: outcomes, delivery receipts and inbound
//! messages.

use crate::kernel::commands::writer_command::WriterCommand;
use heliograph_domain::account::Mode;
use heliograph_domain::carrier::ReceiptPolicy;
use heliograph_domain::fields::MessageText;
use heliograph_domain::id::{AccountId, CarrierId};
use heliograph_domain::inbound::IncomingSms;
use heliograph_domain::lease::Lease;
use heliograph_domain::message::Failure;
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::Receipt;
use heliograph_store::StoreError;
use heliograph_store::messaging::carrier_refs::OverduePart;
use heliograph_store::messaging::inbound_parts::PartGroup;
use std::time::Duration;
use tokio::sync::oneshot;

/// A request to record progress.
#[derive(Debug)]
pub struct RecordProgress {
    /// The progress.
    pub progress: Progress,
    /// Receives the outcome.
    pub reply: ProgressReply,
}

/// Confirms that progress is durable, with the keyword replies to send, or returns the progress.
pub type ProgressReply = oneshot::Sender<Result<Vec<KeywordReply>, (StoreError, Progress)>>;

/// Outcomes of leased messages, delivery receipts and inbound messages.
#[derive(Debug, Default)]
pub struct Progress {
    /// The outcomes of leased messages, in the order in which they arrived.
    pub settlements: Vec<Settlement>,
    /// The delivery receipts, in the order in which they arrived.
    pub receipts: Vec<(CarrierId, Receipt)>,
    /// The parts whose receipt is overdue.
    pub overdue: Vec<OverduePart>,
    /// The inbound updates, in the order in which they arrived.
    pub inbound: Vec<InboundUpdate>,
}

/// The outcome of one leased message.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// The lease, which authorizes the outcome.
    pub lease: Lease,
    /// The recipient of the message.
    pub recipient: Recipient,
    /// The originator, if it is a number: a receipt with swapped addresses names it as recipient.
    pub originator: Option<Recipient>,
    /// The number of parts of the message.
    pub parts: u16,
    /// The parts that the carrier accepted, with the carrier's ids for them.
    pub accepted_parts: Vec<(u8, String)>,
    /// The receipts that the carrier sends.
    pub receipts: ReceiptPolicy,
    /// The next step of the message.
    pub next: NextStep,
}

/// The next step after a [`Settlement`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NextStep {
    /// No further step: all parts were sent.
    Done,
    /// The message fails; no further part is sent.
    Fail(Failure),
    /// Another try later.
    Retry {
        /// The delay of the retry.
        after: Duration,
        /// True if this attempt counts as a try.
        tried: bool,
        /// True if this attempt may have sent the message: it is marked as a possible duplicate.
        in_doubt: bool,
    },
    /// The message may have been sent. It is sent again, marked as a possible duplicate.
    InDoubt,
}

/// An update that may complete an inbound message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InboundUpdate {
    /// A part or message from a carrier.
    Incoming(CarrierId, IncomingSms),
    /// A message whose missing parts did not come in time: it is completed without them.
    Overdue(PartGroup),
}

/// An automatic reply to a keyword, configured by the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeywordReply {
    /// The account that sends it.
    pub account: AccountId,
    /// The mode of the account.
    pub mode: Mode,
    /// The originator: the number that received the keyword.
    pub from: String,
    /// The recipient: the sender of the keyword.
    pub to: Recipient,
    /// The text.
    pub text: MessageText,
}

impl WriterCommand for RecordProgress {
    fn weight(&self) -> usize {
        let progress = &self.progress;
        let ended = progress.receipts.len() + progress.overdue.len();
        progress.settlements.len() + ended + progress.inbound.len()
    }

    fn refuse(self, error: &StoreError) {
        let _ = self.reply.send(Err((error.share(), self.progress)));
    }
}
