//! Messages and their state machine: [`apply`] is one pure function, and statuses only move
//! forward.

mod cancellation;

pub use cancellation::NotCancellableReason;

use crate::account::Mode;
use crate::id::{AccountId, ApiKeyId, CarrierId, MessageId, UserId};
use crate::money::Amount;
use crate::originator::Originator;
use crate::phone::Recipient;
use crate::text::Encoding;
use crate::time::Timestamp;
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// The status of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MessageStatus {
    /// Accepted and durable, but not all parts are sent.
    Queued,
    /// A carrier accepted all parts.
    Sent,
    /// The message arrived on the handset.
    Delivered,
    /// The message will not be delivered.
    Failed,
    /// Cancelled before any part was sent.
    Cancelled,
}

impl MessageStatus {
    /// All statuses.
    pub const ALL: [Self; 5] =
        [Self::Queued, Self::Sent, Self::Delivered, Self::Failed, Self::Cancelled];

    /// Returns the stored code.
    pub const fn code(self) -> i16 {
        match self {
            Self::Queued => 0,
            Self::Sent => 1,
            Self::Delivered => 2,
            Self::Failed => 3,
            Self::Cancelled => 4,
        }
    }

    /// Returns the value of a stored code.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.code() == code)
    }

    /// Returns the name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "QUEUED",
            Self::Sent => "SENT",
            Self::Delivered => "DELIVERED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Returns whether the status is final.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Delivered | Self::Failed | Self::Cancelled)
    }
}

/// The error of an unknown status name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("must be one of QUEUED, SENT, DELIVERED, FAILED, CANCELLED")]
pub struct BadStatus;

/// Parses the output of [`MessageStatus::name`].
impl FromStr for MessageStatus {
    type Err = BadStatus;

    fn from_str(text: &str) -> Result<Self, BadStatus> {
        Self::ALL.into_iter().find(|s| s.name() == text).ok_or(BadStatus)
    }
}

impl fmt::Display for MessageStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! failure_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $wire:literal, $permanent:literal;)+) => {
        /// The reason why a message failed.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum FailureCode {
            $($(#[$doc])* $name,)+
        }

        impl FailureCode {
            /// All failure codes.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the stored code; never 0.
            pub const fn code(self) -> i16 {
                match self { $(Self::$name => $code,)+ }
            }

            /// Returns the name on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $wire,)+ }
            }

            /// Returns whether the same message would fail again if it were resent.
            pub const fn permanent(self) -> bool {
                match self { $(Self::$name => $permanent,)+ }
            }
        }
    };
}

failure_codes! {
    /// The carrier does not know the recipient.
    InvalidRecipient = 1, "invalid_recipient", true;
    /// The handset could not be reached.
    Unreachable = 2, "unreachable", false;
    /// The carrier blocks messages to or from these numbers.
    BlockedByCarrier = 3, "blocked_by_carrier", true;
    /// The recipient is on the opt-out list that the message enforces.
    OptedOut = 4, "opted_out", true;
    /// The carrier does not accept the originator.
    RejectedSender = 5, "rejected_sender", true;
    /// The carrier does not accept the text.
    RejectedContent = 6, "rejected_content", true;
    /// No route matches the recipient.
    RouteUnavailable = 7, "route_unavailable", false;
    /// The validity period ended before the message was delivered.
    Expired = 8, "expired", false;
    /// No delivery receipt arrived in time.
    ReceiptTimeout = 9, "receipt_timeout", false;
    /// The carrier reported an internal error.
    CarrierError = 10, "carrier_error", false;
    /// The carrier gave no known reason.
    Unknown = 11, "unknown", false;
}

impl FailureCode {
    /// Returns the value of a stored code.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.iter().copied().find(|c| c.code() == code)
    }
}

/// The failure of a message: its code, and the code of the carrier if it gave one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The failure code.
    pub code: FailureCode,
    /// The code of the carrier: the SMPP command_status in hexadecimal, or `err` or the network
    /// error code of a receipt.
    pub carrier_code: Option<String>,
}

impl Failure {
    /// Creates a failure without a carrier code.
    pub const fn new(code: FailureCode) -> Self {
        Self { code, carrier_code: None }
    }
}

/// The immutable properties of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The id, on the wire and in the database.
    pub id: MessageId,
    /// The account that sends it.
    pub account: AccountId,
    /// The mode: live or test.
    pub mode: Mode,
    /// The API key that sent it; `None` if it was sent from the dashboard or as an automatic reply.
    pub api_key: Option<ApiKeyId>,
    /// The user who sent it from the dashboard.
    pub sent_by: Option<UserId>,
    /// The campaign that it belongs to.
    pub campaign: Option<Uuid>,
    /// The recipient.
    pub recipient: Recipient,
    /// The sender.
    pub originator: Originator,
    /// The text.
    pub text: String,
    /// The reference given by the client.
    pub reference: Option<String>,
    /// The encoding of the text.
    pub encoding: Encoding,
    /// The number of parts (segments).
    pub parts: u16,
    /// The price of one part.
    pub part_price: Amount,
    /// The carrier that it is routed to.
    pub carrier: CarrierId,
    /// The opt-out list that is enforced, if any.
    pub optout_list: Option<Uuid>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it is scheduled to be sent; `None` means immediately.
    pub scheduled_for: Option<Timestamp>,
    /// The end of its validity period: it must not be delivered afterwards.
    pub expires_at: Timestamp,
}

impl Message {
    /// Returns the earliest time at which it may be sent.
    pub fn due_at(&self) -> Timestamp {
        self.scheduled_for.unwrap_or(self.accepted_at)
    }

    /// Returns the price of all parts.
    pub fn price(&self) -> Amount {
        self.part_price * self.parts
    }
}

/// The mutable state of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageState {
    /// The status.
    pub status: MessageStatus,
    /// The number of parts (segments), 1 to 255.
    pub parts: u16,
    /// The number of parts that a carrier accepted.
    pub parts_accepted: u16,
    /// The number of parts that were delivered; all of them after a receipt for the whole message,
    /// even while some are queued.
    pub parts_delivered: u16,
    /// The price of one part.
    pub part_price: Amount,
    /// The reservation: money set aside for parts that no carrier accepted yet.
    pub reserved: Amount,
    /// The captured money: charged for parts that a carrier accepted.
    pub captured: Amount,
    /// The failure, if the status is failed.
    pub failure: Option<Failure>,
    /// When the carrier accepted the last part.
    pub sent_at: Option<Timestamp>,
    /// When it reached its final status.
    pub done_at: Option<Timestamp>,
    /// True if a part may or may not have reached the carrier and waits to be resent.
    pub in_doubt: bool,
    /// True if it was resent after a lost or ambiguous response, so that the recipient may receive
    /// it twice.
    pub possible_duplicate: bool,
    /// True if a DELIVERED receipt arrived after the message had failed.
    pub late_receipt: bool,
}

impl MessageState {
    /// Returns the initial state of an accepted message, with the price of all parts reserved.
    pub fn accepted(parts: u16, part_price: Amount) -> Self {
        Self {
            status: MessageStatus::Queued,
            parts,
            parts_accepted: 0,
            parts_delivered: 0,
            part_price,
            reserved: part_price * parts,
            captured: Amount::ZERO,
            failure: None,
            sent_at: None,
            done_at: None,
            in_doubt: false,
            possible_duplicate: false,
            late_receipt: false,
        }
    }
}

/// An event that may change the state of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessageEvent {
    /// A carrier accepted this many more parts.
    PartsAccepted(u16),
    /// No (more) parts will be sent: rejected, opted out, expired, or no route.
    SendFailed(Failure),
    /// No response or an ambiguous one arrived for a part, which will be resent over the same
    /// carrier.
    InDoubt,
    /// A part was delivered.
    PartDelivered,
    /// All parts were delivered, by a receipt for the whole message.
    AllPartsDelivered,
    /// A part will not be delivered.
    PartFailed(Failure),
    /// The account cancelled it.
    Cancelled,
}

/// Returns the state after `event` at the time `at`, or `None` if the event changes nothing because
/// it is a duplicate or too late. Statuses only move forward, a final status never changes, and a
/// final message has no reserved money.
pub fn apply(before: &MessageState, at: Timestamp, event: &MessageEvent) -> Option<MessageState> {
    let mut s = before.clone();
    match (before.status, event) {
        (MessageStatus::Queued, MessageEvent::PartsAccepted(n)) => {
            let n = (*n).min(s.parts - s.parts_accepted);
            if n == 0 {
                return None;
            }
            take_parts(&mut s, n);
            if s.parts_accepted == s.parts {
                s.status = MessageStatus::Sent;
                s.sent_at = Some(at);
                s.in_doubt = false;
                deliver_if_complete(&mut s, at);
            }
        }
        (MessageStatus::Queued, MessageEvent::SendFailed(f))
        | (MessageStatus::Queued | MessageStatus::Sent, MessageEvent::PartFailed(f)) => {
            finish(&mut s, at, MessageStatus::Failed);
            s.failure = Some(f.clone());
        }
        (MessageStatus::Queued, MessageEvent::InDoubt) => {
            s.in_doubt = true;
            s.possible_duplicate = true;
        }
        (MessageStatus::Queued | MessageStatus::Sent, MessageEvent::PartDelivered)
            if s.parts_delivered < s.parts_accepted =>
        {
            s.parts_delivered += 1;
            deliver_if_complete(&mut s, at);
        }
        (MessageStatus::Queued | MessageStatus::Sent, MessageEvent::AllPartsDelivered)
            if s.parts_accepted > 0 && s.parts_delivered < s.parts =>
        {
            s.parts_delivered = s.parts;
            deliver_if_complete(&mut s, at);
        }
        (MessageStatus::Failed, MessageEvent::PartDelivered | MessageEvent::AllPartsDelivered)
            if !s.late_receipt =>
        {
            s.late_receipt = true
        }
        (MessageStatus::Queued, MessageEvent::Cancelled)
            if s.parts_accepted == 0 && !s.in_doubt =>
        {
            finish(&mut s, at, MessageStatus::Cancelled);
        }
        _ => return None,
    }
    Some(s)
}

fn take_parts(s: &mut MessageState, n: u16) {
    s.parts_accepted += n;
    let paid = s.part_price * n;
    s.captured = s.captured + paid;
    s.reserved = (s.reserved - paid).max(Amount::ZERO);
}

fn deliver_if_complete(s: &mut MessageState, at: Timestamp) {
    if s.status == MessageStatus::Sent && s.parts_delivered == s.parts {
        finish(s, at, MessageStatus::Delivered);
    }
}

fn finish(s: &mut MessageState, at: Timestamp, status: MessageStatus) {
    s.status = status;
    s.done_at = Some(at);
    // A receipt for the whole message counts parts that are not sent any more.
    s.parts_delivered = s.parts_delivered.min(s.parts_accepted);
    s.reserved = Amount::ZERO;
    s.in_doubt = false;
}

/// Returns how a state change affects the balance of the account: the amounts to add to `available`
/// and to `reserved`. Their sum is minus the newly captured amount.
pub fn balance_change(before: &MessageState, after: &MessageState) -> (Amount, Amount) {
    let reserved = after.reserved - before.reserved;
    let captured = after.captured - before.captured;
    (-(reserved + captured), reserved)
}

/// Returns the price of a message. For a failed or cancelled message, it is the captured amount.
pub fn price(message: &Message, state: &MessageState) -> Amount {
    match state.status {
        MessageStatus::Failed | MessageStatus::Cancelled => state.captured,
        MessageStatus::Queued | MessageStatus::Sent | MessageStatus::Delivered => message.price(),
    }
}

/// An entry of the timeline of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimelineEvent {
    /// The message was accepted.
    Accepted,
    /// The message was resent after a lost or ambiguous response and may have arrived twice.
    SentAgain,
    /// A carrier accepted all parts.
    Sent,
    /// The message reached its final status.
    Ended(MessageStatus),
    /// A DELIVERED receipt arrived after the message had failed.
    LateReceipt,
}

impl TimelineEvent {
    /// All timeline events.
    pub const ALL: [Self; 7] = [
        Self::Accepted,
        Self::SentAgain,
        Self::Sent,
        Self::Ended(MessageStatus::Delivered),
        Self::Ended(MessageStatus::Failed),
        Self::Ended(MessageStatus::Cancelled),
        Self::LateReceipt,
    ];

    /// Returns the name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::SentAgain => "sentAgain",
            Self::Sent => "sent",
            Self::Ended(MessageStatus::Delivered) => "delivered",
            Self::Ended(MessageStatus::Cancelled) => "cancelled",
            Self::Ended(_) => "failed",
            Self::LateReceipt => "lateReceipt",
        }
    }
}

/// Returns the timeline of a message in chronological order. The time is `None` where it is not
/// stored.
pub fn timeline(
    message: &Message,
    state: &MessageState,
) -> Vec<(TimelineEvent, Option<Timestamp>)> {
    let mut steps = vec![(TimelineEvent::Accepted, Some(message.accepted_at))];
    if state.possible_duplicate {
        steps.push((TimelineEvent::SentAgain, None));
    }
    if state.sent_at.is_some() {
        steps.push((TimelineEvent::Sent, state.sent_at));
    }
    if state.status.is_final() {
        steps.push((TimelineEvent::Ended(state.status), state.done_at));
    }
    if state.late_receipt {
        steps.push((TimelineEvent::LateReceipt, None));
    }
    steps
}

#[cfg(test)]
mod tests;
