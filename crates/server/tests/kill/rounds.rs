//! The rounds: load for a random time, `kill -9`, restart; at the end every message must have
//! ended.

use crate::driver::{self, Log};
use crate::judge::{Case, Final, check};
use crate::load::Load;
use crate::support::database::Database;
use crate::support::engine::Engine;
use crate::support::server::Server;
use crate::support::smsc::Smsc;
use crate::support::wait::{pause, within};
use crate::support::webhook_sink::{Behavior, WebhookSink};
use std::time::{Duration, Instant};

/// The number of concurrent clients.
const CLIENTS: usize = 8;
/// The carrier's window; twice as many messages are leased ahead.
pub(crate) const WINDOW: u16 = 50;
/// The SMSC closes a connection after this number of submits.
pub(crate) const CUT_EVERY: u64 = 1_500;
/// The longest time from a start to a kill, in milliseconds.
const ROUND: u64 = 1_800;
/// The maximum time until all messages have ended: leases of a dead node last for a minute.
const DRAIN: Duration = Duration::from_secs(120);

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|v| v.parse().expect("a whole number"))
}

/// Nodes on one database, under load.
struct Cluster<'a> {
    nodes: Vec<Server>,
    load: &'a Load,
    random: fastrand::Rng,
    kills: u64,
    wrong: Vec<String>,
}

/// Runs all rounds on the engine of this run, and verifies the result.
#[expect(clippy::print_stdout, reason = "the summary is the result of the test")]
pub(crate) fn run() {
    let engine = Engine::current();
    let rounds = from_environment("HELIOGRAPH_KILL_ROUNDS").unwrap_or(25);
    let seed = from_environment("HELIOGRAPH_KILL_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("kill: {engine:?}, seed {seed}");
    let smsc = smsc();
    let nodes = match engine {
        Engine::Sqlite => 1,
        Engine::Postgres => 2,
    };
    let nodes = install(nodes, &smsc);
    let load = Load::new(nodes[0].live_key("ann@example.com", "10000.00"), nodes.len());
    let sink = WebhookSink::start();
    sink.set_behavior(Behavior::Flaky);
    let url = sink.url("/");
    nodes[0].stdout(&["webhook", "add", "--account", "ann@example.com", "--live", "--url", &url]);
    let random = fastrand::Rng::with_seed(seed);
    let mut cluster = Cluster { nodes, load: &load, random, kills: 0, wrong: Vec::new() };
    let log = under_load(&load, || cluster.all_rounds(rounds));
    let Cluster { nodes, kills, mut wrong, .. } = cluster;
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

/// Starts an SMSC that closes connections and fails sometimes.
fn smsc() -> Smsc {
    let cut = CUT_EVERY.to_string();
    let link = ["--disconnect-every", &cut, "--resp-delay=3", "--error-rate=0.005"];
    Smsc::start(&[&link[..], &["--receipt-delay=50", "--keep-messages=0"]].concat())
}

fn install(nodes: usize, smsc: &Smsc) -> Vec<Server> {
    let config = "[rates]\ndefault = '0.0100'\n[limits]\nrequests_per_second = 0\n[webhooks]\nallow_private = ['127.0.0.1/32']\n\
                  [telemetry]\nlog = 'warn,heliograph=info'\n";
    let first = Server::new(&format!("{config}{}", smsc.config(WINDOW)));
    // This creates the schema, before any node starts.
    first.stdout(&["account", "create", "--email", "first@example.com"]);
    let others: Vec<_> = (1..nodes).map(|_| first.add_node()).collect();
    std::iter::once(first).chain(others).collect()
}

/// Runs the clients during `rounds`; returns their log.
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

impl Cluster<'_> {
    /// Kills one node, or sometimes all of them, in each round. At the end all nodes run, except
    /// for
    /// one of several, which stays dead.
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
            for node in self.nodes.iter_mut().filter(|node| !node.is_running()) {
                node.launch();
            }
        }
        for (n, node) in self.nodes.iter_mut().enumerate() {
            node.wait_until_ready();
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

    /// Updates the addresses of the nodes, for this number of milliseconds. Panics if a node ended
    /// by itself.
    fn run_for(&mut self, time: u64) {
        let end = Instant::now() + Duration::from_millis(time);
        while Instant::now() < end {
            for (n, node) in self.nodes.iter_mut().enumerate() {
                let ended = node.process().ended();
                assert!(ended.is_none(), "node {n} ended by itself: {ended:?}");
                self.load.set_node(n, node.listen_address());
            }
            pause(Duration::from_millis(2));
        }
    }

    fn is_up(&mut self) -> bool {
        self.nodes.iter_mut().all(|node| node.listen_address().is_some())
    }

    /// Disconnects the database for a moment, if it is PostgreSQL, and continues for a while.
    fn disturb(&mut self) {
        if let Database::Postgres(database) = &*self.nodes[0].database {
            database.disconnect();
            pause(Duration::from_millis(self.random.u64(..200)));
            database.reconnect();
            let time = self.random.u64(..ROUND);
            self.run_for(time);
        }
    }
}

/// Waits until every message has ended, and every webhook is delivered.
fn drain(server: &Server) -> Vec<String> {
    let mut wrong = Vec::new();
    for (what, sql) in [
        ("messages have not ended", "SELECT count(*) FROM messages WHERE status < 2"),
        ("webhooks were not delivered", "SELECT count(*) FROM deliveries"),
    ] {
        let open = || server.database.number(sql);
        if within(DRAIN, || (open() == 0).then_some(())).is_none() {
            wrong.push(format!("{} {what}", open()));
        }
    }
    wrong
}

/// Reads the final state of each acknowledged message from the API.
fn finals(load: &Load, log: &Log) -> Vec<Final> {
    let share = log.sent.len().div_ceil(CLIENTS).max(1);
    std::thread::scope(|scope| {
        let shares = log.sent.chunks(share);
        let askers: Vec<_> =
            shares.map(|sent| scope.spawn(move || Final::ask(load, sent))).collect();
        askers.into_iter().flat_map(|asker| asker.join().unwrap()).collect()
    })
}
