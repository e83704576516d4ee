//! One connection to the simulated SMSC: reads submits, sends responses, receipts and replies.

mod submits;

use crate::smpp::body::{Bind, put_tlv};
use crate::smpp::command::{id, status, tag};
use crate::smpp::link::{IoEvent, SmppLink};
use crate::smpp::pdu::{self, Pdu, PduHeader};
use crate::smpp::timer::Timer;
use crate::smsc::delivery::PendingDelivery;
use crate::smsc::delivery_queue::DeliveryQueue;
use crate::smsc::receipt::ReceiptDate;
use crate::smsc::state::SmscState;
use crate::stop::stopped;
use bytes::{BufMut, BytesMut};
use heliograph_domain::time::Timestamp;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

/// The time limit for a connection to bind.
const BIND_TIMEOUT: Duration = Duration::from_secs(30);

/// The delay before a receipt or reply is sent again after ESME_RX_T_APPN.
const REDELIVERY_DELAY: Duration = Duration::from_secs(1);

/// The signal to close the connection.
#[derive(Debug)]
struct Closed;

impl From<std::io::Error> for Closed {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

impl From<pdu::BadLength> for Closed {
    fn from(_: pdu::BadLength) -> Self {
        Self
    }
}

/// The bind state of a client: what the kind of its bind allows.
struct BindRole {
    sends: bool,
    receives: bool,
    queue: Arc<DeliveryQueue>,
}

impl BindRole {
    fn new(command: u32, queue: Arc<DeliveryQueue>) -> Self {
        let receives = command != id::BIND_TRANSMITTER;
        if receives {
            queue.add_receiver();
        }
        Self { sends: command != id::BIND_RECEIVER, receives, queue }
    }
}

impl Drop for BindRole {
    fn drop(&mut self) {
        if self.receives {
            self.queue.remove_receiver();
        }
    }
}

/// An open connection.
pub(crate) struct ServerSession<'a> {
    smsc: &'a SmscState,
    link: SmppLink,
    role: Option<BindRole>,
    opened: Instant,
    closing: bool,
    sequence: u32,
    submits: u64,
    random: u64,
    /// Delayed responses, by the time when they are due.
    delayed: BTreeMap<Instant, BytesMut>,
    /// New receipts and replies from the current read, with the time when each is due.
    new_deliveries: Vec<(Instant, Box<PendingDelivery>)>,
    /// Receipts and replies that were sent and have no response.
    unacknowledged: HashMap<u32, Box<PendingDelivery>>,
    timer: Timer,
    /// The cached receipt date and the minute since 1970 that it is for.
    date: (i64, ReceiptDate),
}

impl<'a> ServerSession<'a> {
    /// Serves a connection until one side closes it or `stop` turns true.
    pub(crate) async fn serve(
        smsc: &'a SmscState,
        stream: TcpStream,
        mut stop: watch::Receiver<bool>,
    ) {
        let Ok(link) = SmppLink::new(stream) else { return };
        let mut session = Self {
            smsc,
            link,
            role: None,
            opened: Instant::now(),
            closing: false,
            sequence: 0,
            submits: 0,
            random: getrandom::u64().unwrap_or(0) | 1,
            delayed: BTreeMap::new(),
            new_deliveries: Vec::new(),
            unacknowledged: HashMap::new(),
            timer: Timer::new(),
            date: (i64::MIN, [b'0'; 10]),
        };
        while session.turn(&mut stop).await.is_ok() {}
        session.end();
    }

    async fn turn(&mut self, stop: &mut watch::Receiver<bool>) -> Result<(), Closed> {
        let now = Instant::now();
        self.release(now);
        let next = self.deliver(now);
        self.flush()?;
        if self.closing && self.link.outbound.is_empty() {
            return Err(Closed);
        }
        self.arm(now, next)?;
        let receives = self.role.as_ref().filter(|role| role.receives);
        let ready = async {
            match receives {
                Some(role) => role.queue.ready.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stopped(stop) => return Err(Closed),
            turn = self.link.next_io() => if turn? == IoEvent::Read {
                return self.read();
            },
            () = ready => {}
            () = self.timer.wait() => {}
        }
        Ok(())
    }

    /// Flushes the journal, then the output.
    fn flush(&mut self) -> Result<(), Closed> {
        if let Some(journal) = &self.smsc.journal {
            journal.flush();
        }
        Ok(self.link.flush()?)
    }

    fn arm(&mut self, now: Instant, delivery: Option<Instant>) -> Result<(), Closed> {
        let unbound = self.role.is_none().then(|| self.opened + BIND_TIMEOUT);
        if unbound.is_some_and(|at| now >= at) {
            return Err(Closed);
        }
        let response = self.delayed.first_key_value().map(|(at, _)| *at);
        let next = [unbound, response, delivery].into_iter().flatten().min();
        self.timer.set(next.unwrap_or(now + BIND_TIMEOUT));
        Ok(())
    }

    /// Moves the delayed responses that are due to the output.
    fn release(&mut self, now: Instant) {
        while let Some(entry) = self.delayed.first_entry()
            && *entry.key() <= now
        {
            self.link.outbound.extend_from_slice(&entry.remove());
        }
    }

    /// Sends the receipts and replies that are due, up to the window. Returns when the next one is
    /// due.
    fn deliver(&mut self, now: Instant) -> Option<Instant> {
        let role = self.role.as_ref().filter(|role| role.receives)?;
        let window = self.smsc.options.receipt_window.max(1);
        let room = window.saturating_sub(self.unacknowledged.len());
        let mut due = Vec::new();
        let next = role.queue.pop_due(now, room, &mut due);
        if !due.is_empty() {
            let date = self.date();
            for delivery in due {
                self.sequence = self.sequence % 0x7FFF_FFFF + 1;
                delivery.put(&mut self.link.outbound, self.sequence, date);
                self.unacknowledged.insert(self.sequence, delivery);
            }
        }
        next.filter(|_| self.unacknowledged.len() < window)
    }

    fn read(&mut self) -> Result<(), Closed> {
        let now = Instant::now();
        let inbound = self.link.take_inbound();
        let mut rest = inbound.as_ref();
        let result = loop {
            let handled = match pdu::take(&mut rest) {
                Ok(Some(pdu)) => self.handle(&pdu, now),
                Ok(None) => break Ok(()),
                Err(bad) => Err(bad.into()),
            };
            if handled.is_err() {
                break handled;
            }
        };
        let left = rest.len();
        self.link.return_inbound(inbound, left);
        self.queue_new_deliveries();
        result
    }

    fn handle(&mut self, pdu: &Pdu<'_>, now: Instant) -> Result<(), Closed> {
        let header = pdu.header;
        let out = &mut self.link.outbound;
        match header.command {
            id::SUBMIT_SM => return self.submit(pdu, now),
            id::DELIVER_SM_RESP | id::GENERIC_NACK => self.delivered(header, now),
            id::BIND_RECEIVER | id::BIND_TRANSMITTER | id::BIND_TRANSCEIVER => self.bind(pdu),
            id::ENQUIRE_LINK => pdu::put_header(out, header.response(status::ESME_ROK)),
            id::UNBIND => {
                pdu::put_header(out, header.response(status::ESME_ROK));
                self.closing = true;
            }
            _ if header.is_response() => {}
            _ => pdu::put_header(out, header.nack(status::ESME_RINVCMDID)),
        }
        Ok(())
    }

    fn bind(&mut self, pdu: &Pdu<'_>) {
        let header = pdu.header;
        let queue = Bind::decode(pdu.body).and_then(|bind| self.smsc.queue(bind.system_id));
        let (status, queue) = match (&self.role, queue) {
            (Some(_), _) => (status::ESME_RALYBND, None),
            (None, None) => (status::ESME_RBINDFAIL, None),
            (None, queue) => (status::ESME_ROK, queue),
        };
        if let Some(queue) = queue {
            self.role = Some(BindRole::new(header.command, queue));
        }
        pdu::put(&mut self.link.outbound, header.response(status), |out| {
            out.put_slice(b"heliograph\0");
            put_tlv(out, tag::SC_INTERFACE_VERSION, &[0x34]);
        });
    }

    /// Handles the response to a receipt or reply. After ESME_RX_T_APPN it is sent again.
    fn delivered(&mut self, header: PduHeader, now: Instant) {
        let Some(delivery) = self.unacknowledged.remove(&header.sequence) else {
            return;
        };
        if header.status == status::ESME_RX_T_APPN {
            self.new_deliveries.push((now + REDELIVERY_DELAY, delivery));
        } else if let Some(journal) = &self.smsc.journal {
            let at = self.smsc.clock.now().millis();
            delivery.record(at, header.status, |entry| journal.write(entry));
        }
    }

    /// Queues the new receipts and replies for any session of this system_id that can receive.
    fn queue_new_deliveries(&mut self) {
        if let Some(role) = self.role.as_ref().filter(|_| !self.new_deliveries.is_empty()) {
            role.queue.push(self.new_deliveries.drain(..));
            if !role.receives {
                role.queue.ready.notify_one();
            }
        }
    }

    /// Queues unacknowledged deliveries again for the next session of this system_id.
    fn end(mut self) {
        let now = Instant::now();
        let mut unacknowledged: Vec<_> = self.unacknowledged.drain().collect();
        unacknowledged.sort_unstable_by_key(|(sequence, _)| *sequence);
        if let Some(role) = &self.role {
            role.queue.push(unacknowledged.into_iter().map(|(_, delivery)| (now, delivery)));
            role.queue.ready.notify_one();
        }
        let _ = self.flush();
    }

    /// Returns the present receipt date, formatted at most once per minute.
    fn date(&mut self) -> ReceiptDate {
        let now = self.smsc.clock.now();
        let minute = now.millis().div_euclid(60_000);
        if self.date.0 != minute {
            self.date = (minute, print(now));
        }
        self.date.1
    }
}

/// Formats YYMMDDhhmm from the digits of `2026-11-20T09:00:00.000Z`.
fn print(at: Timestamp) -> ReceiptDate {
    let mut date = [b'0'; 10];
    let text = at.to_string();
    let digits = text.bytes().filter(u8::is_ascii_digit).skip(2);
    for (target, digit) in date.iter_mut().zip(digits) {
        *target = digit;
    }
    date
}
