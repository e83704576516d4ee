//! One bound session: a single task that owns the socket, fills the window and reads responses.

mod inbound;

use crate::carrier::CarrierChannels;
use crate::smpp::close_reason::CloseReason;
use crate::smpp::command::id;
use crate::smpp::event_queue::EventQueue;
use crate::smpp::keepalive::Keepalive;
use crate::smpp::link::{IoEvent, SmppLink};
use crate::smpp::options::SmppOptions;
use crate::smpp::pdu::{self, PduHeader};
use crate::smpp::rate::RateLimiter;
use crate::smpp::submit;
use crate::smpp::timer::Timer;
use crate::smpp::window::Window;
use crate::stop::stopped;
use heliograph_domain::submission::{Submission, SubmitOutcome};
use std::time::Duration;
use tokio::time::Instant;

/// The maximum number of receipts and inbound messages without an ack from the engine. Beyond it,
/// the session answers deliver_sm with ESME_RX_T_APPN, so that the SMSC sends them again later.
pub(crate) const MAX_UNACKNOWLEDGED: usize = 4096;

/// The highest sequence_number of a request (SMPP 3.4 §5.1.4).
const MAX_SEQUENCE: u32 = 0x7FFF_FFFF;

/// The end of a session.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) reason: CloseReason,
    /// True when the SMSC accepted or delivered anything, which resets the reconnect back-off.
    pub(crate) served: bool,
}

/// The state of a session that is draining: it submits nothing new, but waits for responses.
#[derive(Debug)]
struct Draining {
    until: Instant,
    /// True when the node shuts down, not only this session.
    shutdown: bool,
    /// True when unbind was sent.
    unbind_sent: bool,
}

/// A session over a bound link.
pub(crate) struct ClientSession<'a> {
    options: &'a SmppOptions,
    channels: &'a mut CarrierChannels,
    event_queue: &'a mut EventQueue,
    link: SmppLink,
    number: u64,
    sequence: u32,
    window: Window,
    limiter: RateLimiter,
    keepalive: Keepalive,
    unacknowledged: usize,
    draining: Option<Draining>,
    /// True when the submission channel is closed and empty.
    exhausted: bool,
    served: bool,
    warned: bool,
    warned_of_long_id: bool,
    timer: Timer,
}

impl<'a> ClientSession<'a> {
    /// Creates the session over a bound `link`. The bind used sequence_number 1.
    pub(crate) fn new(
        options: &'a SmppOptions,
        channels: &'a mut CarrierChannels,
        event_queue: &'a mut EventQueue,
        link: SmppLink,
        number: u64,
    ) -> Self {
        let now = Instant::now();
        Self {
            options,
            channels,
            event_queue,
            link,
            number,
            sequence: 1,
            window: Window::new(options.window),
            limiter: RateLimiter::new(options.rate, now),
            keepalive: Keepalive::new(now),
            unacknowledged: 0,
            draining: None,
            exhausted: false,
            served: false,
            warned: false,
            warned_of_long_id: false,
            timer: Timer::new(),
        }
    }

    /// Runs until the session ends. Submissions without a response are reported as in doubt.
    pub(crate) async fn run(mut self) -> Ended {
        let mut result = self.read();
        while result.is_ok() {
            result = self.turn().await;
        }
        // Send the last PDUs (an unbind_resp, some deliver_sm_resp) if the socket accepts them.
        let _ = self.link.flush();
        for pending in self.window.drain() {
            self.event_queue.push_outcome(pending.token, pending.part, SubmitOutcome::InDoubt);
        }
        let reason = match (self.draining, result) {
            (Some(draining), _) if draining.shutdown => CloseReason::Shutdown,
            (None, Err(reason)) => reason,
            _ => CloseReason::BindStateLost,
        };
        Ended { reason, served: self.served }
    }

    /// Does all work that is ready, then waits for the next event.
    async fn turn(&mut self) -> Result<(), CloseReason> {
        let now = Instant::now();
        self.check(now)?;
        while let Ok(acks) = self.channels.acks.try_recv() {
            self.acknowledge(&acks);
        }
        self.take_waiting(now);
        self.channels.link_status.set_unanswered(self.window.len());
        self.event_queue.try_flush()?;
        self.unbind_when_drained(now)?;
        self.link.flush()?;
        self.arm(now);
        let takes = self.takes(now);
        let runs = !self.is_stopping();
        tokio::select! {
            biased;
            // First, so that a busy SMSC can't delay the shutdown.
            () = stopped(&mut self.channels.stop), if runs => self.stop(),
            turn = self.link.next_io() => if turn? == IoEvent::Read {
                self.read()?;
            },
            sent = self.event_queue.flush(), if !self.event_queue.is_empty() => sent?,
            Some(acks) = self.channels.acks.recv() => self.acknowledge(&acks),
            next = self.channels.submissions.recv(), if takes => match next {
                Some(submission) => self.submit(&submission, Instant::now()),
                None => self.exhaust(),
            },
            () = self.timer.wait() => {}
        }
        Ok(())
    }

    /// Checks the response time-out and the keep-alive.
    fn check(&mut self, now: Instant) -> Result<(), CloseReason> {
        if self.window.overdue(now, self.options.response_timeout) {
            return Err(CloseReason::ResponseTimeout(self.options.response_timeout));
        }
        if self.keepalive.enquire_due(now, self.options)? {
            let header = PduHeader::request(id::ENQUIRE_LINK, self.next_sequence());
            pdu::put_header(&mut self.link.outbound, header);
        }
        Ok(())
    }

    /// Sends unbind (SMPP 3.4 §4.2.1) when the session is draining and nothing is outstanding on
    /// either side.
    fn unbind_when_drained(&mut self, now: Instant) -> Result<(), CloseReason> {
        let drained = self.is_drained();
        let Some(draining) = &mut self.draining else {
            return Ok(());
        };
        if now >= draining.until {
            return Err(CloseReason::Shutdown);
        }
        if drained && !draining.unbind_sent {
            draining.unbind_sent = true;
            draining.until = draining.until.min(now + self.options.enquire_timeout);
            let header = PduHeader::request(id::UNBIND, self.next_sequence());
            pdu::put_header(&mut self.link.outbound, header);
        }
        Ok(())
    }

    fn is_drained(&self) -> bool {
        let acks_missing = self.unacknowledged > 0 && !self.channels.acks.is_closed();
        self.window.is_empty() && self.event_queue.is_empty() && !acks_missing
    }

    /// Sets the timer to the earliest deadline.
    fn arm(&mut self, now: Instant) {
        let mut next = self.keepalive.deadline(self.options);
        let others = [
            self.window.deadline(self.options.response_timeout),
            self.draining.as_ref().map(|draining| draining.until),
            (self.room() > 0 && !self.limiter.may_send(now)).then(|| self.limiter.ready_at(now)),
        ];
        for at in others.into_iter().flatten() {
            next = next.min(at);
        }
        self.timer.set(next);
    }

    fn take_waiting(&mut self, now: Instant) {
        while self.takes(now) {
            match self.channels.submissions.try_recv() {
                Ok(submission) => self.submit(&submission, now),
                Err(_) => return,
            }
        }
    }

    /// Returns whether a submission may be received now. During shutdown the session receives all
    /// of them and answers `NotSent`.
    fn takes(&mut self, now: Instant) -> bool {
        match &self.draining {
            None => self.room() > 0 && self.limiter.may_send(now),
            Some(draining) => draining.shutdown && !self.exhausted,
        }
    }

    /// Returns the free places in the window. Outcomes that the engine has not received yet count
    /// like submissions without a response.
    fn room(&self) -> usize {
        self.window.room().saturating_sub(self.event_queue.outcomes())
    }

    fn submit(&mut self, submission: &Submission, now: Instant) {
        let allowed = self.channels.fence.allows(submission.leased_at, now.into_std());
        if self.draining.is_some() || !allowed || submission.recall.is_recalled() {
            self.event_queue.push_not_sent(submission);
            return;
        }
        let sequence = self.next_sequence();
        submit::put(&mut self.link.outbound, sequence, submission, &self.options);
        self.limiter.consume();
        self.window.insert(sequence, submission.token, submission.part, now);
    }

    fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence % MAX_SEQUENCE + 1;
        self.sequence
    }

    fn is_stopping(&self) -> bool {
        self.draining.as_ref().is_some_and(|draining| draining.shutdown)
    }

    /// Handles the end of the submission channel.
    fn exhaust(&mut self) {
        self.exhausted = true;
        self.stop();
    }

    fn stop(&mut self) {
        if !self.is_stopping() {
            self.channels.submissions.close();
            self.drain(true, self.options.drain_timeout);
        }
    }

    fn drain(&mut self, shutdown: bool, within: Duration) {
        self.draining = Some(Draining {
            until: Instant::now() + within,
            shutdown,
            unbind_sent: self.draining.as_ref().is_some_and(|draining| draining.unbind_sent),
        });
    }
}
