//! How a submit_sm is answered, and what it leads to.

use crate::smpp::body::ShortMessage;
use crate::smpp::command::{esm, status};
use crate::smpp::pdu::{self, Head, Pdu};
use crate::smpp::text::{self, Part};
use crate::smsc::behaviour::{Behaviour, State, Timing};
use crate::smsc::delivery::Delivery;
use crate::smsc::handset::{HandsetMessage, Sender};
use crate::smsc::journal::Entry;
use crate::smsc::party::{Party, Text};
use crate::smsc::receipt::Receipt;
use crate::smsc::reply::Reply;
use crate::smsc::session::{Over, Session};
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::split_udh;
use std::time::Duration;
use tokio::time::Instant;

/// How long an answer is held back that its receipt shall overtake.
const OVERTAKEN: Duration = Duration::from_millis(100);

impl Session<'_> {
    pub(super) fn submit(&mut self, pdu: &Pdu<'_>, now: Instant) -> Result<(), Over> {
        self.submits += 1;
        match ShortMessage::decode(pdu.body) {
            None => self.answer(pdu.head, status::ESME_RINVCMDLEN, None, None),
            Some(message) => self.judge(pdu.head, &message, now),
        }
        if self.submits == self.smsc.options.disconnect_every {
            self.cut();
            return Err(Over);
        }
        Ok(())
    }

    fn judge(&mut self, head: Head, message: &ShortMessage<'_>, now: Instant) {
        let options = &self.smsc.options;
        let behaviour = Behaviour::of(message.destination.digits);
        let refusal = self.refusal(message, &behaviour, now);
        let id = refusal.is_none().then(|| self.smsc.next_id());
        let status = refusal.unwrap_or(status::ESME_ROK);
        self.note(message, id, status);
        let mut until = (!options.resp_delay.is_zero()).then(|| now + options.resp_delay);
        let answered = until.unwrap_or(now);
        if let Some(id) = id {
            let due = match behaviour.timing {
                Timing::Usual => answered + options.receipt_delay,
                Timing::After(delay) => answered + delay,
                Timing::Early => now,
            };
            self.promise(id, message, &behaviour, due);
            self.show(message, &behaviour, due);
            if behaviour.timing == Timing::Early {
                until = Some(answered + OVERTAKEN);
            }
            if self.smsc.loses_answer() {
                return;
            }
        }
        self.answer(head, status, id, until);
    }

    fn refusal(
        &mut self,
        message: &ShortMessage<'_>,
        behaviour: &Behaviour,
        now: Instant,
    ) -> Option<u32> {
        let refusal = match &self.role {
            Some(role) if role.sends && role.mailbox.is_full() => Some(status::ESME_RMSGQFUL),
            Some(role) if role.sends => {
                let number = message.destination.digits;
                self.smsc.refuses(number, behaviour, now)
            }
            _ => Some(status::ESME_RINVBNDSTS),
        };
        refusal.or_else(|| self.is_unlucky().then_some(status::ESME_RSYSERR))
    }

    /// Answers at once, or not before `until`.
    fn answer(&mut self, head: Head, status: u32, id: Option<u64>, until: Option<Instant>) {
        let text = match id {
            None => Text::<20>::new(b""),
            Some(id) if self.smsc.options.hex_ids => Text::print(format_args!("{id:X}")),
            Some(id) => Text::print(format_args!("{id}")),
        };
        let out = match until {
            Some(until) => self.held.entry(until).or_default(),
            None => &mut self.link.outbound,
        };
        pdu::put_id(out, head.response(status), text.as_bytes());
    }

    /// Puts the receipts of an accepted message on their way, if it asked for any (SMPP 3.4 §5.2.17).
    fn promise(
        &mut self,
        id: u64,
        message: &ShortMessage<'_>,
        behaviour: &Behaviour,
        due: Instant,
    ) {
        let failed = behaviour.state != State::Delivered;
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
            let receipt = Receipt {
                id,
                originator: message.source.into(),
                handset: message.destination.into(),
                state: behaviour.state,
                submitted,
                excerpt: excerpt(message),
            };
            self.posted.push((due, Box::new(Delivery::Receipt(receipt))));
        }
    }

    /// For those who want to know afterwards.
    fn note(&self, message: &ShortMessage<'_>, id: Option<u64>, status: u32) {
        let Some(journal) = &self.smsc.journal else { return };
        let part = Part::of(message);
        journal.write(&Entry {
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

    /// The handset receives an accepted message; if its owner answers each, this one at `due`.
    fn show(&mut self, message: &ShortMessage<'_>, behaviour: &Behaviour, due: Instant) {
        let options = &self.smsc.options;
        if behaviour.state != State::Delivered
            || (options.keep_messages == 0 && behaviour.answer.is_none())
        {
            return;
        }
        let to = std::str::from_utf8(message.destination.digits).ok();
        let Some((role, to)) = self.role.as_ref().zip(to.and_then(Recipient::from_digits)) else {
            return;
        };
        let part = Part::of(message);
        let shown = HandsetMessage {
            from: String::from_utf8_lossy(message.source.digits).into_owned(),
            to,
            text: part.text,
            parts: part.concat.map_or(1, |concat| concat.total),
            at: self.smsc.clock.now(),
        };
        let (party, label) = (Party::from(message.source), text::label(message));
        let sender = Sender { party, mailbox: role.mailbox.clone(), label };
        let whole = options.handsets.receive(shown, part.concat, sender);
        if let Some(text) = behaviour.answer.filter(|_| whole) {
            let [.., reference] = self.smsc.next_id().to_be_bytes();
            let parts = Reply::parts(Party::handset(to), party, text, reference, label).into_iter();
            self.posted.extend(parts.map(|part| (due, Box::new(Delivery::Reply(part)))));
        }
    }

    fn is_unlucky(&mut self) -> bool {
        let rate = self.smsc.options.error_rate;
        rate > 0.0 && self.random() < rate
    }

    /// Uniform in 0..1 (xorshift64*).
    fn random(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let mixed = self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        f64::from(u32::try_from(mixed).unwrap_or(u32::MAX)) / (f64::from(u32::MAX) + 1.0)
    }

    /// Says half of what there is to say, most likely up to the middle of a PDU.
    fn cut(&mut self) {
        let half = self.link.outbound.len() / 2;
        self.link.outbound.truncate(half);
    }
}

/// How the text begins, where it can stand in a receipt's text as it is.
fn excerpt(message: &ShortMessage<'_>) -> Text<20> {
    let text = match message.esm_class & esm::UDH {
        0 => message.text,
        _ => split_udh(message.text).map_or(&[][..], |(_, text)| text),
    };
    match message.data_coding {
        0 => Text::new(text),
        _ => Text::new(b""),
    }
}
