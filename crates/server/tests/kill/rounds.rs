//! The rounds: load, a random while, `kill -9`, start again; at the end everything must come out.

use crate::database::Engine;
use crate::driver::{self, Log};
use crate::judge::{Case, Final, check};
use crate::load::Load;
use crate::patience::{pause, within};
use crate::server::Server;
use crate::sink::{Mood, Sink};
use crate::smsc::Smsc;
use std::time::{Duration, Instant};

/// Clients at once.
const CLIENTS: usize = 8;
/// The carrier's window; twice as many messages are leased ahead.
pub(crate) const WINDOW: u16 = 50;
/// Submits after which the SMSC cuts a link.
pub(crate) const CUT_EVERY: u64 = 1_500;
/// The longest time from a start to a kill, in milliseconds.
const ROUND: u64 = 1_800;
/// How long everything may take to come out in the end: the leases of a dead node hold a minute.
const DRAIN: Duration = Duration::from_secs(120);

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|v| v.parse().expect("a whole number"))
}

/// Nodes on one database under load, and what happened to them.
struct Site<'a> {
    nodes: Vec<Server>,
    load: &'a Load,
    random: fastrand::Rng,
    kills: u64,
    wrong: Vec<String>,
}

/// Runs all rounds on so many nodes, and judges.
#[expect(clippy::print_stdout, reason = "the summary is what the test is run for")]
pub(crate) fn run(engine: Engine, nodes: usize) {
    let rounds = from_environment("HELIOGRAPH_KILL_ROUNDS").unwrap_or(25);
    let seed = from_environment("HELIOGRAPH_KILL_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("kill: {engine:?}, seed {seed}");
    let smsc = smsc();
    let nodes = install(engine, nodes, &smsc);
    let load = Load::new(nodes[0].live_key("ann@example.com", "10000.00"), nodes.len());
    let sink = Sink::start();
    sink.behave(Mood::Flaky);
    let url = sink.url("/");
    nodes[0].told(&["webhook", "add", "--account", "ann@example.com", "--live", "--url", &url]);
    let random = fastrand::Rng::with_seed(seed);
    let mut site = Site { nodes, load: &load, random, kills: 0, wrong: Vec::new() };
    let log = under_load(&load, || site.all_rounds(rounds));
    let Site { nodes, kills, mut wrong, .. } = site;
    wrong.extend(drain(&nodes[0]));
    let finals = finals(&load, &log);
    let (journal, webhooks) = (smsc.journal(), sink.received());
    let case = Case { load: &load, log: &log, finals: &finals, journal, webhooks, kills };
    let (summary, found) = case.judge(&nodes[0]);
    println!("kill: {engine:?}, seed {seed}, {rounds} rounds: {summary}");
    wrong.extend(log.wrong.iter().cloned().chain(found));
    let some = wrong.get(..20).unwrap_or(&wrong);
    assert!(wrong.is_empty(), "seed {seed}: {} faults\n{}", wrong.len(), some.join("\n"));
}

/// One that cuts links, and is out of order now and then.
fn smsc() -> Smsc {
    let cut = CUT_EVERY.to_string();
    let link = ["--disconnect-every", &cut, "--resp-delay=3", "--error-rate=0.005"];
    Smsc::start(&[&link[..], &["--receipt-delay=50", "--keep-messages=0"]].concat())
}

fn install(engine: Engine, nodes: usize, smsc: &Smsc) -> Vec<Server> {
    let config = "[rates]\ndefault = '0.0100'\n[webhooks]\nallow_private = ['127.0.0.1/32']\n\
                  [telemetry]\nlog = 'warn,heliograph=info'\n";
    let first = Server::new(engine, &format!("{config}{}", smsc.config(WINDOW)));
    // The schema, before anybody starts.
    first.told(&["account", "create", "--email", "first@example.com"]);
    let next = |_| {
        #[cfg(feature = "test-postgres")]
        return first.beside();
        #[cfg(not(feature = "test-postgres"))]
        panic!("only PostgreSQL serves several nodes")
    };
    let others: Vec<_> = (1..nodes).map(next).collect();
    std::iter::once(first).chain(others).collect()
}

/// Lets the clients work for as long as `rounds` takes; what they wrote down.
fn under_load(load: &Load, rounds: impl FnOnce()) -> Log {
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| driver::drive(load))).collect();
        let watcher = scope.spawn(|| driver::watch(load));
        rounds();
        load.end();
        let mut log = Log { wrong: watcher.join().unwrap(), ..Log::default() };
        for client in clients {
            let Log { sent, lost, wrong } = client.join().unwrap();
            log.sent.extend(sent);
            log.lost += lost;
            log.wrong.extend(wrong);
        }
        log
    })
}

impl Site<'_> {
    /// Kills a node, or now and then all of them, so many times. In the end all run but one of
    /// several, which stays dead.
    fn all_rounds(&mut self, rounds: u64) {
        self.nodes.iter_mut().for_each(Server::launch);
        for round in 0..rounds {
            let time = self.random.u64(20..ROUND);
            self.run_for(time);
            if round % 3 == 0 && self.is_up() {
                self.wrong.extend(check(&self.nodes[0]));
            }
            if self.random.u8(..) < 96 && self.is_up() {
                self.disturb();
            }
            let (one, all) = (self.random.usize(..self.nodes.len()), self.random.u8(..) < 32);
            for n in (0..self.nodes.len()).filter(|n| all || *n == one) {
                self.kill(n);
            }
            for node in self.nodes.iter_mut().filter(|node| !node.is_launched()) {
                node.launch();
            }
        }
        for (n, node) in self.nodes.iter_mut().enumerate() {
            node.await_ready();
            self.load.set_node(n, Some(node.address()));
        }
        self.run_for(500);
        if self.nodes.len() > 1 {
            self.kill(self.nodes.len() - 1);
            pause(Duration::from_millis(500));
        }
    }

    fn kill(&mut self, n: usize) {
        self.nodes[n].kill();
        self.load.set_node(n, None);
        self.kills += 1;
    }

    /// Tells the clients who listens, for so many milliseconds. A node that ended by itself is
    /// noticed here.
    fn run_for(&mut self, time: u64) {
        let end = Instant::now() + Duration::from_millis(time);
        while Instant::now() < end {
            for (n, node) in self.nodes.iter_mut().enumerate() {
                let ended = node.process().ended();
                assert!(ended.is_none(), "node {n} ended by itself: {ended:?}");
                self.load.set_node(n, node.listens());
            }
            pause(Duration::from_millis(2));
        }
    }

    fn is_up(&mut self) -> bool {
        self.nodes.iter_mut().all(|node| node.listens().is_some())
    }

    /// Takes the database away for a moment, where that can be done, and lets all go on a while.
    fn disturb(&mut self) {
        #[cfg(feature = "test-postgres")]
        if let crate::database::Database::Postgres(database) = &*self.nodes[0].database {
            database.lose();
            pause(Duration::from_millis(self.random.u64(..200)));
            database.find_again();
            let time = self.random.u64(..ROUND);
            self.run_for(time);
        }
    }
}

/// Waits until every message has come to its end, and every webhook is taken.
fn drain(server: &Server) -> Vec<String> {
    let mut wrong = Vec::new();
    for (what, sql) in [
        ("messages never came to an end", "SELECT count(*) FROM messages WHERE status < 2"),
        ("webhooks were never taken", "SELECT count(*) FROM deliveries"),
    ] {
        let open = || server.database.number(sql);
        if within(DRAIN, || (open() == 0).then_some(())).is_none() {
            wrong.push(format!("{} {what}", open()));
        }
    }
    wrong
}

/// What the API says in the end about each message that was acknowledged.
fn finals(load: &Load, log: &Log) -> Vec<Final> {
    let share = log.sent.len().div_ceil(CLIENTS).max(1);
    std::thread::scope(|scope| {
        let shares = log.sent.chunks(share);
        let askers: Vec<_> =
            shares.map(|sent| scope.spawn(move || Final::ask(load, sent))).collect();
        askers.into_iter().flat_map(|asker| asker.join().unwrap()).collect()
    })
}
