//! What there is to say about the simulated SMSC: mostly, how badly it shall behave.

use crate::smsc::handset::Handsets;
use std::path::PathBuf;
use std::time::Duration;

/// The simulated SMSC's behaviour.
#[derive(Clone, Debug)]
pub struct SmscOptions {
    /// From a submit_sm's answer to its receipt.
    pub receipt_delay: Duration,
    /// The most unanswered deliver_sm of one session.
    pub receipt_window: usize,
    /// The share of submits, 0 to 1, that are answered with ESME_RSYSERR.
    pub error_rate: f64,
    /// Submits per second beyond which ESME_RTHROTTLED is answered; 0 for never.
    pub throttle: u32,
    /// How long every submit_sm_resp is held back.
    pub resp_delay: Duration,
    /// One in so many answers to accepted submits is never sent; 0 for none.
    pub drop_response_every: u64,
    /// Each session is cut, in the middle of what it had to say, after so many submits; 0 for never.
    pub disconnect_every: u64,
    /// Whether submit_sm_resp names messages in hexadecimal. Receipts stay decimal, as they do at
    /// SMSCs of that kind.
    pub hex_ids: bool,
    /// Whether receipts are never sent, even when asked for.
    pub no_receipts: bool,
    /// Where to write one JSON line per submit and per acknowledged receipt or reply.
    pub journal: Option<PathBuf>,
    /// The most messages that the handsets keep, all together; 0 for none.
    pub keep_messages: usize,
    /// The handsets: keep a clone to see what they have received.
    pub handsets: Handsets,
}

impl Default for SmscOptions {
    fn default() -> Self {
        Self {
            receipt_delay: Duration::from_millis(200),
            receipt_window: 500,
            error_rate: 0.0,
            throttle: 0,
            resp_delay: Duration::ZERO,
            drop_response_every: 0,
            disconnect_every: 0,
            hex_ids: false,
            no_receipts: false,
            journal: None,
            keep_messages: 10_000,
            handsets: Handsets::default(),
        }
    }
}
