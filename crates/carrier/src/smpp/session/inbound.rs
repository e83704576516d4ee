//! Handles the PDUs from the SMSC and writes the responses.

use crate::carrier::{Ack, AckResult, CarrierEvent, DeliverSmHandle};
use crate::smpp::body::{ShortMessage, leading_text};
use crate::smpp::close_reason::CloseReason;
use crate::smpp::command::{id, status};
use crate::smpp::pdu::{self, Pdu, PduHeader};
use crate::smpp::receipt::{self, DeliverSm};
use crate::smpp::session::{ClientSession, MAX_UNACKNOWLEDGED};
use crate::smpp::status as carrier_status;
use crate::smpp::text;
use heliograph_domain::receipt::MAX_ID;
use heliograph_domain::submission::SubmitOutcome;
use tokio::time::Instant;

impl ClientSession<'_> {
    /// Handles every complete PDU that was read.
    pub(super) fn read(&mut self) -> Result<(), CloseReason> {
        let now = Instant::now();
        let inbound = self.link.take_inbound();
        let mut rest = inbound.as_ref();
        let mut complete = 0;
        let result = loop {
            let handled = match pdu::take(&mut rest) {
                Ok(Some(pdu)) => self.handle(&pdu, now),
                Ok(None) => break Ok(()),
                Err(bad) => Err(bad.into()),
            };
            if handled.is_err() {
                break handled;
            }
            complete += 1;
        };
        let left = rest.len();
        self.keepalive.on_read(now, complete, left > 0);
        self.link.return_inbound(inbound, left);
        result
    }

    fn handle(&mut self, pdu: &Pdu<'_>, now: Instant) -> Result<(), CloseReason> {
        let header = pdu.header;
        match header.command {
            id::SUBMIT_SM_RESP | id::GENERIC_NACK => self.answered(pdu, now),
            id::DELIVER_SM => self.delivered(pdu),
            id::ENQUIRE_LINK => self.respond(header, status::ESME_ROK),
            id::UNBIND => {
                self.respond(header, status::ESME_ROK);
                return Err(CloseReason::PeerUnbound);
            }
            id::UNBIND_RESP if self.draining.is_some() => return Err(CloseReason::PeerUnbound),
            // Requests without a response, and responses that need no action.
            id::OUTBIND | id::ALERT_NOTIFICATION => {}
            _ if header.is_response() => {}
            _ => pdu::put_header(&mut self.link.outbound, header.nack(status::ESME_RINVCMDID)),
        }
        Ok(())
    }

    fn respond(&mut self, header: PduHeader, status: u32) {
        pdu::put_header(&mut self.link.outbound, header.response(status));
    }

    /// Handles a submit_sm_resp (SMPP 3.4 §4.4.2) or a generic_nack in its place. A response
    /// without a pending submission is ignored: it belongs to an earlier session or to an
    /// enquire_link.
    fn answered(&mut self, pdu: &Pdu<'_>, now: Instant) {
        let Some(pending) = self.window.remove(pdu.header.sequence) else {
            return;
        };
        let options = self.options;
        let map = &options.status_map;
        let outcome = match (pdu.header.command, pdu.header.status) {
            (id::GENERIC_NACK, status) => carrier_status::nack_outcome(map, status),
            (_, status::ESME_ROK) => {
                carrier_status::outcome(map, status::ESME_ROK, self.message_id(pdu.body))
            }
            (_, status) => carrier_status::outcome(map, status, b""),
        };
        match outcome {
            SubmitOutcome::Accepted { .. } => self.served = true,
            SubmitOutcome::Throttled => {
                // The simulated SMSC throttles a single test number: a pause would delay the test
                // messages of all accounts.
                if !self.options.labelled {
                    self.limiter.pause(now);
                }
                self.channels.link_status.mark_throttled();
            }
            // ESME_RINVBNDSTS. Wait for the other responses before the link is closed.
            SubmitOutcome::NotSent if self.draining.is_none() => {
                self.drain(false, self.options.enquire_timeout);
            }
            _ => {}
        }
        self.event_queue.push_outcome(pending.token, pending.part, outcome);
    }

    /// Returns the message_id of a submit_sm_resp. One that is longer than the field (SMPP 3.4
    /// §5.2.23) is dropped: the part counts as accepted, but its receipts cannot be matched.
    fn message_id<'b>(&mut self, body: &'b [u8]) -> &'b [u8] {
        let id = leading_text(body);
        if id.len() <= MAX_ID {
            return id;
        }
        if !std::mem::replace(&mut self.warned_of_long_id, true) {
            tracing::warn!(
                carrier = %self.options.name,
                octets = id.len(),
                "message id of the carrier is too long, its receipts cannot be matched"
            );
        }
        b""
    }

    fn delivered(&mut self, pdu: &Pdu<'_>) {
        let Some(message) = ShortMessage::decode(pdu.body) else {
            self.warn("malformed deliver_sm refused");
            return self.acknowledge_now(pdu.header, status::ESME_RX_P_APPN);
        };
        match receipt::classify(&message) {
            DeliverSm::Receipt(_) | DeliverSm::Message if self.is_overfull() => {
                self.acknowledge_now(pdu.header, status::ESME_RX_T_APPN);
            }
            DeliverSm::Receipt(receipt) => {
                let handle = self.expect_ack(pdu.header);
                self.event_queue.push(CarrierEvent::Receipt { handle, receipt });
            }
            DeliverSm::Message => {
                let handle = self.expect_ack(pdu.header);
                let incoming = text::inbound_message(&message, self.options.labelled);
                self.event_queue.push(CarrierEvent::Message { handle, incoming });
            }
            DeliverSm::Intermediate => self.acknowledge_now(pdu.header, status::ESME_ROK),
            DeliverSm::Unreadable => {
                self.warn("receipt without a usable message id or state ignored");
                self.acknowledge_now(pdu.header, status::ESME_ROK);
            }
        }
    }

    /// Counts a deliver_sm that the engine has to acknowledge, and returns its handle.
    fn expect_ack(&mut self, header: PduHeader) -> DeliverSmHandle {
        self.served = true;
        self.unacknowledged += 1;
        DeliverSmHandle { session: self.number, sequence: header.sequence }
    }

    /// Returns whether receipts and inbound messages must wait at the SMSC: too many acks of the
    /// engine are missing, or the session is about to unbind.
    fn is_overfull(&self) -> bool {
        self.unacknowledged >= MAX_UNACKNOWLEDGED
            || self.event_queue.deliveries() >= MAX_UNACKNOWLEDGED
            || (self.draining.is_some() && self.window.is_empty())
    }

    /// Sends a deliver_sm_resp for each ack. Acks for an earlier session are dropped, since the
    /// SMSC sends those deliver_sm again.
    pub(super) fn acknowledge(&mut self, acks: &[Ack]) {
        let number = self.number;
        for ack in acks.iter().filter(|ack| ack.handle.session == number) {
            self.unacknowledged = self.unacknowledged.saturating_sub(1);
            let status = match ack.result {
                AckResult::Committed => status::ESME_ROK,
                AckResult::Retry => status::ESME_RX_T_APPN,
                AckResult::Rejected => status::ESME_RX_P_APPN,
            };
            self.acknowledge_now(PduHeader::request(id::DELIVER_SM, ack.handle.sequence), status);
        }
    }

    /// Sends a deliver_sm_resp, whose message_id is always empty (SMPP 3.4 §4.6.2).
    fn acknowledge_now(&mut self, header: PduHeader, status: u32) {
        pdu::put_message_id(&mut self.link.outbound, header.response(status), b"");
    }

    /// Logs a warning at most once per session, because a faulty SMSC repeats its faults.
    fn warn(&mut self, message: &str) {
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(carrier = %self.options.name, "{message}");
        }
    }
}
