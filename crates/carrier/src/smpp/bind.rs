//! The SMPP client: connects, binds, runs sessions, and reconnects with back-off.

use crate::carrier::{Carrier, CarrierChannels, CarrierEvent};
use crate::smpp::body::Bind;
use crate::smpp::close_reason::CloseReason;
use crate::smpp::command::{id, status};
use crate::smpp::event_queue::EventQueue;
use crate::smpp::link::SmppLink;
use crate::smpp::options::SmppOptions;
use crate::smpp::pdu::{self, BadLength, Pdu, PduHeader};
use crate::smpp::session::ClientSession;
use crate::stop::stopped;
use bytes::Buf;
use heliograph_domain::retry::reconnect_delay;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// A carrier that is reached over SMPP 3.4 by one transceiver bind.
#[derive(Debug)]
pub struct SmppCarrier {
    options: SmppOptions,
}

impl SmppCarrier {
    /// Creates the carrier. It connects only when it is run.
    pub fn new(options: SmppOptions) -> Self {
        Self { options }
    }
}

impl Carrier for SmppCarrier {
    fn run(self: Box<Self>, channels: CarrierChannels) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let event_queue = EventQueue::new(channels.events.clone());
            let mut worker = Worker {
                options: self.options,
                channels,
                event_queue,
                sessions: 0,
                failures: 0,
                rejects: false,
            };
            while worker.connect_once().await {}
            worker.finish().await;
        })
    }
}

/// The reason why a bind failed.
#[derive(Debug, thiserror::Error)]
enum BindError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Framing(#[from] BadLength),
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    #[error("refused with command_status {0:#010x}")]
    Refused(u32),
}

impl BindError {
    /// Returns whether an early retry would do harm: the SMSC rejects the credentials or counts
    /// the attempts (SMPP 3.4 §5.1.3).
    fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Refused(
                status::ESME_RALYBND
                    | status::ESME_RBINDFAIL
                    | status::ESME_RINVPASWD
                    | status::ESME_RINVSYSID
            )
        )
    }
}

struct Worker {
    options: SmppOptions,
    channels: CarrierChannels,
    event_queue: EventQueue,
    /// The number of sessions so far, which is the number of the present one.
    sessions: u64,
    /// The number of consecutive failed attempts, for the reconnect back-off.
    failures: u32,
    /// True when submissions are answered with `NotSent` while the carrier is not bound. False
    /// until the first attempt is over: submissions wait for it.
    rejects: bool,
}

impl Worker {
    /// Runs one connection from bind to close, and the back-off after it. Returns false when the
    /// node shuts down.
    async fn connect_once(&mut self) -> bool {
        let options = self.options.clone();
        let Some(bound) = self.while_unbound(bind(&options)).await else {
            return false;
        };
        let limit = match bound {
            Ok(link) => match self.run_session(link).await {
                CloseReason::Shutdown | CloseReason::EngineGone => return false,
                reason => {
                    tracing::warn!(carrier = %options.name, %reason, "bind lost");
                    self.channels.link_status.record_error(format!("bind lost: {reason}"));
                    options.reconnect_max
                }
            },
            Err(error) => {
                self.report_failure(&error);
                match error.is_refusal() {
                    true => options.refused_reconnect_max,
                    false => options.reconnect_max,
                }
            }
        };
        self.rejects = true;
        let wait = reconnect_delay(self.failures, options.reconnect_min, limit, random());
        self.failures = self.failures.saturating_add(1);
        self.while_unbound(tokio::time::sleep(wait)).await.is_some()
    }

    async fn run_session(&mut self, link: SmppLink) -> CloseReason {
        let started = Instant::now();
        self.sessions += 1;
        self.event_queue.push(CarrierEvent::Bound);
        self.channels.link_status.mark_bound();
        tracing::info!(carrier = %self.options.name, session = self.sessions, "bound");
        let (channels, event_queue) = (&mut self.channels, &mut self.event_queue);
        let session = ClientSession::new(&self.options, channels, event_queue, link, self.sessions);
        let ended = session.run().await;
        self.event_queue.push(CarrierEvent::Unbound(ended.reason.to_string()));
        self.channels.link_status.mark_unbound();
        // A session that carried messages or lasted long resets the back-off.
        if ended.served || started.elapsed() >= self.options.reconnect_max {
            self.failures = 0;
        }
        ended.reason
    }

    fn report_failure(&mut self, error: &BindError) {
        let SmppOptions { name, host, port, .. } = &self.options;
        match error.is_refusal() {
            true => tracing::error!(carrier = %name, host, port, %error, "bind failed"),
            false => tracing::warn!(carrier = %name, host, port, %error, "bind failed"),
        }
        self.channels.link_status.record_error(format!("bind to {host}:{port} failed: {error}"));
        // Report a series of failures once, not at every attempt.
        if self.failures == 0 || error.is_refusal() {
            self.event_queue.push(CarrierEvent::Unbound(error.to_string()));
        }
    }

    /// Waits for `work` while the carrier is not bound; `None` when the node shuts down first.
    async fn while_unbound<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            let limit = usize::from(self.options.window.max(1));
            let takes = self.rejects && self.event_queue.outcomes() < limit;
            tokio::select! {
                biased;
                () = stopped(&mut self.channels.stop) => return None,
                done = &mut work => return Some(done),
                sent = self.event_queue.flush(), if !self.event_queue.is_empty() => sent.ok()?,
                next = self.channels.submissions.recv(), if takes => self.event_queue.push_not_sent(&next?),
                // Acks for an earlier session are dropped.
                Some(_) = self.channels.acks.recv() => {}
            }
        }
    }

    /// Answers the queued submissions with `NotSent`, and gives the engine `drain_timeout` to
    /// receive the last events.
    async fn finish(mut self) {
        self.channels.submissions.close();
        let last = async {
            while let Some(submission) = self.channels.submissions.recv().await {
                self.event_queue.push_not_sent(&submission);
            }
            if !self.event_queue.is_empty() {
                // Nobody needs the events when the engine has stopped.
                let _ = self.event_queue.flush().await;
            }
        };
        let _ = tokio::time::timeout(self.options.drain_timeout, last).await;
    }
}

/// Connects and binds as transceiver (SMPP 3.4 §4.1.5) within the bind time-out.
async fn bind(options: &SmppOptions) -> Result<SmppLink, BindError> {
    let work = async {
        let stream = TcpStream::connect((options.host.as_str(), options.port)).await?;
        let mut link = SmppLink::new(stream)?;
        let request = Bind {
            system_id: options.system_id.as_bytes(),
            password: options.password.as_bytes(),
            system_type: options.system_type.as_bytes(),
            interface_version: 0x34,
        };
        let header = PduHeader::request(id::BIND_TRANSCEIVER, 1);
        pdu::put(&mut link.outbound, header, |out| request.encode(out));
        link.flush()?;
        while !is_bound(&mut link)? {
            link.next_io().await?;
        }
        Ok(link)
    };
    tokio::time::timeout(options.bind_timeout, work)
        .await
        .unwrap_or(Err(BindError::Timeout(options.bind_timeout)))
}

/// Returns whether the response to the bind has arrived. PDUs after it are left for the session.
fn is_bound(link: &mut SmppLink) -> Result<bool, BindError> {
    loop {
        let mut rest = link.inbound.as_ref();
        let Some(Pdu { header, .. }) = pdu::take(&mut rest)? else {
            return Ok(false);
        };
        let used = link.inbound.len() - rest.len();
        link.inbound.advance(used);
        match (header.command, header.status) {
            (id::BIND_TRANSCEIVER_RESP, status::ESME_ROK) => return Ok(true),
            (id::BIND_TRANSCEIVER_RESP | id::GENERIC_NACK, status) => {
                return Err(BindError::Refused(status));
            }
            _ => {}
        }
    }
}

/// Returns a random number, uniform in 0..1.
fn random() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}
