//! One bound session: a single task that owns the socket, fills the window and reads the answers.

mod inbound;

use crate::carrier::Line;
use crate::smpp::alarm::Alarm;
use crate::smpp::command::id;
use crate::smpp::end::End;
use crate::smpp::link::{Link, Turn};
use crate::smpp::options::SmppOptions;
use crate::smpp::outbox::Outbox;
use crate::smpp::pace::Pace;
use crate::smpp::pdu::{self, Head};
use crate::smpp::pulse::Pulse;
use crate::smpp::submit;
use crate::smpp::window::Window;
use crate::stop::stopped;
use heliograph_domain::submission::{Outcome, Submission};
use std::time::Duration;
use tokio::time::Instant;

/// The most receipts and messages that the engine may owe an answer for; beyond, the SMSC is told
/// to come again.
pub(crate) const MAX_UNACKNOWLEDGED: usize = 4096;

/// The highest sequence_number of a request (SMPP 3.4 §5.1.4).
const MAX_SEQUENCE: u32 = 0x7FFF_FFFF;

/// How a session ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) why: End,
    /// Whether the SMSC took or delivered anything: then the next try need not wait long.
    pub(crate) served: bool,
}

/// A session on its way out: it sends nothing new, but waits for what is owed to it.
#[derive(Debug)]
struct Leaving {
    until: Instant,
    /// Because the node stops, not only this session.
    stopped: bool,
    /// Whether unbind has gone out.
    unbound: bool,
}

/// A bound link at work.
pub(crate) struct Session<'a> {
    options: &'a SmppOptions,
    line: &'a mut Line,
    outbox: &'a mut Outbox,
    link: Link,
    number: u64,
    sequence: u32,
    window: Window,
    pace: Pace,
    pulse: Pulse,
    unacknowledged: usize,
    leaving: Option<Leaving>,
    /// No submission will ever come again.
    exhausted: bool,
    served: bool,
    warned: bool,
    alarm: Alarm,
}

impl<'a> Session<'a> {
    /// Over `link`, which is bound; sequence_number 1 was the bind's.
    pub(crate) fn new(
        options: &'a SmppOptions,
        line: &'a mut Line,
        outbox: &'a mut Outbox,
        link: Link,
        number: u64,
    ) -> Self {
        let now = Instant::now();
        Self {
            options,
            line,
            outbox,
            link,
            number,
            sequence: 1,
            window: Window::new(options.window),
            pace: Pace::new(options.rate, now),
            pulse: Pulse::new(now),
            unacknowledged: 0,
            leaving: None,
            exhausted: false,
            served: false,
            warned: false,
            alarm: Alarm::new(),
        }
    }

    /// Works until the session is over. What has no answer then is in doubt.
    pub(crate) async fn run(mut self) -> Ended {
        let mut result = self.read();
        while result.is_ok() {
            result = self.turn().await;
        }
        // A last word (an unbind_resp, some acknowledgements) goes out if the socket takes it.
        let _ = self.link.flush();
        for flight in self.window.drain() {
            self.outbox.submitted(flight.token, flight.part, Outcome::InDoubt);
        }
        let why = match (self.leaving, result) {
            (Some(leaving), _) if leaving.stopped => End::Stopped,
            (None, Err(end)) => end,
            _ => End::NotBound,
        };
        Ended { why, served: self.served }
    }

    /// Does everything that can be done now, then waits for the next thing.
    async fn turn(&mut self) -> Result<(), End> {
        let now = Instant::now();
        self.check(now)?;
        while let Ok(acks) = self.line.acks.try_recv() {
            self.acknowledge(&acks);
        }
        self.take_waiting(now);
        self.line.condition.unanswered(self.window.len());
        self.outbox.try_hand_over()?;
        self.depart(now)?;
        self.link.flush()?;
        self.arm(now);
        let takes = self.takes(now);
        let runs = !self.is_stopping();
        tokio::select! {
            biased;
            // First, so that a talkative SMSC can't keep it from being heard.
            () = stopped(&mut self.line.stop), if runs => self.stop(),
            turn = self.link.turn() => if turn? == Turn::Read {
                self.read()?;
            },
            sent = self.outbox.hand_over(), if !self.outbox.is_empty() => sent?,
            Some(acks) = self.line.acks.recv() => self.acknowledge(&acks),
            next = self.line.submissions.recv(), if takes => match next {
                Some(submission) => self.submit(&submission, Instant::now()),
                None => self.exhaust(),
            },
            () = self.alarm.ring() => {}
        }
        Ok(())
    }

    /// Everything that time alone brings about.
    fn check(&mut self, now: Instant) -> Result<(), End> {
        if self.window.overdue(now, self.options.response_timeout) {
            return Err(End::NoResponse(self.options.response_timeout));
        }
        if self.pulse.ask(now, self.options)? {
            let head = Head::request(id::ENQUIRE_LINK, self.next_sequence());
            pdu::put_bare(&mut self.link.outbound, head);
        }
        Ok(())
    }

    /// Unbinds when the session is to end and nobody owes anybody anything any more.
    fn depart(&mut self, now: Instant) -> Result<(), End> {
        let quiet = self.is_quiet();
        let Some(leaving) = &mut self.leaving else {
            return Ok(());
        };
        if now >= leaving.until {
            return Err(End::Stopped);
        }
        if quiet && !leaving.unbound {
            leaving.unbound = true;
            leaving.until = leaving.until.min(now + self.options.enquire_timeout);
            let head = Head::request(id::UNBIND, self.next_sequence());
            pdu::put_bare(&mut self.link.outbound, head);
        }
        Ok(())
    }

    fn is_quiet(&self) -> bool {
        let owed = self.unacknowledged > 0 && !self.line.acks.is_closed();
        self.window.is_empty() && self.outbox.is_empty() && !owed
    }

    /// Sets the alarm to the next thing that time alone will bring.
    fn arm(&mut self, now: Instant) {
        let mut next = self.pulse.deadline(self.options);
        let others = [
            self.window.deadline(self.options.response_timeout),
            self.leaving.as_ref().map(|leaving| leaving.until),
            (self.room() > 0 && !self.pace.is_open(now)).then(|| self.pace.opens(now)),
        ];
        for at in others.into_iter().flatten() {
            next = next.min(at);
        }
        self.alarm.set(next);
    }

    fn take_waiting(&mut self, now: Instant) {
        while self.takes(now) {
            match self.line.submissions.try_recv() {
                Ok(submission) => self.submit(&submission, now),
                Err(_) => return,
            }
        }
    }

    /// Whether a submission may be taken off the queue now. A session that stops takes them all,
    /// to give them back.
    fn takes(&mut self, now: Instant) -> bool {
        match &self.leaving {
            None => self.room() > 0 && self.pace.is_open(now),
            Some(leaving) => leaving.stopped && !self.exhausted,
        }
    }

    /// How many more submissions may be on the way: outcomes that the engine has not taken yet
    /// count like those that have no answer.
    fn room(&self) -> usize {
        self.window.room().saturating_sub(self.outbox.outcomes())
    }

    fn submit(&mut self, submission: &Submission, now: Instant) {
        let late = submission.not_after <= now.into_std() || submission.recall.is_recalled();
        if self.leaving.is_some() || late {
            self.outbox.not_sent(submission);
            return;
        }
        let sequence = self.next_sequence();
        submit::put(&mut self.link.outbound, sequence, submission, self.options.labelled);
        self.pace.spend();
        self.window.insert(sequence, submission.token, submission.part, now);
    }

    fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence % MAX_SEQUENCE + 1;
        self.sequence
    }

    fn is_stopping(&self) -> bool {
        self.leaving.as_ref().is_some_and(|leaving| leaving.stopped)
    }

    /// The engine will hand over nothing more.
    fn exhaust(&mut self) {
        self.exhausted = true;
        self.stop();
    }

    fn stop(&mut self) {
        if !self.is_stopping() {
            self.line.submissions.close();
            self.leave(true, self.options.drain_timeout);
        }
    }

    fn leave(&mut self, stopped: bool, within: Duration) {
        self.leaving = Some(Leaving {
            until: Instant::now() + within,
            stopped,
            unbound: self.leaving.as_ref().is_some_and(|leaving| leaving.unbound),
        });
    }
}
