//! The carrier itself: connects, binds, works, and comes back after each loss.

use crate::carrier::{Carrier, Event, Line};
use crate::smpp::body::Bind;
use crate::smpp::command::{id, status};
use crate::smpp::end::End;
use crate::smpp::link::Link;
use crate::smpp::options::SmppOptions;
use crate::smpp::outbox::Outbox;
use crate::smpp::pdu::{self, BadLength, Head, Pdu};
use crate::smpp::session::Session;
use crate::stop::stopped;
use bytes::Buf;
use heliograph_domain::retry::reconnect_delay;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// A carrier reached over SMPP 3.4, by one transceiver bind.
#[derive(Debug)]
pub struct SmppCarrier {
    options: SmppOptions,
}

impl SmppCarrier {
    /// Connects only when it is run.
    pub fn new(options: SmppOptions) -> Self {
        Self { options }
    }
}

impl Carrier for SmppCarrier {
    fn run(self: Box<Self>, line: Line) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let outbox = Outbox::new(line.events.clone());
            let mut worker = Worker {
                options: self.options,
                line,
                outbox,
                sessions: 0,
                tries: 0,
                answers: false,
            };
            while worker.once().await {}
            worker.finish().await;
        })
    }
}

/// Why there is no bind.
#[derive(Debug, thiserror::Error)]
enum BindError {
    #[error("{0}")]
    Link(#[from] io::Error),
    #[error(transparent)]
    Framing(#[from] BadLength),
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("refused with command_status {0:#010x}")]
    Refused(u32),
}

impl BindError {
    /// Whether trying again soon would only make it worse: the SMSC does not know us, or counts the
    /// tries (SMPP 3.4 §5.1.3).
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
    line: Line,
    outbox: Outbox,
    /// How many sessions there have been: the number of the present one.
    sessions: u64,
    /// How many times in a row nothing came of it.
    tries: u32,
    /// Whether submissions are given back while no bind is up. Not before the first try is over:
    /// they wait for that.
    answers: bool,
}

impl Worker {
    /// One connection from its beginning to its end, and the wait after it. False when the node
    /// shuts down.
    async fn once(&mut self) -> bool {
        let options = self.options.clone();
        let Some(bound) = self.meanwhile(bind(&options)).await else {
            return false;
        };
        let limit = match bound {
            Ok(link) => match self.work(link).await {
                End::Stopped | End::EngineGone => return false,
                end => {
                    tracing::warn!(carrier = %options.name, "bind lost: {end}");
                    self.line.condition.trouble(format!("bind lost: {end}"));
                    options.reconnect_limit
                }
            },
            Err(error) => {
                self.failed(&error);
                match error.is_refusal() {
                    true => options.refused_limit,
                    false => options.reconnect_limit,
                }
            }
        };
        self.answers = true;
        let wait = reconnect_delay(self.tries, options.reconnect_floor, limit, random());
        self.tries = self.tries.saturating_add(1);
        self.meanwhile(tokio::time::sleep(wait)).await.is_some()
    }

    async fn work(&mut self, link: Link) -> End {
        let began = Instant::now();
        self.sessions += 1;
        self.outbox.push(Event::Bound);
        self.line.condition.bound();
        tracing::info!(carrier = %self.options.name, session = self.sessions, "bound");
        let (line, outbox) = (&mut self.line, &mut self.outbox);
        let session = Session::new(&self.options, line, outbox, link, self.sessions);
        let ended = session.run().await;
        self.outbox.push(Event::Unbound(ended.why.to_string()));
        self.line.condition.unbound();
        // A bind that was good for something, or good for long, is tried again soon.
        if ended.served || began.elapsed() >= self.options.reconnect_limit {
            self.tries = 0;
        }
        ended.why
    }

    fn failed(&mut self, error: &BindError) {
        let SmppOptions { name, host, port, .. } = &self.options;
        match error.is_refusal() {
            true => tracing::error!(carrier = %name, host, port, "bind failed: {error}"),
            false => tracing::warn!(carrier = %name, host, port, "bind failed: {error}"),
        }
        self.line.condition.trouble(format!("bind to {host}:{port} failed: {error}"));
        // Told once, not at every try.
        if self.tries == 0 || error.is_refusal() {
            self.outbox.push(Event::Unbound(error.to_string()));
        }
    }

    /// Does `work` while no bind is up. `None` when the node shuts down first.
    async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            let limit = usize::from(self.options.window.max(1));
            let takes = self.answers && self.outbox.outcomes() < limit;
            tokio::select! {
                biased;
                () = stopped(&mut self.line.stop) => return None,
                done = &mut work => return Some(done),
                sent = self.outbox.hand_over(), if !self.outbox.is_empty() => sent.ok()?,
                next = self.line.submissions.recv(), if takes => self.outbox.not_sent(&next?),
                // Answers to a session that is over.
                Some(_) = self.line.acks.recv() => {}
            }
        }
    }

    /// Gives back what is still queued, and waits a while for the engine to take the last events.
    async fn finish(mut self) {
        self.line.submissions.close();
        let last = async {
            while let Some(submission) = self.line.submissions.recv().await {
                self.outbox.not_sent(&submission);
            }
            if !self.outbox.is_empty() {
                // An engine that is gone needs no news.
                let _ = self.outbox.hand_over().await;
            }
        };
        let _ = tokio::time::timeout(self.options.drain_timeout, last).await;
    }
}

/// Connects and binds, all within the time that the options give it.
async fn bind(options: &SmppOptions) -> Result<Link, BindError> {
    let work = async {
        let stream = TcpStream::connect((options.host.as_str(), options.port)).await?;
        let mut link = Link::new(stream)?;
        let request = Bind {
            system_id: options.system_id.as_bytes(),
            password: options.password.as_bytes(),
            system_type: options.system_type.as_bytes(),
            interface_version: 0x34,
        };
        let head = Head::request(id::BIND_TRANSCEIVER, 1);
        pdu::put(&mut link.outbound, head, |out| request.encode(out));
        link.flush()?;
        while !is_bound(&mut link)? {
            link.turn().await?;
        }
        Ok(link)
    };
    tokio::time::timeout(options.bind_timeout, work)
        .await
        .unwrap_or(Err(BindError::Late(options.bind_timeout)))
}

/// Looks for the answer to the bind. What stands behind it is left for the session.
fn is_bound(link: &mut Link) -> Result<bool, BindError> {
    loop {
        let mut rest = link.inbound.as_ref();
        let Some(Pdu { head, .. }) = pdu::take(&mut rest)? else {
            return Ok(false);
        };
        let used = link.inbound.len() - rest.len();
        link.inbound.advance(used);
        match (head.command, head.status) {
            (id::BIND_TRANSCEIVER_RESP, status::ESME_ROK) => return Ok(true),
            (id::BIND_TRANSCEIVER_RESP | id::GENERIC_NACK, status) => {
                return Err(BindError::Refused(status));
            }
            _ => {}
        }
    }
}

/// Uniform in 0..1.
fn random() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}
