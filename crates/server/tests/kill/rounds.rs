//! The rounds: load, a random while, `kill -9`, start again; at the end everything must come out.

use crate::database::Engine;
use crate::driver::{self, Log};
use crate::judge::{Case, Final};
use crate::load::Load;
use crate::patience::{pause, within};
use crate::server::Server;
use crate::smsc::Smsc;
use std::time::{Duration, Instant};

/// Clients at once.
const CLIENTS: usize = 8;
/// The carrier's window; twice as many messages are leased ahead.
pub(crate) const WINDOW: u16 = 50;
/// Submits after which the SMSC cuts a link.
pub(crate) const CUT_EVERY: u64 = 1_500;
/// The longest time between two kills.
const ROUND: u64 = 1_800;
/// How long everything may take to come out at the end.
const DRAIN: Duration = Duration::from_secs(60);

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|v| v.parse().expect("a whole number"))
}

/// Runs all rounds on so many nodes, and judges.
#[expect(clippy::print_stdout, reason = "the summary is what the test is run for")]
pub(crate) fn run(engine: Engine, nodes: usize) {
    let rounds = from_environment("HELIOGRAPH_KILL_ROUNDS").unwrap_or(25);
    let seed = from_environment("HELIOGRAPH_KILL_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("kill: {engine:?}, seed {seed}");
    let cut = CUT_EVERY.to_string();
    let smsc = Smsc::start(&[
        "--disconnect-every",
        &cut,
        "--receipt-delay=50",
        "--resp-delay=3",
        "--error-rate=0.005",
        "--keep-messages=0",
    ]);
    let config = format!(
        "[rates]\ndefault = '0.0100'\n[telemetry]\nlog = 'warn,heliograph=info'\n{}",
        smsc.config(WINDOW)
    );
    let mut site = vec![Server::new(engine, &config)];
    let key = site[0].live_key("ann@example.com", "10000.00");
    #[cfg(feature = "test-postgres")]
    for _ in 1..nodes {
        let next = site[0].beside();
        site.push(next);
    }
    let load = Load::new(key, nodes);
    let (log, mut wrong, kills) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| driver::drive(&load))).collect();
        let watcher = scope.spawn(|| driver::watch(&load));
        let kills = kill_and_start(&mut site, &load, rounds, seed);
        load.end();
        let mut log = Log::default();
        for client in clients {
            let Log { sent, lost, wrong } = client.join().unwrap();
            log.sent.extend(sent);
            log.lost += lost;
            log.wrong.extend(wrong);
        }
        (log, watcher.join().unwrap(), kills)
    });
    wrong.extend(log.wrong.iter().cloned());
    wrong.extend(drain(&site[0]));
    let finals = finals(&load, &log);
    let case = Case { load: &load, log: &log, finals: &finals, journal: smsc.journal(), kills };
    let (summary, found) = case.judge(&site[0]);
    println!("kill: {engine:?}, seed {seed}, {rounds} rounds: {summary}");
    wrong.extend(found);
    let some = wrong.get(..20).unwrap_or(&wrong);
    assert!(wrong.is_empty(), "seed {seed}: {} faults\n{}", wrong.len(), some.join("\n"));
}

/// Kills a node, or now and then all of them, so many times; in the end all run. The number of kills.
fn kill_and_start(site: &mut [Server], load: &Load, rounds: u64, seed: u64) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut kills = 0;
    site.iter_mut().for_each(Server::launch);
    for _ in 0..rounds {
        let end = Instant::now() + Duration::from_millis(random.u64(20..ROUND));
        while Instant::now() < end {
            look(site, load);
            pause(Duration::from_millis(2));
        }
        let (one, all) = (random.usize(..site.len()), random.u8(..) < 32);
        for (n, node) in site.iter_mut().enumerate().filter(|(n, _)| all || *n == one) {
            node.kill();
            load.set_node(n, None);
            kills += 1;
        }
        for node in site.iter_mut().filter(|node| !node.is_launched()) {
            node.launch();
        }
    }
    for (n, node) in site.iter_mut().enumerate() {
        node.await_ready();
        load.set_node(n, Some(node.address()));
    }
    kills
}

/// Tells the clients who listens by now. A node that ended by itself is found here.
fn look(site: &mut [Server], load: &Load) {
    for (n, node) in site.iter_mut().enumerate() {
        let ended = node.process().ended();
        assert!(ended.is_none(), "node {n} ended by itself: {ended:?}");
        load.set_node(n, node.listens());
    }
}

/// Waits until every message has come to its end.
fn drain(server: &Server) -> Option<String> {
    let open = || server.database.number("SELECT count(*) FROM messages WHERE status < 2");
    let done = within(DRAIN, || (open() == 0).then_some(()));
    (done.is_none()).then(|| format!("{} messages never came to an end", open()))
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
