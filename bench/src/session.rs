//! One session of the lean SMSC.

use crate::pacer::Pacer;
use crate::pdu::{self, Address, Pdu};
use crate::smsc::{Smsc, Tally};
use bytes::{Buf, BytesMut};
use std::collections::VecDeque;
use std::io::ErrorKind::WouldBlock;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::net::TcpStream;

const READ: usize = 256 * 1024;
/// With so much unwritten, nothing more is read.
const MOST_UNWRITTEN: usize = 16 << 20;
/// Receipts that may wait; beyond it submits are throttled.
const MOST_RECEIPTS: usize = 1_000_000;

struct Receipt {
    due: Instant,
    id: String,
    from: Address,
    to: Address,
}

/// Responses that wait for their time.
struct Held {
    since: Instant,
    due: Instant,
    responses: u32,
    bytes: BytesMut,
}

/// One connection of a client.
pub(crate) struct Session {
    stream: TcpStream,
    smsc: Arc<Smsc>,
    pacer: Option<Pacer>,
    inbound: BytesMut,
    outbound: BytesMut,
    receipts: VecDeque<Receipt>,
    held: VecDeque<Held>,
    /// Receipts sent and not acknowledged.
    unacknowledged: usize,
    sequence: u32,
    /// The command of the bind, once there is one.
    bound: Option<u32>,
    closing: bool,
}

/// What there is to do next.
enum Next {
    Read,
    Look,
}

impl Session {
    pub(crate) fn new(stream: TcpStream, smsc: Arc<Smsc>) -> anyhow::Result<Self> {
        stream.set_nodelay(true)?;
        let delays = !smsc.options.resp_delay().is_zero();
        Ok(Self {
            stream,
            pacer: delays.then(Pacer::start).transpose()?,
            smsc,
            inbound: BytesMut::with_capacity(READ),
            outbound: BytesMut::with_capacity(READ),
            receipts: VecDeque::new(),
            held: VecDeque::new(),
            unacknowledged: 0,
            sequence: 0,
            bound: None,
            closing: false,
        })
    }

    /// Serves the client until either side ends it.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        loop {
            let now = Instant::now();
            self.release(now);
            self.send_receipts(now);
            self.flush()?;
            if self.closing && self.outbound.is_empty() {
                return Ok(());
            }
            if let Next::Read = self.next(now).await?
                && !self.read()?
            {
                return Ok(());
            }
        }
    }

    /// Lets the responses go whose time has come.
    fn release(&mut self, now: Instant) {
        while self.held.front().is_some_and(|held| held.due <= now)
            && let Some(held) = self.held.pop_front()
        {
            self.outbound.extend_from_slice(&held.bytes);
            self.smsc.count_held(held.responses, now - held.since);
        }
    }

    fn has_place_for_receipts(&self) -> bool {
        self.unacknowledged < self.smsc.options.receipt_window
    }

    fn send_receipts(&mut self, now: Instant) {
        let mut sent = 0;
        while self.has_place_for_receipts()
            && self.receipts.front().is_some_and(|receipt| receipt.due <= now)
            && let Some(receipt) = self.receipts.pop_front()
        {
            self.sequence = self.sequence % 0x7fff_fffe + 1;
            let Receipt { id, from, to, .. } = &receipt;
            pdu::put_receipt(&mut self.outbound, self.sequence, id, from, to);
            self.unacknowledged += 1;
            sent += 1;
        }
        if sent > 0 {
            self.smsc.count_receipts(sent);
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.outbound.is_empty() {
            return Ok(());
        }
        match self.stream.try_write(&self.outbound) {
            Ok(n) => self.outbound.advance(n),
            Err(e) if e.kind() == WouldBlock => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }

    async fn next(&self, now: Instant) -> std::io::Result<Next> {
        let interest = match (self.outbound.is_empty(), self.outbound.len() < MOST_UNWRITTEN) {
            (true, _) => Interest::READABLE,
            (false, true) => Interest::READABLE | Interest::WRITABLE,
            (false, false) => Interest::WRITABLE,
        };
        let receipt = self.receipts.front().filter(|_| self.has_place_for_receipts());
        let receipt = receipt.map(|receipt| receipt.due);
        tokio::select! {
            ready = self.stream.ready(interest) => {
                Ok(if ready?.is_readable() { Next::Read } else { Next::Look })
            }
            () = rung(self.pacer.as_ref()) => Ok(Next::Look),
            () = tokio::time::sleep_until(receipt.unwrap_or(now).into()), if receipt.is_some() => {
                Ok(Next::Look)
            }
        }
    }

    /// Reads what is there and deals with it; false when the client has gone.
    fn read(&mut self) -> anyhow::Result<bool> {
        self.inbound.reserve(READ / 2);
        if self.smsc.options.quickack {
            // Linux forgets it after a while.
            socket2::SockRef::from(&self.stream).set_tcp_quickack(true)?;
        }
        match self.stream.try_read_buf(&mut self.inbound) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(e) if e.kind() == WouldBlock => return Ok(true),
            Err(e) => return Err(e.into()),
        }
        let now = Instant::now();
        let (mut tally, mut responses) = (Tally::default(), BytesMut::new());
        while let Some(pdu) = pdu::take(&mut self.inbound)? {
            self.on_pdu(pdu, now, &mut tally, &mut responses);
        }
        self.respond(&tally, responses, now);
        self.smsc.count(tally, now);
        Ok(true)
    }

    /// Sends the responses to submits, now or when it is time.
    fn respond(&mut self, tally: &Tally, responses: BytesMut, now: Instant) {
        match &self.pacer {
            Some(pacer) if !responses.is_empty() => {
                let due = now + self.smsc.options.resp_delay();
                pacer.set(due);
                let count = u32::try_from(tally.submits).unwrap_or(u32::MAX);
                let held = Held { since: now, due, responses: count, bytes: responses };
                self.held.push_back(held);
            }
            _ => self.outbound.extend_from_slice(&responses),
        }
    }

    fn on_pdu(&mut self, pdu: Pdu, now: Instant, tally: &mut Tally, responses: &mut BytesMut) {
        let Pdu { command, status, sequence, .. } = pdu;
        const DELIVER_SM_RESP: u32 = pdu::DELIVER_SM | pdu::RESP;
        match command {
            pdu::SUBMIT_SM => {
                tally.submits += 1;
                match self.on_submit(pdu, now, tally) {
                    Ok(id) => {
                        let head = [pdu::SUBMIT_SM | pdu::RESP, 0, sequence];
                        pdu::put(responses, head, &[id.as_bytes(), b"\0"]);
                    }
                    Err(status) => {
                        tally.refused += 1;
                        pdu::put(responses, [pdu::SUBMIT_SM | pdu::RESP, status, sequence], &[]);
                    }
                }
            }
            DELIVER_SM_RESP => {
                self.unacknowledged = self.unacknowledged.saturating_sub(1);
                let count = if status == 0 { &mut tally.acks } else { &mut tally.nacks };
                *count += 1;
            }
            pdu::BIND_TRANSMITTER | pdu::BIND_TRANSCEIVER => {
                self.bound = Some(command);
                self.smsc.bound();
                pdu::put(&mut self.outbound, [command | pdu::RESP, 0, sequence], &[b"bench\0"]);
            }
            pdu::ENQUIRE_LINK | pdu::UNBIND => {
                self.closing |= command == pdu::UNBIND;
                pdu::put(&mut self.outbound, [command | pdu::RESP, 0, sequence], &[]);
            }
            _ => {
                tally.others += 1;
                if command & pdu::RESP == 0 {
                    let head = [pdu::GENERIC_NACK, pdu::ESME_RINVCMDID, sequence];
                    pdu::put(&mut self.outbound, head, &[]);
                }
            }
        }
    }

    /// The id of a submit that is taken, or the status that refuses it.
    fn on_submit(&mut self, pdu: Pdu, now: Instant, tally: &mut Tally) -> Result<String, u32> {
        if self.bound.is_none() {
            return Err(pdu::ESME_RINVBNDSTS);
        }
        if self.receipts.len() >= MOST_RECEIPTS {
            return Err(pdu::ESME_RTHROTTLED);
        }
        let submit = pdu::submit(pdu.body).ok_or(pdu::ESME_RSYSERR)?;
        if self.smsc.looks_at_recipients() {
            let number = submit.destination.digits.iter().fold(0u64, |number, digit| {
                number.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0')))
            });
            tally.recipients.push(number);
        }
        let id = self.smsc.fresh_id().to_string();
        let receipts = self.bound == Some(pdu::BIND_TRANSCEIVER) && !self.smsc.options.no_receipts;
        if receipts && submit.wants_receipt {
            let delay: Duration =
                self.smsc.options.resp_delay() + self.smsc.options.receipt_delay();
            self.receipts.push_back(Receipt {
                due: now + delay,
                id: id.clone(),
                from: submit.destination,
                to: submit.source,
            });
        }
        Ok(id)
    }
}

/// The pacer's next alarm; never, without a pacer.
async fn rung(pacer: Option<&Pacer>) {
    match pacer {
        Some(pacer) => pacer.rung().await,
        None => std::future::pending().await,
    }
}
