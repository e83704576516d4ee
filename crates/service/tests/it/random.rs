//! Days at random: whatever happens, every message comes to an end, nothing is sent twice without
//! doubt, the money adds up, and every end is told by one event.

use crate::carrier::Moods;
use crate::courier::rows;
use crate::support::{TestDb, on_both_engines};
use crate::world::{CREDITS, World};
use heliograph_domain::id::MessageId;
use heliograph_domain::message::{State, Status};
use heliograph_service::janitor;
use heliograph_service::stats::{Range, overview};
use heliograph_store::queue;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

on_both_engines!(random: a_calm_day, a_moody_day, a_day_of_deaths);

const CALM: Moods = Moods { refused: 3, put_off: 5, lost: 0, deaths: 0, naps: 0 };

/// The same day each time; `HELIOGRAPH_TEST_SEED` names another one.
fn seed(usual: u64) -> u64 {
    std::env::var("HELIOGRAPH_TEST_SEED").map_or(usual, |seed| seed.parse().unwrap())
}

async fn a_calm_day(db: TestDb) {
    let mut world = World::new(&db, seed(1), CALM).await;
    live(&db, &mut world, 80).await;
}

async fn a_moody_day(db: TestDb) {
    let moods = Moods { refused: 10, put_off: 30, lost: 15, deaths: 0, naps: 4 };
    let mut world = World::new(&db, seed(2), moods).await;
    live(&db, &mut world, 120).await;
}

async fn a_day_of_deaths(db: TestDb) {
    let moods = Moods { refused: 5, put_off: 15, lost: 5, deaths: 12, naps: 8 };
    let mut world = World::new(&db, seed(3), moods).await;
    live(&db, &mut world, 120).await;
}

async fn live(db: &TestDb, world: &mut World<'_>, rounds: usize) {
    let mut seen = HashMap::new();
    for _ in 0..rounds {
        world.round(true).await;
        look_again(world, &mut seen).await;
    }
    for told in ["done", "replayed", "key reused", "no money"] {
        assert!(world.verdicts.contains_key(told), "{told} was never the answer");
    }
    drain(db, world).await;
    world.hear_the_rest().await;
    // Those that no receipt speaks of are given up in the end.
    db.clock.advance(Duration::from_secs(5 * 86_400));
    let node = &world.machines[0].node;
    node.writing(async |writer| janitor::time_out_receipts(&node.cx, &writer).await).await.unwrap();
    node.check().await;
    let all = states(world).await;
    let stuck: Vec<_> = all.iter().filter(|(_, _, s)| !s.status.is_final()).collect();
    assert!(stuck.is_empty(), "{} of {} are stuck: {stuck:#?}", stuck.len(), all.len());
    for status in [Status::Delivered, Status::Failed] {
        assert!(all.iter().any(|(_, _, s)| s.status == status), "none is {status}");
    }
    count_the_money(world, &all).await;
    tell_the_rest(db, world).await;
    assert_eq!(rows(db, "events").await, i64::try_from(all.len()).unwrap());
    for (_, id, _) in all {
        assert_eq!(world.listeners.taken.get(&id).map_or(0, HashSet::len), 1, "events of {id}");
    }
}

/// All endpoints answer well until nothing is left to be told.
async fn tell_the_rest(db: &TestDb, world: &mut World<'_>) {
    for _ in 0..500 {
        if world.listeners.waiting(&world.machines[0].node).await == 0 {
            return;
        }
        world.round(false).await;
        db.clock.advance(Duration::from_secs(30));
    }
    panic!("not everything was told");
}

/// A few messages each round: no status goes backwards, and a final one stays.
async fn look_again(world: &mut World<'_>, seen: &mut HashMap<MessageId, State>) {
    for _ in 0..4.min(world.made.len()) {
        let (caller, id) = world.made[world.rng.usize(..world.made.len())];
        let now = world.machines[0].node.state(&world.callers[caller], id).await;
        if let Some(before) = seen.insert(id, now.clone()) {
            let rank = |s: &State| (s.status.is_final(), s.status == Status::Sent);
            assert!(rank(&now) >= rank(&before), "{id}: {before:?} became {now:?}");
            assert!(!before.status.is_final() || now.status == before.status, "{id} came back");
            assert!(now.captured >= before.captured, "{id} was paid back");
        }
    }
}

/// Nothing new comes, and the carrier is in its best mood, until nothing is queued any more.
async fn drain(db: &TestDb, world: &mut World<'_>) {
    world.carrier.moods = Moods { refused: 0, put_off: 0, lost: 0, deaths: 0, naps: 0 };
    for _ in 0..200 {
        world.round(false).await;
        db.clock.advance(Duration::from_secs(30));
        let node = &world.machines[0].node;
        let mut conn = node.cx.db.read().await.unwrap();
        let (depth, _) = queue::depth(&mut conn, node.carrier).await.unwrap();
        drop(conn);
        if depth == 0 && states(world).await.iter().all(|(_, _, s)| s.status != Status::Queued) {
            return;
        }
    }
    panic!("the queue was not drained");
}

async fn states(world: &World<'_>) -> Vec<(usize, MessageId, State)> {
    let mut all = Vec::new();
    for (caller, id) in &world.made {
        let state = world.machines[0].node.state(&world.callers[*caller], *id).await;
        all.push((*caller, *id, state));
    }
    all
}

/// What came in is what is left and what was captured, account by account.
async fn count_the_money(world: &World<'_>, all: &[(usize, MessageId, State)]) {
    for (i, (caller, (_, credit))) in world.callers.iter().zip(CREDITS).enumerate() {
        let (available, reserved) = world.machines[0].node.balance(caller).await;
        let spent: i64 = all.iter().filter(|(c, ..)| *c == i).map(|(.., s)| s.captured.0).sum();
        assert_eq!((available + spent, reserved), (credit, 0), "account {i}");
        assert!(spent > 0);
        let of = |status| all.iter().filter(|(c, _, s)| *c == i && s.status == status).count();
        let (delivered, failed) = (of(Status::Delivered), of(Status::Failed));
        let seen = overview(&world.machines[0].node.cx, caller, Range::Days30).await.unwrap();
        let counted = [seen.total.delivered, seen.total.failed, seen.total.accepted];
        let there = [delivered, failed, delivered + failed].map(|n| i64::try_from(n).unwrap());
        assert_eq!((counted, seen.total.spent.0), (there, spent), "the figures of account {i}");
    }
}
