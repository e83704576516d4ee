//! A carrier with a test in the engine's place, and the simulated SMSC for it to talk to.

use heliograph_carrier::carrier::{Ack, Carrier, Event, Handle, Line};
use heliograph_carrier::condition::Condition;
use heliograph_carrier::smpp::bind::SmppCarrier;
use heliograph_carrier::smpp::options::SmppOptions;
use heliograph_carrier::smsc::options::SmscOptions;
use heliograph_carrier::smsc::server::serve;
use heliograph_carrier::smsc::simulator::Simulator;
use heliograph_domain::inbound::Incoming;
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::Receipt;
use heliograph_domain::submission::{Outcome, Recall, Submission};
use heliograph_domain::text::segments;
use heliograph_domain::time::{Clock, Timestamp};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Long enough for anything that should happen, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whose messages they all are.
pub(crate) const LABEL: i64 = 4_711;

/// A clock that stands still.
pub(crate) struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp(1_795_165_200_000)
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
        let simulator = Simulator::new(options, Arc::new(Still)).unwrap();
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

/// Quick about everything that a test waits for.
pub(crate) fn options(port: u16) -> SmppOptions {
    SmppOptions {
        system_id: "heliograph".to_owned(),
        password: "secret".to_owned(),
        reconnect_floor: Duration::from_millis(20),
        reconnect_limit: Duration::from_millis(100),
        ..SmppOptions::new("test", "127.0.0.1", port)
    }
}

/// A running carrier; the test is its engine.
pub(crate) struct Rig {
    pub(crate) submissions: mpsc::Sender<Submission>,
    pub(crate) acks: mpsc::Sender<Vec<Ack>>,
    pub(crate) condition: Arc<Condition>,
    events: mpsc::Receiver<Vec<Event>>,
    waiting: VecDeque<Event>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Rig {
    pub(crate) fn start(options: SmppOptions) -> Self {
        let (submissions, taken) = mpsc::channel(1_024);
        let (told, events) = mpsc::channel(16);
        let (acks, acked) = mpsc::channel(16);
        let (stop, stopped) = watch::channel(false);
        let condition = Arc::new(Condition::default());
        let line = Line {
            submissions: taken,
            events: told,
            acks: acked,
            condition: condition.clone(),
            stop: stopped,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(Box::new(SmppCarrier::new(options)).run(line));
        Self { submissions, acks, condition, events, waiting: VecDeque::new(), stop, tasks }
    }

    /// A carrier that is bound to `smsc`.
    pub(crate) async fn bound(options: SmppOptions) -> Self {
        let mut rig = Self::start(options);
        assert_eq!(rig.event().await, Event::Bound);
        rig
    }

    /// The next event, whatever it is.
    pub(crate) async fn event(&mut self) -> Event {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return event;
            }
            let batch = timeout(PATIENCE, self.events.recv()).await;
            self.waiting.extend(batch.expect("nothing happens").expect("the carrier has ended"));
        }
    }

    /// The next event, which must be an outcome: (token, outcome).
    pub(crate) async fn outcome(&mut self) -> (u64, Outcome) {
        match self.event().await {
            Event::Submitted { token, outcome, .. } => (token, outcome),
            other => panic!("an outcome was expected, not {other:?}"),
        }
    }

    /// The next event, which must be a receipt.
    pub(crate) async fn receipt(&mut self) -> (Handle, Receipt) {
        match self.event().await {
            Event::Receipt { handle, receipt } => (handle, receipt),
            other => panic!("a receipt was expected, not {other:?}"),
        }
    }

    /// The next event, which must be a person's message.
    pub(crate) async fn message(&mut self) -> (Handle, Incoming) {
        match self.event().await {
            Event::Message { handle, incoming } => (handle, incoming),
            other => panic!("a message was expected, not {other:?}"),
        }
    }

    /// The next event, which must be a loss of the bind: why.
    pub(crate) async fn unbound(&mut self) -> String {
        match self.event().await {
            Event::Unbound(why) => why,
            other => panic!("an unbind was expected, not {other:?}"),
        }
    }

    pub(crate) async fn submit(&self, token: u64, number: u64) {
        self.submissions.send(submission(token, number)).await.unwrap();
    }

    /// The id of a submission that must be accepted next.
    pub(crate) async fn accepted(&mut self) -> (u64, String) {
        match self.outcome().await {
            (token, Outcome::Accepted { smsc_id }) => (token, smsc_id),
            other => panic!("acceptance was expected, not {other:?}"),
        }
    }

    pub(crate) async fn ack(&self, handle: Handle, committed: bool) {
        self.acks.send(vec![Ack { handle, committed }]).await.unwrap();
    }

    /// Says that it is time to end.
    pub(crate) fn say_stop(&self) {
        self.stop.send_replace(true);
    }

    /// Lets go of the engine's ends of the line; what is left is the running carrier.
    pub(crate) fn abandon(self) -> JoinSet<()> {
        self.tasks
    }

    /// Waits for the end: everything that was said until then and not yet looked at.
    pub(crate) async fn ended(mut self) -> Vec<Event> {
        let mut rest: Vec<_> = self.waiting.into();
        let all = async {
            while let Some(batch) = self.events.recv().await {
                rest.extend(batch);
            }
            while let Some(done) = self.tasks.join_next().await {
                done.unwrap();
            }
        };
        timeout(PATIENCE, all).await.expect("the carrier does not end");
        rest
    }
}

/// A message of one part to `number`.
pub(crate) fn submission(token: u64, number: u64) -> Submission {
    parts(token, number, "Hello from the test").remove(0)
}

/// All parts of a message to `number`.
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
        not_after: Instant::now() + Duration::from_secs(600),
        recall: recall.clone(),
    })
    .collect()
}
