//! Inbound messages: what a person sent to one of an account's numbers, as it is kept and told.

use crate::account::Mode;
use crate::id::{AccountId, CarrierId, InboundId, MessageId};
use crate::inbound::Keyword;
use crate::time::Timestamp;

/// One message that a person sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InboundMessage {
    /// Its id.
    pub id: InboundId,
    /// Whose number it was written to.
    pub account: AccountId,
    /// In which world.
    pub mode: Mode,
    /// Who brought it.
    pub carrier: CarrierId,
    /// Who sent it: digits without the plus, or a name.
    pub from: String,
    /// The number that it was written to.
    pub to: String,
    /// What it says.
    pub text: String,
    /// When its last part came.
    pub received_at: Timestamp,
    /// The last message from that number to that person.
    pub in_reply_to: Option<MessageId>,
    /// What it asks for, when it is one of the known words.
    pub keyword: Option<Keyword>,
    /// Whether all of its parts came.
    pub complete: bool,
}
