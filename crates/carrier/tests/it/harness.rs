//! The test harness: a running carrier whose engine is the test, and a running simulated SMSC.

use heliograph_carrier::carrier::{
    Ack, AckResult, Carrier, CarrierChannels, CarrierEvent, DeliverSmHandle,
};
use heliograph_carrier::link_status::LinkStatus;
use heliograph_carrier::smpp::bind::SmppCarrier;
use heliograph_carrier::smpp::options::SmppOptions;
use heliograph_carrier::smsc::options::SmscOptions;
use heliograph_carrier::smsc::server::serve;
use heliograph_carrier::smsc::simulator::Simulator;
use heliograph_domain::inbound::IncomingSms;
use heliograph_domain::lease_fence::LeaseFence;
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::Receipt;
use heliograph_domain::submission::{Recall, Submission, SubmitOutcome};
use heliograph_domain::text::segments;
use heliograph_domain::time::{Clock, Timestamp};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The time limit for every wait; generous, for busy machines.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The label of all test messages.
pub(crate) const LABEL: i64 = 4_711;

/// A clock that always shows the same time.
pub(crate) struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_795_165_200_000)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// A running simulated SMSC.
pub(crate) struct Smsc {
    pub(crate) port: u16,
    pub(crate) simulator: Simulator,
    pub(crate) stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Smsc {
    pub(crate) async fn start(options: SmscOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, stopped) = watch::channel(false);
        let simulator = Simulator::new(options, Arc::new(FixedClock)).unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, simulator.clone(), stopped));
        Self { port, simulator, stop, tasks }
    }

    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        while let Some(done) = self.tasks.join_next().await {
            done.unwrap();
        }
    }
}

/// Returns options with a short reconnect back-off.
pub(crate) fn options(port: u16) -> SmppOptions {
    SmppOptions {
        system_id: "heliograph".to_owned(),
        password: "secret".to_owned(),
        reconnect_min: Duration::from_millis(20),
        reconnect_max: Duration::from_millis(100),
        ..SmppOptions::new("test", "127.0.0.1", port)
    }
}

/// A running carrier and the engine's ends of its channels.
pub(crate) struct Harness {
    pub(crate) submissions: mpsc::Sender<Submission>,
    pub(crate) acks: mpsc::Sender<Vec<Ack>>,
    pub(crate) fence: LeaseFence,
    pub(crate) link_status: Arc<LinkStatus>,
    events: mpsc::Receiver<Vec<CarrierEvent>>,
    waiting: VecDeque<CarrierEvent>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Harness {
    pub(crate) fn start(options: SmppOptions) -> Self {
        let (submissions, to_submit) = mpsc::channel(1_024);
        let (to_engine, events) = mpsc::channel(16);
        let (acks, to_ack) = mpsc::channel(16);
        let (stop, stopped) = watch::channel(false);
        let link_status = Arc::new(LinkStatus::default());
        let fence = LeaseFence::open(std::time::Instant::now());
        let channels = CarrierChannels {
            submissions: to_submit,
            events: to_engine,
            acks: to_ack,
            fence: fence.clone(),
            link_status: link_status.clone(),
            stop: stopped,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(Box::new(SmppCarrier::new(options)).run(channels));
        Self {
            submissions,
            acks,
            fence,
            link_status,
            events,
            waiting: VecDeque::new(),
            stop,
            tasks,
        }
    }

    /// Starts a carrier and waits until it is bound.
    pub(crate) async fn bound(options: SmppOptions) -> Self {
        let mut harness = Self::start(options);
        assert_eq!(harness.event().await, CarrierEvent::Bound);
        harness
    }

    /// Returns the next event.
    pub(crate) async fn event(&mut self) -> CarrierEvent {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return event;
            }
            let batch = timeout(TIMEOUT, self.events.recv()).await;
            self.waiting.extend(batch.expect("no event in time").expect("the carrier has ended"));
        }
    }

    /// Returns the next event, which must be an outcome: (token, outcome).
    pub(crate) async fn outcome(&mut self) -> (u64, SubmitOutcome) {
        match self.event().await {
            CarrierEvent::Submitted { token, outcome, .. } => (token, outcome),
            other => panic!("expected an outcome, got {other:?}"),
        }
    }

    /// Returns the next event, which must be a receipt.
    pub(crate) async fn receipt(&mut self) -> (DeliverSmHandle, Receipt) {
        match self.event().await {
            CarrierEvent::Receipt { handle, receipt } => (handle, receipt),
            other => panic!("expected a receipt, got {other:?}"),
        }
    }

    /// Returns the next event, which must be an inbound message.
    pub(crate) async fn message(&mut self) -> (DeliverSmHandle, IncomingSms) {
        match self.event().await {
            CarrierEvent::Message { handle, incoming } => (handle, incoming),
            other => panic!("expected an inbound message, got {other:?}"),
        }
    }

    /// Returns the reason in the next event, which must be a loss of the bind.
    pub(crate) async fn unbound(&mut self) -> String {
        match self.event().await {
            CarrierEvent::Unbound(reason) => reason,
            other => panic!("expected the loss of the bind, got {other:?}"),
        }
    }

    pub(crate) async fn submit(&self, token: u64, number: u64) {
        self.submissions.send(submission(token, number)).await.unwrap();
    }

    /// Returns the token and the SMSC's id of the next outcome, which must be an acceptance.
    pub(crate) async fn accepted(&mut self) -> (u64, String) {
        match self.outcome().await {
            (token, SubmitOutcome::Accepted { smsc_id }) => (token, smsc_id),
            other => panic!("expected an acceptance, got {other:?}"),
        }
    }

    pub(crate) async fn ack(&self, handle: DeliverSmHandle, committed: bool) {
        let result = if committed { AckResult::Committed } else { AckResult::Retry };
        self.acks.send(vec![Ack { handle, result }]).await.unwrap();
    }

    /// Requests a graceful shutdown.
    pub(crate) fn request_stop(&self) {
        self.stop.send_replace(true);
    }

    /// Drops the engine's ends of the channels and returns the running carrier.
    pub(crate) fn abandon(self) -> JoinSet<()> {
        self.tasks
    }

    /// Waits until the carrier ends, and returns the remaining events.
    pub(crate) async fn join(mut self) -> Vec<CarrierEvent> {
        let mut rest: Vec<_> = self.waiting.into();
        let all = async {
            while let Some(batch) = self.events.recv().await {
                rest.extend(batch);
            }
            while let Some(done) = self.tasks.join_next().await {
                done.unwrap();
            }
        };
        timeout(TIMEOUT, all).await.expect("the carrier does not end");
        rest
    }
}

/// Returns a message of one part to `number`.
pub(crate) fn submission(token: u64, number: u64) -> Submission {
    parts(token, number, "Hello from the test").remove(0)
}

/// Returns all parts of a message to `number`.
pub(crate) fn parts(token: u64, number: u64, text: &str) -> Vec<Submission> {
    let all = segments(text, 7).into_iter().enumerate();
    let recall = Recall::default();
    all.map(|(n, segment)| Submission {
        token,
        part: u8::try_from(n + 1).unwrap(),
        originator: "Shop".parse().unwrap(),
        recipient: Recipient(number),
        segment,
        label: LABEL,
        validity: Duration::from_secs(172_800),
        leased_at: Instant::now(),
        recall: recall.clone(),
    })
    .collect()
}
