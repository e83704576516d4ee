//! One SMPP session of the minimal SMSC.

use crate::pacer::Pacer;
use crate::pdu::{self, BenchPdu, PduAddress};
use crate::smsc::{ReadCounts, Smsc};
use bytes::{Buf, BytesMut};
use std::collections::VecDeque;
use std::io::ErrorKind::WouldBlock;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// The size of the read buffer in bytes.
const READ: usize = 256 * 1024;
/// The number of unwritten bytes above which reading pauses.
const MAX_UNWRITTEN: usize = 16 << 20;
/// The maximum number of pending receipts; beyond it submits are throttled.
const MAX_RECEIPTS: usize = 1_000_000;

/// A receipt that is due at some time.
struct Receipt {
    due: Instant,
    id: String,
    from: PduAddress,
    to: PduAddress,
}

/// Delayed responses.
struct DelayedResponses {
    since: Instant,
    due: Instant,
    responses: u32,
    bytes: BytesMut,
}

/// One connection of a client.
pub(crate) struct BenchSession {
    stream: TcpStream,
    smsc: Arc<Smsc>,
    pacer: Option<Pacer>,
    inbound: BytesMut,
    outbound: BytesMut,
    receipts: VecDeque<Receipt>,
    held: VecDeque<DelayedResponses>,
    /// The number of receipts sent but not acknowledged.
    unacknowledged: usize,
    sequence: u32,
    /// The command id of the bind, once bound.
    bound: Option<u32>,
    closing: bool,
}

/// The next step of the session loop.
enum Next {
    Read,
    Check,
}

impl BenchSession {
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

    /// Serves the client until either side ends the session.
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

    /// Sends the delayed responses that are due.
    fn release(&mut self, now: Instant) {
        while self.held.front().is_some_and(|held| held.due <= now)
            && let Some(held) = self.held.pop_front()
        {
            self.outbound.extend_from_slice(&held.bytes);
            self.smsc.count_held(held.responses, now - held.since);
        }
    }

    fn can_send_receipt(&self) -> bool {
        self.unacknowledged < self.smsc.options.receipt_window
    }

    fn send_receipts(&mut self, now: Instant) {
        let mut sent = 0;
        while self.can_send_receipt()
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
        let interest = match (self.outbound.is_empty(), self.outbound.len() < MAX_UNWRITTEN) {
            (true, _) => Interest::READABLE,
            (false, true) => Interest::READABLE | Interest::WRITABLE,
            (false, false) => Interest::WRITABLE,
        };
        let receipt = self.receipts.front().filter(|_| self.can_send_receipt());
        let receipt = receipt.map(|receipt| receipt.due);
        tokio::select! {
            ready = self.stream.ready(interest) => {
                Ok(if ready?.is_readable() { Next::Read } else { Next::Check })
            }
            () = next_alarm(self.pacer.as_ref()) => Ok(Next::Check),
            () = tokio::time::sleep_until(receipt.unwrap_or(now).into()), if receipt.is_some() => {
                Ok(Next::Check)
            }
        }
    }

    /// Reads and handles available PDUs; returns false when the client has disconnected.
    fn read(&mut self) -> anyhow::Result<bool> {
        self.inbound.reserve(READ / 2);
        if self.smsc.options.quickack {
            // Linux resets this option after a while.
            socket2::SockRef::from(&self.stream).set_tcp_quickack(true)?;
        }
        match self.stream.try_read_buf(&mut self.inbound) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(e) if e.kind() == WouldBlock => return Ok(true),
            Err(e) => return Err(e.into()),
        }
        let now = Instant::now();
        let (mut read, mut responses) = (ReadCounts::default(), BytesMut::new());
        while let Some(pdu) = pdu::take(&mut self.inbound)? {
            self.on_pdu(pdu, now, &mut read, &mut responses);
        }
        self.respond(&read, responses, now);
        self.smsc.count(read, now);
        Ok(true)
    }

    /// Sends the responses to submits, immediately or after the configured delay.
    fn respond(&mut self, read: &ReadCounts, responses: BytesMut, now: Instant) {
        match &self.pacer {
            Some(pacer) if !responses.is_empty() => {
                let due = now + self.smsc.options.resp_delay();
                pacer.set(due);
                let count = u32::try_from(read.submits).unwrap_or(u32::MAX);
                let held = DelayedResponses { since: now, due, responses: count, bytes: responses };
                self.held.push_back(held);
            }
            _ => self.outbound.extend_from_slice(&responses),
        }
    }

    fn on_pdu(
        &mut self,
        pdu: BenchPdu,
        now: Instant,
        read: &mut ReadCounts,
        responses: &mut BytesMut,
    ) {
        let BenchPdu { command, status, sequence, .. } = pdu;
        const DELIVER_SM_RESP: u32 = pdu::DELIVER_SM | pdu::RESP;
        match command {
            pdu::SUBMIT_SM => {
                read.submits += 1;
                match self.on_submit(pdu, now, read) {
                    Ok(id) => {
                        let head = [pdu::SUBMIT_SM | pdu::RESP, 0, sequence];
                        pdu::put(responses, head, &[id.as_bytes(), b"\0"]);
                    }
                    Err(status) => {
                        read.refused += 1;
                        pdu::put(responses, [pdu::SUBMIT_SM | pdu::RESP, status, sequence], &[]);
                    }
                }
            }
            DELIVER_SM_RESP => {
                self.unacknowledged = self.unacknowledged.saturating_sub(1);
                let count = if status == 0 { &mut read.acks } else { &mut read.nacks };
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
                read.others += 1;
                if command & pdu::RESP == 0 {
                    let head = [pdu::GENERIC_NACK, pdu::ESME_RINVCMDID, sequence];
                    pdu::put(&mut self.outbound, head, &[]);
                }
            }
        }
    }

    /// Returns the message id of an accepted submit, or the status with which it is rejected.
    fn on_submit(
        &mut self,
        pdu: BenchPdu,
        now: Instant,
        read: &mut ReadCounts,
    ) -> Result<String, u32> {
        if self.bound.is_none() {
            return Err(pdu::ESME_RINVBNDSTS);
        }
        if self.receipts.len() >= MAX_RECEIPTS {
            return Err(pdu::ESME_RTHROTTLED);
        }
        let submit = pdu::submit(pdu.body).ok_or(pdu::ESME_RSYSERR)?;
        if self.smsc.tracks_recipients() {
            let number = submit.destination.digits.iter().fold(0u64, |number, digit| {
                number.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0')))
            });
            read.recipients.push(number);
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

/// Waits for the next alarm of the pacer; pending forever without a pacer.
async fn next_alarm(pacer: Option<&Pacer>) {
    match pacer {
        Some(pacer) => pacer.fired().await,
        None => std::future::pending().await,
    }
}
