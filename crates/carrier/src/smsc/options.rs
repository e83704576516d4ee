//! The settings of the simulated SMSC: delays, limits and faults.

use crate::smsc::handset::Handsets;
use std::path::PathBuf;
use std::time::Duration;

/// The settings of the simulated SMSC.
#[derive(Clone, Debug)]
pub struct SmscOptions {
    /// The delay from submit_sm_resp to the receipt.
    pub receipt_delay: Duration,
    /// The maximum number of deliver_sm without a response in one session.
    pub receipt_window: usize,
    /// The fraction of submits, 0 to 1, that are refused with ESME_RSYSERR.
    pub error_rate: f64,
    /// The rate limit in submits per second, beyond which they are refused with ESME_RTHROTTLED; 0
    /// for none.
    pub throttle: u32,
    /// The delay of every submit_sm_resp.
    pub resp_delay: Duration,
    /// Every nth submit_sm_resp to an accepted submit is never sent; 0 for none.
    pub drop_response_every: u64,
    /// Each session is disconnected in the middle of its output after this many submits; 0 for
    /// never.
    pub disconnect_every: u64,
    /// True when submit_sm_resp has hexadecimal message ids. Receipts keep decimal ids, as in real
    /// SMSCs with this inconsistency.
    pub hex_ids: bool,
    /// True when no receipts are sent, even when requested.
    pub no_receipts: bool,
    /// The file for one JSON line per submit and per acknowledged receipt or reply.
    pub journal: Option<PathBuf>,
    /// The maximum number of messages that all handsets keep together; 0 for none.
    pub keep_messages: usize,
    /// The handsets. A clone gives access to their messages.
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
