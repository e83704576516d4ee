//! What the SMSC says in a session, and what is said back.

use crate::carrier::{Ack, Event, Handle};
use crate::smpp::body::{ShortMessage, leading_text};
use crate::smpp::command::{id, status};
use crate::smpp::end::End;
use crate::smpp::pdu::{self, Head, Pdu};
use crate::smpp::receipt::{self, Delivery};
use crate::smpp::session::{MAX_UNACKNOWLEDGED, Session};
use crate::smpp::status as verdict;
use crate::smpp::text;
use heliograph_domain::submission::Outcome;
use tokio::time::Instant;

impl Session<'_> {
    /// Handles every whole PDU that was read.
    pub(super) fn read(&mut self) -> Result<(), End> {
        let now = Instant::now();
        let inbound = self.link.lend();
        let mut rest = inbound.as_ref();
        let mut whole = 0;
        let result = loop {
            let handled = match pdu::take(&mut rest) {
                Ok(Some(pdu)) => self.handle(&pdu, now),
                Ok(None) => break Ok(()),
                Err(bad) => Err(bad.into()),
            };
            if handled.is_err() {
                break handled;
            }
            whole += 1;
        };
        let left = rest.len();
        self.pulse.heard(now, whole, left > 0);
        self.link.give_back(inbound, left);
        result
    }

    fn handle(&mut self, pdu: &Pdu<'_>, now: Instant) -> Result<(), End> {
        let head = pdu.head;
        match head.command {
            id::SUBMIT_SM_RESP | id::GENERIC_NACK => self.answered(pdu, now),
            id::DELIVER_SM => self.delivered(pdu),
            id::ENQUIRE_LINK => self.respond(head, status::ESME_ROK),
            id::UNBIND => {
                self.respond(head, status::ESME_ROK);
                return Err(End::Unbound);
            }
            id::UNBIND_RESP if self.leaving.is_some() => return Err(End::Unbound),
            // These have no response, or are one that needed no more than being heard.
            id::OUTBIND | id::ALERT_NOTIFICATION => {}
            _ if head.is_response() => {}
            _ => pdu::put_bare(&mut self.link.outbound, head.nack(status::ESME_RINVCMDID)),
        }
        Ok(())
    }

    fn respond(&mut self, head: Head, status: u32) {
        pdu::put_bare(&mut self.link.outbound, head.response(status));
    }

    /// A submit_sm_resp, or a generic_nack in its place. One that answers nothing is passed over:
    /// it belongs to an earlier session, or to an enquire_link.
    fn answered(&mut self, pdu: &Pdu<'_>, now: Instant) {
        let Some(flight) = self.window.remove(pdu.head.sequence) else {
            return;
        };
        let outcome = match (pdu.head.command, pdu.head.status) {
            (id::GENERIC_NACK, status::ESME_ROK) => verdict::outcome(status::ESME_RUNKNOWNERR, b""),
            (_, status) => verdict::outcome(status, leading_text(pdu.body)),
        };
        match outcome {
            Outcome::Accepted { .. } => self.served = true,
            Outcome::Throttled => {
                self.pace.pause(now);
                self.line.condition.throttled();
            }
            // ESME_RINVBNDSTS. The others get their answers before the link is closed.
            Outcome::NotSent if self.leaving.is_none() => {
                self.leave(false, self.options.enquire_timeout);
            }
            _ => {}
        }
        self.outbox.submitted(flight.token, flight.part, outcome);
    }

    fn delivered(&mut self, pdu: &Pdu<'_>) {
        let Some(message) = ShortMessage::decode(pdu.body) else {
            self.warn("a deliver_sm could not be decoded and was refused");
            return self.acknowledge_now(pdu.head, status::ESME_RX_P_APPN);
        };
        match receipt::read(&message) {
            Delivery::Receipt(_) | Delivery::Message if self.is_overfull() => {
                self.acknowledge_now(pdu.head, status::ESME_RX_T_APPN);
            }
            Delivery::Receipt(receipt) => {
                let handle = self.owed(pdu.head);
                self.outbox.push(Event::Receipt { handle, receipt });
            }
            Delivery::Message => {
                let handle = self.owed(pdu.head);
                let incoming = text::incoming(&message, self.options.labelled);
                self.outbox.push(Event::Message { handle, incoming });
            }
            Delivery::Passing => self.acknowledge_now(pdu.head, status::ESME_ROK),
            Delivery::Unreadable => {
                self.warn("a receipt named no message or no verdict and was passed over");
                self.acknowledge_now(pdu.head, status::ESME_ROK);
            }
        }
    }

    /// Names a deliver_sm that the engine has to answer.
    fn owed(&mut self, head: Head) -> Handle {
        self.served = true;
        self.unacknowledged += 1;
        Handle { session: self.number, sequence: head.sequence }
    }

    /// Whether receipts and messages have to wait at the SMSC: the engine owes too many answers, or the session
    /// is about to unbind.
    fn is_overfull(&self) -> bool {
        self.unacknowledged >= MAX_UNACKNOWLEDGED
            || self.outbox.others() >= MAX_UNACKNOWLEDGED
            || (self.leaving.is_some() && self.window.is_empty())
    }

    /// The engine's answers become deliver_sm_resp. Those to an earlier session are dropped: its
    /// SMSC sends what they were about again anyway.
    pub(super) fn acknowledge(&mut self, acks: &[Ack]) {
        let number = self.number;
        for ack in acks.iter().filter(|ack| ack.handle.session == number) {
            self.unacknowledged = self.unacknowledged.saturating_sub(1);
            let status = match ack.committed {
                true => status::ESME_ROK,
                false => status::ESME_RX_T_APPN,
            };
            self.acknowledge_now(Head::request(id::DELIVER_SM, ack.handle.sequence), status);
        }
    }

    /// deliver_sm_resp (SMPP 3.4 §4.6.2) has an empty message_id.
    fn acknowledge_now(&mut self, head: Head, status: u32) {
        pdu::put_id(&mut self.link.outbound, head.response(status), b"");
    }

    /// Once a session: an SMSC that does it once does it a thousand times.
    fn warn(&mut self, what: &str) {
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(carrier = %self.options.name, "{what}");
        }
    }
}
