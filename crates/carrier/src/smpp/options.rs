//! What there is to say about one SMPP carrier.

use std::fmt;
use std::time::Duration;

/// How to reach one SMSC, and how hard to push it.
#[derive(Clone)]
pub struct SmppOptions {
    /// The carrier's configured name, for logs.
    pub name: String,
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Who we are to the SMSC, at most 15 octets.
    pub system_id: String,
    /// At most 8 octets by the letter of SMPP 3.4; longer ones are sent as they are.
    pub password: String,
    /// Empty unless the SMSC asks for one.
    pub system_type: String,
    /// The most submit_sm without an answer.
    pub window: u16,
    /// The most parts per second; 0 for no limit.
    pub rate: u32,
    /// Whether this is a simulated SMSC, which is told whose message each is and tells whom a reply
    /// answers. A real one must not be able to claim that.
    pub labelled: bool,
    /// For connecting and binding together.
    pub bind_timeout: Duration,
    /// After so long without a submit_sm_resp the bind is given up.
    pub response_timeout: Duration,
    /// After so long without a word from the SMSC it is asked whether it is there.
    pub enquire_after: Duration,
    /// How long that question may stay open.
    pub enquire_timeout: Duration,
    /// How long the rest of a PDU may take that has begun to arrive.
    pub read_timeout: Duration,
    /// How long the answers of an ending session are waited for.
    pub drain_timeout: Duration,
    /// The first wait before a new connection.
    pub reconnect_floor: Duration,
    /// The longest wait before a new connection.
    pub reconnect_limit: Duration,
    /// The longest wait after the SMSC refused the credentials.
    pub refused_limit: Duration,
}

impl SmppOptions {
    /// The usual timing, a window of 10, no rate limit.
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
            labelled: false,
            bind_timeout: Duration::from_secs(30),
            response_timeout: Duration::from_secs(60),
            enquire_after: Duration::from_secs(20),
            enquire_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(30),
            reconnect_floor: Duration::from_secs(1),
            reconnect_limit: Duration::from_secs(60),
            refused_limit: Duration::from_secs(300),
        }
    }
}

/// Everything but the password.
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
