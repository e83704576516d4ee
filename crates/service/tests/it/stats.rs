//! Statistics: each event is counted once, in the transaction that causes it.

use crate::endpoint_worker::{endpoint, rows};
use crate::inbound::{assign_number, incoming, receive};
use crate::node::{
    Node, PRICE, accepted, delivered, idempotency_key, outcome, parts, receipt, text,
};
use heliograph_domain::account::Mode;
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::money::Amount;
use heliograph_domain::receipt::ReceiptOutcome;
use heliograph_domain::stats::{hour_of, hour_start};
use heliograph_service::identity::accounts;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::messaging::messages;
use heliograph_service::operations::maintenance;
use heliograph_service::operations::stats::{StatsOverview, StatsRange, StatsTotals, overview};
use heliograph_testing::TestDb;
use std::collections::BTreeMap;
use std::time::Duration;

async fn last_24_hours(node: &Node, caller: &Caller) -> StatsOverview {
    overview(&node.cx, caller, StatsRange::Hours24).await.unwrap()
}

fn minutes(n: u64) -> Duration {
    Duration::from_secs(60 * n)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_event_is_counted_once() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 450).await;
    assert_eq!(last_24_hours(&node, &ann).await.total, StatsTotals::default());
    node.open_queue().await;
    let called_back = [
        (parts(2), idempotency_key("a", 1)),
        (parts(2), idempotency_key("a", 1)),
        (parts(3), None),
    ];
    let done = node.send_all(&ann, called_back.into()).await;
    assert!(done[2].is_err(), "the balance does not cover it");
    let held = node.arrived();
    let outcomes = vec![(1, accepted("1")), (2, accepted("2"))];
    node.settle(vec![heliograph_service::messaging::dispatch::evaluate_outcomes(
        &held[0].leased,
        outcomes,
    )])
    .await;
    db.clock.advance(Duration::from_secs(9));
    for _ in 0..2 {
        node.commit_receipts(vec![delivered("1"), delivered("2")]).await;
    }
    node.send(&ann, text("Hello")).await;
    node.settle(vec![outcome(&node.arrived()[0], accepted("3"))]).await;
    let unreachable = ReceiptOutcome::Failed(Failure::new(FailureCode::Unreachable));
    node.commit_receipts(vec![receipt("3", &unreachable)]).await;
    node.dispatch_queue.set_available(false);
    let waiting = node.send(&ann, text("Never mind")).await;
    node.writing(async |writer| messages::cancel(&node.cx, &writer, &ann, waiting).await)
        .await
        .unwrap();
    let seen = last_24_hours(&node, &ann).await;
    let expected = StatsTotals {
        accepted: 3,
        sent: 2,
        delivered: 1,
        failed: 1,
        cancelled: 1,
        spent: Amount(3 * PRICE),
        ..StatsTotals::default()
    };
    assert_eq!(seen.total, expected);
    assert_eq!(seen.failures, [(FailureCode::Unreachable, 1)]);
    assert_eq!(seen.total.delivery_rate(), Some(0.5));
    let median = seen.median.unwrap().as_millis();
    assert!((5_120..=10_240).contains(&median), "{median}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batch_adds_few_rows() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open_queue().await;
    // If the hour changes in between, there is a row for each hour.
    let rows = async || rows(&db, "(SELECT DISTINCT measure FROM stats) AS each").await;
    let all = (0..32).map(|_| (text("Hello"), None)).collect();
    node.send_all(&ann, all).await;
    assert_eq!(rows().await, 1, "accepted");
    let held = node.arrived();
    let settled = (0..).zip(&held).map(|(n, h)| outcome(h, accepted(&format!("{n}"))));
    node.settle(settled.collect()).await;
    assert_eq!(rows().await, 3, "sent and charged");
    node.commit_receipts((0..32).map(|n| delivered(&format!("{n}"))).collect()).await;
    assert_eq!(rows().await, 5, "delivered, with the delivery time");
    assert_eq!(last_24_hours(&node, &ann).await.total.delivered, 32);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statistics_are_separate_by_account_and_mode() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let bob = node.account("bob@example.com", 1_000).await;
    let testing = node.key(ann.account, Mode::Test).await;
    node.send(&ann, text("Hello")).await;
    node.send(&testing, parts(2)).await;
    node.send(&testing, parts(2)).await;
    for (caller, count) in [(&ann, 1), (&bob, 0), (&testing, 2)] {
        assert_eq!(last_24_hours(&node, caller).await.total.accepted, count);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hours_are_merged_into_one_slot_per_day() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    let (mut hours, mut days) = (BTreeMap::new(), BTreeMap::new());
    // Less than 23 hours in all: the first hour is in the range, whatever the time of day is.
    for pause in [0, 60, 5, 21 * 60] {
        db.clock.advance(minutes(pause));
        node.send(&ann, text("Hello")).await;
        let hour = hour_of(node.cx.db.now());
        *hours.entry(hour_start(hour)).or_default() += 1;
        *days.entry(hour_start(hour - hour % 24)).or_default() += 1;
    }
    for (range, count, expected) in [
        (StatsRange::Hours24, 24, hours),
        (StatsRange::Days7, 7, days.clone()),
        (StatsRange::Days90, 90, days),
    ] {
        let seen = overview(&node.cx, &ann, range).await.unwrap();
        assert_eq!((seen.slots.len(), seen.total.accepted), (count, 4));
        let some = seen.slots.into_iter().filter(|slot| slot.totals.accepted > 0);
        assert_eq!(
            some.map(|s| (s.begin, s.totals.accepted)).collect::<BTreeMap<_, _>>(),
            expected
        );
    }
    db.clock.advance(minutes(24 * 60));
    assert_eq!(last_24_hours(&node, &ann).await.total.accepted, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inbound_messages_are_counted() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 0).await;
    receive(&node, vec![incoming("To nobody")]).await;
    assert_eq!(rows(&db, "stats").await, 0);
    assign_number(&node, "ann@example.com").await;
    receive(&node, vec![incoming("Hello"), incoming("STOP"), incoming("stop")]).await;
    let seen = last_24_hours(&node, &ann).await.total;
    assert_eq!((seen.inbound, seen.opted_out), (3, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_hours_are_merged_into_days() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    for n in 1..=5 {
        for _ in 0..n {
            node.send(&ann, text("Hello")).await;
        }
        db.clock.advance(minutes(7 * 60));
    }
    let days = async || {
        let seen = overview(&node.cx, &ann, StatsRange::Days7).await.unwrap().slots;
        seen.into_iter().map(|s| (s.begin, s.totals.accepted)).filter(|(_, n)| *n > 0).collect()
    };
    let before: Vec<_> = days().await;
    assert_eq!(rows(&db, "stats").await, 5);
    for _ in 0..2 {
        maintenance::delete_outdated(&node.cx).await.unwrap();
        assert_eq!(
            last_24_hours(&node, &ann).await.total.accepted,
            3 + 4 + 5,
            "the hours of the last day are kept"
        );
        assert_eq!(days().await, before);
    }
    db.clock.advance(minutes(2 * 24 * 60));
    for _ in 0..2 {
        maintenance::delete_outdated(&node.cx).await.unwrap();
        assert_eq!(rows(&db, "stats").await, before.len() as i64);
        assert_eq!(days().await, before);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statistics_are_kept_for_thirteen_months() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.send(&ann, text("Hello")).await;
    db.clock.advance(minutes(400 * 24 * 60 - 1));
    maintenance::delete_outdated(&node.cx).await.unwrap();
    assert_eq!(rows(&db, "stats").await, 1);
    db.clock.advance(minutes(62));
    maintenance::delete_outdated(&node.cx).await.unwrap();
    assert_eq!(rows(&db, "stats").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn onboarding_steps_complete_automatically() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let bob = node.account("bob@example.com", 1_000).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let steps = async || {
        let steps = accounts::first_steps(&node.cx, &ann).await.unwrap();
        (steps.key, steps.message, steps.webhook)
    };
    node.send(&bob, parts(1)).await;
    assert_eq!(steps().await, (true, false, false));
    node.send(&ann, text("Hello")).await;
    assert_eq!(steps().await, (true, true, false));
    endpoint(&node, &ann).await;
    assert_eq!(steps().await, (true, true, true));
}
