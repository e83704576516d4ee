//! Randomized runs of the model: every message reaches a final status, none is sent twice unless it
//! was in doubt, balances are consistent, and every final status triggers one event.

use crate::endpoint_worker::rows;
use crate::fake_carrier::FaultRates;
use crate::model::{CREDITS, Model};
use heliograph_domain::id::MessageId;
use heliograph_domain::message::{MessageState, MessageStatus};
use heliograph_service::operations::maintenance;
use heliograph_service::operations::stats::{StatsRange, overview};
use heliograph_store::messaging::queue;
use heliograph_testing::TestDb;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

const FEW_FAULTS: FaultRates =
    FaultRates { refused: 3, deferred: 5, lost: 0, crashes: 0, pauses: 0 };

/// Returns the fixed seed of a run, or `HELIOGRAPH_TEST_SEED` if set.
fn seed(usual: u64) -> u64 {
    std::env::var("HELIOGRAPH_TEST_SEED").map_or(usual, |seed| seed.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_operation_without_node_failures() {
    let db = TestDb::new().await;
    let mut model = Model::new(&db, seed(1), FEW_FAULTS).await;
    run(&db, &mut model, 80).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_operation_with_carrier_faults() {
    let db = TestDb::new().await;
    let fault_rates = FaultRates { refused: 10, deferred: 30, lost: 15, crashes: 0, pauses: 4 };
    let mut model = Model::new(&db, seed(2), fault_rates).await;
    run(&db, &mut model, 120).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_operation_with_node_crashes() {
    let db = TestDb::new().await;
    let fault_rates = FaultRates { refused: 5, deferred: 15, lost: 5, crashes: 12, pauses: 8 };
    let mut model = Model::new(&db, seed(3), fault_rates).await;
    run(&db, &mut model, 120).await;
}

async fn run(db: &TestDb, model: &mut Model<'_>, rounds: usize) {
    let mut seen = HashMap::new();
    for _ in 0..rounds {
        model.round(true).await;
        check_progress(model, &mut seen).await;
    }
    for result in ["done", "replayed", "key reused", "no money"] {
        assert!(model.outcomes.contains_key(result), "{result} never occurred");
    }
    drain(db, model).await;
    model.commit_remaining_receipts().await;
    // Messages without a receipt fail after the timeout.
    db.clock.advance(Duration::from_secs(5 * 86_400));
    let node = &model.nodes[0].node;
    node.writing(async |writer| maintenance::time_out_receipts(&node.cx, &writer).await)
        .await
        .unwrap();
    node.check().await;
    let all = states(model).await;
    let stuck: Vec<_> = all.iter().filter(|(_, _, s)| !s.status.is_final()).collect();
    assert!(stuck.is_empty(), "{} of {} are stuck: {stuck:#?}", stuck.len(), all.len());
    for status in [MessageStatus::Delivered, MessageStatus::Failed] {
        assert!(all.iter().any(|(_, _, s)| s.status == status), "no message is {status}");
    }
    check_balances(model, &all).await;
    deliver_remaining_events(db, model).await;
    assert_eq!(rows(db, "events").await, i64::try_from(all.len()).unwrap());
    for (_, id, _) in all {
        assert_eq!(model.endpoints.accepted.get(&id).map_or(0, HashSet::len), 1, "events of {id}");
    }
}

/// Runs rounds with successful endpoints until all events are delivered.
async fn deliver_remaining_events(db: &TestDb, model: &mut Model<'_>) {
    for _ in 0..500 {
        if model.endpoints.waiting(&model.nodes[0].node).await == 0 {
            return;
        }
        model.round(false).await;
        db.clock.advance(Duration::from_secs(30));
    }
    panic!("not all events were delivered");
}

/// Asserts for a few messages that no status goes backwards and a final one does not change.
async fn check_progress(model: &mut Model<'_>, seen: &mut HashMap<MessageId, MessageState>) {
    for _ in 0..4.min(model.made.len()) {
        let (caller, id) = model.made[model.rng.usize(..model.made.len())];
        let now = model.nodes[0].node.state(&model.callers[caller], id).await;
        if let Some(before) = seen.insert(id, now.clone()) {
            let rank = |s: &MessageState| (s.status.is_final(), s.status == MessageStatus::Sent);
            assert!(rank(&now) >= rank(&before), "{id}: {before:?} became {now:?}");
            assert!(
                !before.status.is_final() || now.status == before.status,
                "{id} left its final status"
            );
            assert!(now.captured >= before.captured, "the charge of {id} decreased");
        }
    }
}

/// Runs rounds without new messages and without carrier faults until the queue is empty.
async fn drain(db: &TestDb, model: &mut Model<'_>) {
    model.carrier.fault_rates =
        FaultRates { refused: 0, deferred: 0, lost: 0, crashes: 0, pauses: 0 };
    for _ in 0..200 {
        model.round(false).await;
        db.clock.advance(Duration::from_secs(30));
        let node = &model.nodes[0].node;
        let mut conn = node.cx.db.read().await.unwrap();
        let (depth, _) = queue::depth(&mut conn, node.carrier).await.unwrap();
        drop(conn);
        if depth == 0
            && states(model).await.iter().all(|(_, _, s)| s.status != MessageStatus::Queued)
        {
            return;
        }
    }
    panic!("the queue is not empty");
}

async fn states(model: &Model<'_>) -> Vec<(usize, MessageId, MessageState)> {
    let mut all = Vec::new();
    for (caller, id) in &model.made {
        let state = model.nodes[0].node.state(&model.callers[*caller], *id).await;
        all.push((*caller, *id, state));
    }
    all
}

/// Asserts for each account that its credit equals its balance plus the captured amounts.
async fn check_balances(model: &Model<'_>, all: &[(usize, MessageId, MessageState)]) {
    for (i, (caller, (_, credit))) in model.callers.iter().zip(CREDITS).enumerate() {
        let (available, reserved) = model.nodes[0].node.balance(caller).await;
        let spent: i64 = all.iter().filter(|(c, ..)| *c == i).map(|(.., s)| s.captured.0).sum();
        assert_eq!((available + spent, reserved), (credit, 0), "account {i}");
        assert!(spent > 0);
        let count = |status| all.iter().filter(|(c, _, s)| *c == i && s.status == status).count();
        let (delivered, failed) = (count(MessageStatus::Delivered), count(MessageStatus::Failed));
        let seen = overview(&model.nodes[0].node.cx, caller, StatsRange::Days30).await.unwrap();
        let counted = [seen.total.delivered, seen.total.failed, seen.total.accepted];
        let expected = [delivered, failed, delivered + failed].map(|n| i64::try_from(n).unwrap());
        assert_eq!((counted, seen.total.spent.0), (expected, spent), "statistics of account {i}");
    }
}
