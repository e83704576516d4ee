//! The message state machine: one pure function, forward only.

use crate::account::Mode;
use crate::id::{AccountId, ApiKeyId, CarrierId, MessageId};
use crate::money::Amount;
use crate::originator::Originator;
use crate::phone::{CountryCode, Recipient};
use crate::text::Encoding;
use crate::time::Timestamp;
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Where a message stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// Accepted and durable, not (wholly) sent.
    Queued,
    /// A carrier took all its parts.
    Sent,
    /// On the handset.
    Delivered,
    /// Never will be.
    Failed,
    /// Called back before any part went out.
    Cancelled,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Queued, Self::Sent, Self::Delivered, Self::Failed, Self::Cancelled];

    /// As stored.
    pub const fn code(self) -> i16 {
        match self {
            Self::Queued => 0,
            Self::Sent => 1,
            Self::Delivered => 2,
            Self::Failed => 3,
            Self::Cancelled => 4,
        }
    }

    /// From the stored form.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.code() == code)
    }

    /// As on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "QUEUED",
            Self::Sent => "SENT",
            Self::Delivered => "DELIVERED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Whether nothing can follow.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Delivered | Self::Failed | Self::Cancelled)
    }
}

/// Why a text is no status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this must be one of QUEUED, SENT, DELIVERED, FAILED, CANCELLED")]
pub struct BadStatus;

/// Reads what [`Status::name`] writes.
impl FromStr for Status {
    type Err = BadStatus;

    fn from_str(text: &str) -> Result<Self, BadStatus> {
        Self::ALL.into_iter().find(|s| s.name() == text).ok_or(BadStatus)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! failure_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $wire:literal, $permanent:literal, $detail:literal;)+) => {
        /// Why a message failed.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum FailureCode {
            $($(#[$doc])* $name,)+
        }

        impl FailureCode {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// As stored; never 0.
            pub const fn code(self) -> i16 {
                match self { $(Self::$name => $code,)+ }
            }

            /// As on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $wire,)+ }
            }

            /// Whether sending the same message again would fail again.
            pub const fn permanent(self) -> bool {
                match self { $(Self::$name => $permanent,)+ }
            }

            /// One sentence for the person who sent it.
            pub const fn detail(self) -> &'static str {
                match self { $(Self::$name => $detail,)+ }
            }
        }
    };
}

failure_codes! {
    /// The carrier does not know the number.
    InvalidRecipient = 1, "invalid_recipient", true, "The carrier says that this number does not exist.";
    /// The handset could not be reached.
    Unreachable = 2, "unreachable", false, "The handset could not be reached.";
    /// The carrier blocks messages to or from these numbers.
    BlockedByCarrier = 3, "blocked_by_carrier", true, "The carrier blocked the message.";
    /// The recipient is on the opt-out list that the message enforces.
    OptedOut = 4, "opted_out", true, "The recipient opted out before the message was sent.";
    /// The originator is not allowed.
    RejectedSender = 5, "rejected_sender", true, "The carrier does not accept this originator.";
    /// The text is not allowed.
    RejectedContent = 6, "rejected_content", true, "The carrier does not accept this text.";
    /// No carrier takes messages for this number.
    RouteUnavailable = 7, "route_unavailable", false, "No carrier takes messages for this number.";
    /// The validity ran out first.
    Expired = 8, "expired", false, "The message was not delivered within its validity.";
    /// The carrier never said what became of it.
    ReceiptTimeout = 9, "receipt_timeout", false, "The carrier never said what became of the message.";
    /// The carrier had trouble of its own.
    CarrierError = 10, "carrier_error", false, "The carrier could not process the message.";
    /// The carrier gave no reason that we know.
    Unknown = 11, "unknown", false, "The carrier gave no known reason.";
}

impl FailureCode {
    /// From the stored form.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.iter().copied().find(|c| c.code() == code)
    }
}

/// Why a message failed, with the carrier's own code where it gave one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Our code.
    pub code: FailureCode,
    /// The carrier's: SMPP command_status in hexadecimal, or a receipt's `err` or network code.
    pub carrier_code: Option<String>,
}

impl Failure {
    /// A failure that no carrier gave a code for.
    pub const fn plain(code: FailureCode) -> Self {
        Self { code, carrier_code: None }
    }
}

/// All that never changes about a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Its name on the wire and in the database.
    pub id: MessageId,
    /// Whose it is.
    pub account: AccountId,
    /// Whether it is real.
    pub mode: Mode,
    /// The key that sent it.
    pub api_key: Option<ApiKeyId>,
    /// The campaign that it belongs to.
    pub campaign: Option<Uuid>,
    /// Whom it is for.
    pub recipient: Recipient,
    /// The recipient's country, where the numbering plan tells.
    pub country: Option<CountryCode>,
    /// Who it is from.
    pub originator: Originator,
    /// What it says.
    pub text: String,
    /// The client's own name for it.
    pub reference: Option<String>,
    /// How it is encoded.
    pub encoding: Encoding,
    /// Of how many parts it is.
    pub parts: u16,
    /// What one part costs.
    pub part_price: Amount,
    /// Over whom it goes.
    pub carrier: CarrierId,
    /// The opt-out list that it enforces; `None` enforces none.
    pub optout_list: Option<Uuid>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it is to be sent, if not at once.
    pub scheduled_for: Option<Timestamp>,
    /// After which it must not be delivered any more.
    pub expires_at: Timestamp,
}

impl Message {
    /// When it may be sent first.
    pub fn due_at(&self) -> Timestamp {
        self.scheduled_for.unwrap_or(self.accepted_at)
    }

    /// What all its parts cost.
    pub fn price(&self) -> Amount {
        self.part_price * self.parts
    }
}

/// All that changes about a message after it was accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    /// Where it stands.
    pub status: Status,
    /// Of how many parts it is, 1 to 255.
    pub parts: u16,
    /// How many of them a carrier took.
    pub parts_accepted: u16,
    /// How many of them arrived.
    pub parts_delivered: u16,
    /// What one part costs.
    pub part_price: Amount,
    /// Set aside for parts that no carrier took yet.
    pub reserved: Amount,
    /// Spent on parts that a carrier took.
    pub captured: Amount,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// When the carrier had taken the last part.
    pub sent_at: Option<Timestamp>,
    /// When it reached its final status.
    pub done_at: Option<Timestamp>,
    /// A part may or may not have reached the carrier, and is waiting to be sent again.
    pub in_doubt: bool,
    /// It was sent again after a lost response: the recipient may have it twice.
    pub possible_duplicate: bool,
    /// A DELIVERED receipt came after it had failed.
    pub late_receipt: bool,
}

impl State {
    /// A message as it is accepted.
    pub fn accepted(parts: u16, part_price: Amount) -> Self {
        Self {
            status: Status::Queued,
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

/// What can happen to a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A carrier took so many more of its parts.
    PartsAccepted(u16),
    /// It will not be sent (any further): refused, opted out, expired, no route.
    SendFailed(Failure),
    /// No response came; it will be sent again, over the same carrier.
    InDoubt,
    /// A part arrived.
    PartDelivered,
    /// A part will never arrive.
    PartFailed(Failure),
    /// Its owner called it back.
    Cancelled,
}

/// What `event` at `at` makes of `before`; `None` when it changes nothing (a duplicate, or something
/// that comes too late). Statuses only move forward, a final one stays, and the reserved money of a
/// final message is zero.
pub fn apply(before: &State, at: Timestamp, event: &Event) -> Option<State> {
    let mut s = before.clone();
    match (before.status, event) {
        (Status::Queued, Event::PartsAccepted(n)) => {
            let n = (*n).min(s.parts - s.parts_accepted);
            if n == 0 {
                return None;
            }
            take_parts(&mut s, n);
            if s.parts_accepted == s.parts {
                s.status = Status::Sent;
                s.sent_at = Some(at);
                s.in_doubt = false;
                deliver_if_complete(&mut s, at);
            }
        }
        (Status::Queued, Event::SendFailed(f))
        | (Status::Queued | Status::Sent, Event::PartFailed(f)) => {
            finish(&mut s, at, Status::Failed);
            s.failure = Some(f.clone());
        }
        (Status::Queued, Event::InDoubt) => {
            s.in_doubt = true;
            s.possible_duplicate = true;
        }
        (Status::Queued | Status::Sent, Event::PartDelivered)
            if s.parts_delivered < s.parts_accepted =>
        {
            s.parts_delivered += 1;
            deliver_if_complete(&mut s, at);
        }
        (Status::Failed, Event::PartDelivered) if !s.late_receipt => s.late_receipt = true,
        (Status::Queued, Event::Cancelled) if s.parts_accepted == 0 && !s.in_doubt => {
            finish(&mut s, at, Status::Cancelled);
        }
        _ => return None,
    }
    Some(s)
}

fn take_parts(s: &mut State, n: u16) {
    s.parts_accepted += n;
    let paid = s.part_price * n;
    s.captured = s.captured + paid;
    s.reserved = (s.reserved - paid).max(Amount::ZERO);
}

fn deliver_if_complete(s: &mut State, at: Timestamp) {
    if s.status == Status::Sent && s.parts_delivered == s.parts {
        finish(s, at, Status::Delivered);
    }
}

fn finish(s: &mut State, at: Timestamp, status: Status) {
    s.status = status;
    s.done_at = Some(at);
    s.reserved = Amount::ZERO;
    s.in_doubt = false;
}

/// What a change of a message does to its account: (added to `available`, added to `reserved`).
/// The sum of both is what was captured, with its sign turned.
pub fn money(before: &State, after: &State) -> (Amount, Amount) {
    let reserved = after.reserved - before.reserved;
    let captured = after.captured - before.captured;
    (-(reserved + captured), reserved)
}

/// What a message costs; once it can cost no more, what it did cost.
pub fn price(message: &Message, state: &State) -> Amount {
    match state.status {
        Status::Failed | Status::Cancelled => state.captured,
        Status::Queued | Status::Sent | Status::Delivered => message.price(),
    }
}

/// What happened to a message, as far as a person wants to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It was accepted.
    Accepted,
    /// A response was lost; it was sent again, and may have arrived twice.
    SentAgain,
    /// A carrier took all its parts.
    Sent,
    /// It reached its final status.
    Ended(Status),
    /// A DELIVERED receipt came after it had failed.
    LateReceipt,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Accepted,
        Self::SentAgain,
        Self::Sent,
        Self::Ended(Status::Delivered),
        Self::Ended(Status::Failed),
        Self::Ended(Status::Cancelled),
        Self::LateReceipt,
    ];

    /// As on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::SentAgain => "sentAgain",
            Self::Sent => "sent",
            Self::Ended(Status::Delivered) => "delivered",
            Self::Ended(Status::Cancelled) => "cancelled",
            Self::Ended(_) => "failed",
            Self::LateReceipt => "lateReceipt",
        }
    }
}

/// What happened to a message, in order, and when; without a time where only that it happened is kept.
pub fn timeline(message: &Message, state: &State) -> Vec<(Step, Option<Timestamp>)> {
    let mut steps = vec![(Step::Accepted, Some(message.accepted_at))];
    if state.possible_duplicate {
        steps.push((Step::SentAgain, None));
    }
    if state.sent_at.is_some() {
        steps.push((Step::Sent, state.sent_at));
    }
    if state.status.is_final() {
        steps.push((Step::Ended(state.status), state.done_at));
    }
    if state.late_receipt {
        steps.push((Step::LateReceipt, None));
    }
    steps
}

mod advice;
#[cfg(test)]
mod tests;
