//! The settings of one SMPP carrier.

use crate::smpp::status::StatusMap;
use heliograph_domain::carrier::ReceiptPolicy;
use std::fmt;
use std::time::Duration;

/// The address, credentials, limits and time-outs for one SMSC.
#[derive(Clone)]
pub struct SmppOptions {
    /// The carrier's configured name, for logs.
    pub name: String,
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The client's name at the SMSC, at most 15 octets (SMPP 3.4 §5.2.1).
    pub system_id: String,
    /// At most 8 octets by SMPP 3.4 §5.2.2; longer ones are sent unchanged.
    pub password: String,
    /// Empty unless the SMSC asks for one.
    pub system_type: String,
    /// The maximum number of submit_sm without a response.
    pub window: u16,
    /// The rate limit in parts per second; 0 for no limit.
    pub rate: u32,
    /// The meaning of statuses that differs from the default.
    pub status_map: StatusMap,
    /// The receipts that the SMSC sends. None are requested from an SMSC without receipts.
    pub receipts: ReceiptPolicy,
    /// True when PDUs carry a label that names the owner of each message and of each reply. Only
    /// for the simulated SMSC: a real one must not be able to attribute a reply to an account.
    pub labelled: bool,
    /// The time-out for connecting and binding together.
    pub bind_timeout: Duration,
    /// The session is closed when a submit_sm_resp is missing for this long.
    pub response_timeout: Duration,
    /// An enquire_link is sent when the SMSC has sent nothing for this long.
    pub enquire_interval: Duration,
    /// The session is closed when an enquire_link has no response for this long.
    pub enquire_timeout: Duration,
    /// The session is closed when the rest of a PDU does not arrive within this time.
    pub read_timeout: Duration,
    /// The time that a graceful shutdown waits for missing responses.
    pub drain_timeout: Duration,
    /// The shortest reconnect back-off.
    pub reconnect_min: Duration,
    /// The longest reconnect back-off.
    pub reconnect_max: Duration,
    /// The longest back-off after the SMSC refused the bind.
    pub refused_reconnect_max: Duration,
}

impl SmppOptions {
    /// Returns options with default time-outs, a window of 10 and no rate limit.
    pub fn new(name: &str, host: &str, port: u16) -> Self {
        Self {
            name: name.to_owned(),
            host: host.to_owned(),
            port,
            system_id: String::new(),
            password: String::new(),
            system_type: String::new(),
            window: 10,
            rate: 0,
            status_map: StatusMap::new(),
            receipts: ReceiptPolicy::All,
            labelled: false,
            bind_timeout: Duration::from_secs(30),
            response_timeout: Duration::from_secs(60),
            enquire_interval: Duration::from_secs(20),
            enquire_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(30),
            reconnect_min: Duration::from_secs(1),
            reconnect_max: Duration::from_secs(60),
            refused_reconnect_max: Duration::from_secs(300),
        }
    }
}

/// Leaves out the password.
impl fmt::Debug for SmppOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmppOptions")
            .field("name", &self.name)
            .field("host", &self.host)
            .field("port", &self.port)
            .field("system_id", &self.system_id)
            .field("window", &self.window)
            .field("rate", &self.rate)
            .finish_non_exhaustive()
    }
}
