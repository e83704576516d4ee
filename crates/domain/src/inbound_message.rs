//! Inbound messages: stored messages that people sent to a number of an account.

use crate::account::Mode;
use crate::id::{AccountId, CarrierId, InboundId, MessageId};
use crate::inbound::Keyword;
use crate::time::Timestamp;

/// An inbound message, joined from all its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InboundMessage {
    /// The id.
    pub id: InboundId,
    /// The account that owns the number.
    pub account: AccountId,
    /// The mode of the number.
    pub mode: Mode,
    /// The carrier that delivered it.
    pub carrier: CarrierId,
    /// The sender: digits without the plus, or an alphanumeric name.
    pub from: String,
    /// The number that the message was sent to.
    pub to: String,
    /// The text.
    pub text: String,
    /// When the last part arrived.
    pub received_at: Timestamp,
    /// The last message sent from this number to this sender.
    pub in_reply_to: Option<MessageId>,
    /// The keyword, if the text is one.
    pub keyword: Option<Keyword>,
    /// True if all parts arrived.
    pub complete: bool,
}
