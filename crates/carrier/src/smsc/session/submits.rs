//! Handles submit_sm: the response, the receipts, the handset and its automatic reply.

use crate::smpp::body::ShortMessage;
use crate::smpp::command::{esm, status};
use crate::smpp::pdu::{self, Pdu, PduHeader};
use crate::smpp::text::{self, DecodedPart};
use crate::smsc::address::{FixedText, StoredAddress};
use crate::smsc::behaviour::{Behaviour, FinalState, ReceiptTiming};
use crate::smsc::delivery::PendingDelivery;
use crate::smsc::handset::{HandsetMessage, ReplyRoute};
use crate::smsc::journal::JournalEntry;
use crate::smsc::receipt::SimulatedReceipt;
use crate::smsc::reply::ReplyPart;
use crate::smsc::session::{Closed, ServerSession};
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::split_udh;
use std::time::Duration;
use tokio::time::Instant;

/// The delay of a submit_sm_resp that arrives after its receipt.
const EARLY_RECEIPT_LEAD: Duration = Duration::from_millis(100);

impl ServerSession<'_> {
    pub(super) fn submit(&mut self, pdu: &Pdu<'_>, now: Instant) -> Result<(), Closed> {
        self.submits += 1;
        match ShortMessage::decode(pdu.body) {
            None => self.respond(pdu.header, status::ESME_RINVCMDLEN, None, None),
            Some(message) => self.process(pdu.header, &message, now),
        }
        if self.submits == self.smsc.options.disconnect_every {
            self.truncate_output();
            return Err(Closed);
        }
        Ok(())
    }

    fn process(&mut self, header: PduHeader, message: &ShortMessage<'_>, now: Instant) {
        let options = &self.smsc.options;
        let behaviour = Behaviour::for_number(message.destination.digits);
        let refusal = self.refusal(message, &behaviour, now);
        let id = refusal.is_none().then(|| self.smsc.next_id());
        let status = refusal.unwrap_or(status::ESME_ROK);
        self.journal_submit(message, id, status);
        let mut until = (!options.resp_delay.is_zero()).then(|| now + options.resp_delay);
        let response_at = until.unwrap_or(now);
        if let Some(id) = id {
            let due = match behaviour.timing {
                ReceiptTiming::Usual => response_at + options.receipt_delay,
                ReceiptTiming::After(delay) => response_at + delay,
                ReceiptTiming::Early => now,
            };
            self.schedule_receipts(id, message, &behaviour, due);
            self.deliver_to_handset(message, &behaviour, due);
            if behaviour.timing == ReceiptTiming::Early {
                until = Some(response_at + EARLY_RECEIPT_LEAD);
            }
            if self.smsc.drops_response() {
                return;
            }
        }
        self.respond(header, status, id, until);
    }

    fn refusal(
        &mut self,
        message: &ShortMessage<'_>,
        behaviour: &Behaviour,
        now: Instant,
    ) -> Option<u32> {
        let refusal = match &self.role {
            Some(role) if role.sends && role.queue.is_full() => Some(status::ESME_RMSGQFUL),
            Some(role) if role.sends => {
                let number = message.destination.digits;
                self.smsc.refusal((text::label(message), number), behaviour, now)
            }
            _ => Some(status::ESME_RINVBNDSTS),
        };
        refusal.or_else(|| self.is_random_error().then_some(status::ESME_RSYSERR))
    }

    /// Responds at once, or at `until`.
    fn respond(&mut self, header: PduHeader, status: u32, id: Option<u64>, until: Option<Instant>) {
        let text = match id {
            None => FixedText::<20>::new(b""),
            Some(id) if self.smsc.options.hex_ids => FixedText::print(format_args!("{id:X}")),
            Some(id) => FixedText::print(format_args!("{id}")),
        };
        let out = match until {
            Some(until) => self.delayed.entry(until).or_default(),
            None => &mut self.link.outbound,
        };
        pdu::put_message_id(out, header.response(status), text.as_bytes());
    }

    /// Schedules the receipts of an accepted message that requests them (SMPP 3.4 §5.2.17).
    fn schedule_receipts(
        &mut self,
        id: u64,
        message: &ShortMessage<'_>,
        behaviour: &Behaviour,
        due: Instant,
    ) {
        let failed = behaviour.state != FinalState::Delivered;
        let wanted = match message.registered_delivery & 3 {
            1 => true,
            2 => failed,
            _ => false,
        };
        if !wanted || self.smsc.options.no_receipts {
            return;
        }
        let submitted = self.date();
        for _ in 0..behaviour.receipts {
            let receipt = SimulatedReceipt {
                id,
                originator: message.source.into(),
                handset: message.destination.into(),
                state: behaviour.state,
                submitted,
                excerpt: excerpt(message),
            };
            self.new_deliveries.push((due, Box::new(PendingDelivery::Receipt(receipt))));
        }
    }

    /// Writes a journal entry for the submit.
    fn journal_submit(&self, message: &ShortMessage<'_>, id: Option<u64>, status: u32) {
        let Some(journal) = &self.smsc.journal else { return };
        let part = DecodedPart::decode(message);
        journal.write(&JournalEntry {
            at: self.smsc.clock.now().millis(),
            event: match id {
                Some(_) => "accepted",
                None => "refused",
            },
            destination: &String::from_utf8_lossy(message.destination.digits),
            source: &String::from_utf8_lossy(message.source.digits),
            text: Some(&part.text),
            part: Some(part.concat.map_or(1, |concat| concat.sequence)),
            parts: Some(part.concat.map_or(1, |concat| concat.total)),
            id: id.map(|id| id.to_string()),
            status,
        });
    }

    /// Delivers an accepted message to its handset and schedules an automatic reply at `due`.
    fn deliver_to_handset(
        &mut self,
        message: &ShortMessage<'_>,
        behaviour: &Behaviour,
        due: Instant,
    ) {
        let options = &self.smsc.options;
        if behaviour.state != FinalState::Delivered
            || (options.keep_messages == 0 && behaviour.auto_reply.is_none())
        {
            return;
        }
        let to = std::str::from_utf8(message.destination.digits).ok();
        let Some((role, to)) = self.role.as_ref().zip(to.and_then(Recipient::from_digits)) else {
            return;
        };
        let part = DecodedPart::decode(message);
        let received = HandsetMessage {
            from: String::from_utf8_lossy(message.source.digits).into_owned(),
            to,
            text: part.text,
            parts: part.concat.map_or(1, |concat| concat.total),
            at: self.smsc.clock.now(),
        };
        let (address, label) = (StoredAddress::from(message.source), text::label(message));
        let route = ReplyRoute { address, queue: role.queue.clone(), label };
        let complete = options.handsets.receive(received, part.concat, route);
        if let Some(text) = behaviour.auto_reply.filter(|_| complete) {
            let [.., reference] = self.smsc.next_id().to_be_bytes();
            let parts =
                ReplyPart::parts(StoredAddress::handset(to), address, text, reference, label)
                    .into_iter();
            self.new_deliveries
                .extend(parts.map(|part| (due, Box::new(PendingDelivery::Reply(part)))));
        }
    }

    fn is_random_error(&mut self) -> bool {
        let rate = self.smsc.options.error_rate;
        rate > 0.0 && self.random() < rate
    }

    /// Returns a pseudo-random number, uniform in 0..1 (xorshift64*).
    fn random(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let mixed = self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        f64::from(u32::try_from(mixed).unwrap_or(u32::MAX)) / (f64::from(u32::MAX) + 1.0)
    }

    /// Drops the second half of the output, so that the connection most likely ends inside a PDU.
    fn truncate_output(&mut self) {
        let half = self.link.outbound.len() / 2;
        self.link.outbound.truncate(half);
    }
}

/// Returns the start of the text for a receipt; empty unless it is in GSM 7-bit.
fn excerpt(message: &ShortMessage<'_>) -> FixedText<20> {
    let text = match message.esm_class & esm::UDH {
        0 => message.text,
        _ => split_udh(message.text).map_or(&[][..], |(_, text)| text),
    };
    match message.data_coding {
        0 => FixedText::new(text),
        _ => FixedText::new(b""),
    }
}
