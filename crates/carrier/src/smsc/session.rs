//! One connection to the simulated SMSC: submits in, answers, receipts and replies out.

mod submits;

use crate::smpp::alarm::Alarm;
use crate::smpp::body::{Bind, put_tlv};
use crate::smpp::command::{id, status, tag};
use crate::smpp::link::{Link, Turn};
use crate::smpp::pdu::{self, Head, Pdu};
use crate::smsc::delivery::Delivery;
use crate::smsc::mailbox::Mailbox;
use crate::smsc::receipt::Date;
use crate::smsc::shared::Smsc;
use crate::stop::stopped;
use bytes::{BufMut, BytesMut};
use heliograph_domain::time::Timestamp;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a connection may stay unbound.
const BIND_WITHIN: Duration = Duration::from_secs(30);

/// How long a receipt or reply waits that the client could not take.
const AGAIN: Duration = Duration::from_secs(1);

/// The connection is to be closed: nothing more can or shall be said.
#[derive(Debug)]
struct Over;

impl From<std::io::Error> for Over {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

impl From<pdu::BadLength> for Over {
    fn from(_: pdu::BadLength) -> Self {
        Self
    }
}

/// What a client may do, once it is bound.
struct Role {
    sends: bool,
    receives: bool,
    mailbox: Arc<Mailbox>,
}

impl Role {
    fn new(command: u32, mailbox: Arc<Mailbox>) -> Self {
        let receives = command != id::BIND_TRANSMITTER;
        if receives {
            mailbox.enter();
        }
        Self { sends: command != id::BIND_RECEIVER, receives, mailbox }
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        if self.receives {
            self.mailbox.leave();
        }
    }
}

/// A connection at work.
pub(crate) struct Session<'a> {
    smsc: &'a Smsc,
    link: Link,
    role: Option<Role>,
    opened: Instant,
    closing: bool,
    sequence: u32,
    submits: u64,
    random: u64,
    /// Answers that are held back, by the time when they may go.
    held: BTreeMap<Instant, BytesMut>,
    /// Receipts and replies that this read brought about.
    posted: Vec<(Instant, Box<Delivery>)>,
    /// Receipts and replies without an answer.
    flying: HashMap<u32, Box<Delivery>>,
    alarm: Alarm,
    /// The last minute that was printed, and how.
    date: (i64, Date),
}

impl<'a> Session<'a> {
    /// Works until one side closes the connection, or `stop` turns true.
    pub(crate) async fn serve(smsc: &'a Smsc, stream: TcpStream, mut stop: watch::Receiver<bool>) {
        let Ok(link) = Link::new(stream) else { return };
        let mut session = Self {
            smsc,
            link,
            role: None,
            opened: Instant::now(),
            closing: false,
            sequence: 0,
            submits: 0,
            random: getrandom::u64().unwrap_or(0) | 1,
            held: BTreeMap::new(),
            posted: Vec::new(),
            flying: HashMap::new(),
            alarm: Alarm::new(),
            date: (i64::MIN, [b'0'; 10]),
        };
        while session.turn(&mut stop).await.is_ok() {}
        session.end();
    }

    async fn turn(&mut self, stop: &mut watch::Receiver<bool>) -> Result<(), Over> {
        let now = Instant::now();
        self.release(now);
        let next = self.deliver(now);
        self.say()?;
        if self.closing && self.link.outbound.is_empty() {
            return Err(Over);
        }
        self.arm(now, next)?;
        let receives = self.role.as_ref().filter(|role| role.receives);
        let bell = async {
            match receives {
                Some(role) => role.mailbox.bell.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stopped(stop) => return Err(Over),
            turn = self.link.turn() => if turn? == Turn::Read {
                return self.read();
            },
            () = bell => {}
            () = self.alarm.ring() => {}
        }
        Ok(())
    }

    /// Writes what there is to say; the journal first.
    fn say(&mut self) -> Result<(), Over> {
        if let Some(journal) = &self.smsc.journal {
            journal.flush();
        }
        Ok(self.link.flush()?)
    }

    fn arm(&mut self, now: Instant, receipt: Option<Instant>) -> Result<(), Over> {
        let unbound = self.role.is_none().then(|| self.opened + BIND_WITHIN);
        if unbound.is_some_and(|at| now >= at) {
            return Err(Over);
        }
        let answer = self.held.first_key_value().map(|(at, _)| *at);
        let next = [unbound, answer, receipt].into_iter().flatten().min();
        self.alarm.set(next.unwrap_or(now + BIND_WITHIN));
        Ok(())
    }

    /// Answers whose time has come.
    fn release(&mut self, now: Instant) {
        while let Some(entry) = self.held.first_entry()
            && *entry.key() <= now
        {
            self.link.outbound.extend_from_slice(&entry.remove());
        }
    }

    /// Receipts and replies whose time has come, as far as the window has room; tells when the next
    /// is due.
    fn deliver(&mut self, now: Instant) -> Option<Instant> {
        let role = self.role.as_ref().filter(|role| role.receives)?;
        let window = self.smsc.options.receipt_window.max(1);
        let room = window.saturating_sub(self.flying.len());
        let mut due = Vec::new();
        let next = role.mailbox.take(now, room, &mut due);
        if !due.is_empty() {
            let date = self.date();
            for delivery in due {
                self.sequence = self.sequence % 0x7FFF_FFFF + 1;
                delivery.put(&mut self.link.outbound, self.sequence, date);
                self.flying.insert(self.sequence, delivery);
            }
        }
        next.filter(|_| self.flying.len() < window)
    }

    fn read(&mut self) -> Result<(), Over> {
        let now = Instant::now();
        let inbound = self.link.lend();
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
        self.link.give_back(inbound, left);
        self.post();
        result
    }

    fn handle(&mut self, pdu: &Pdu<'_>, now: Instant) -> Result<(), Over> {
        let head = pdu.head;
        let out = &mut self.link.outbound;
        match head.command {
            id::SUBMIT_SM => return self.submit(pdu, now),
            id::DELIVER_SM_RESP | id::GENERIC_NACK => self.delivered(head, now),
            id::BIND_RECEIVER | id::BIND_TRANSMITTER | id::BIND_TRANSCEIVER => self.bind(pdu),
            id::ENQUIRE_LINK => pdu::put_bare(out, head.response(status::ESME_ROK)),
            id::UNBIND => {
                pdu::put_bare(out, head.response(status::ESME_ROK));
                self.closing = true;
            }
            _ if head.is_response() => {}
            _ => pdu::put_bare(out, head.nack(status::ESME_RINVCMDID)),
        }
        Ok(())
    }

    fn bind(&mut self, pdu: &Pdu<'_>) {
        let head = pdu.head;
        let mailbox = Bind::decode(pdu.body).and_then(|bind| self.smsc.mailbox(bind.system_id));
        let (status, mailbox) = match (&self.role, mailbox) {
            (Some(_), _) => (status::ESME_RALYBND, None),
            (None, None) => (status::ESME_RBINDFAIL, None),
            (None, mailbox) => (status::ESME_ROK, mailbox),
        };
        if let Some(mailbox) = mailbox {
            self.role = Some(Role::new(head.command, mailbox));
        }
        pdu::put(&mut self.link.outbound, head.response(status), |out| {
            out.put_slice(b"heliograph\0");
            put_tlv(out, tag::SC_INTERFACE_VERSION, &[0x34]);
        });
    }

    /// The client's answer to a receipt or reply. One that it could not take now is sent again.
    fn delivered(&mut self, head: Head, now: Instant) {
        let Some(delivery) = self.flying.remove(&head.sequence) else {
            return;
        };
        if head.status == status::ESME_RX_T_APPN {
            self.posted.push((now + AGAIN, delivery));
        } else if let Some(journal) = &self.smsc.journal {
            let at = self.smsc.clock.now().millis();
            delivery.note(at, head.status, |entry| journal.write(entry));
        }
    }

    /// Hands the new receipts and replies to whichever session of this system_id can deliver them.
    fn post(&mut self) {
        if let Some(role) = self.role.as_ref().filter(|_| !self.posted.is_empty()) {
            role.mailbox.post(self.posted.drain(..));
            if !role.receives {
                role.mailbox.bell.notify_one();
            }
        }
    }

    /// What has no answer is left to the next session of this system_id.
    fn end(mut self) {
        let now = Instant::now();
        let mut unanswered: Vec<_> = self.flying.drain().collect();
        unanswered.sort_unstable_by_key(|(sequence, _)| *sequence);
        if let Some(role) = &self.role {
            role.mailbox.post(unanswered.into_iter().map(|(_, delivery)| (now, delivery)));
            role.mailbox.bell.notify_one();
        }
        let _ = self.say();
    }

    /// The present minute, printed anew only when it has changed.
    fn date(&mut self) -> Date {
        let now = self.smsc.clock.now();
        let minute = now.millis().div_euclid(60_000);
        if self.date.0 != minute {
            self.date = (minute, print(now));
        }
        self.date.1
    }
}

/// YYMMDDhhmm out of `2026-11-20T09:00:00.000Z`.
fn print(at: Timestamp) -> Date {
    let mut date = [b'0'; 10];
    let text = at.to_string();
    let digits = text.bytes().filter(u8::is_ascii_digit).skip(2);
    for (place, digit) in date.iter_mut().zip(digits) {
        *place = digit;
    }
    date
}
