//! Clocks that are set, and nodes that are missing: leases last as long as they should, and the times
//! of a message do not run backwards.

use crate::node::{Node, accepted, delivered, outcome, text};
use heliograph_domain::lease::{HEARTBEAT, MISSING_AFTER};
use heliograph_domain::lease_fence::LeaseFence;
use heliograph_domain::message::MessageStatus;
use heliograph_service::operations::heartbeat::NodeHeartbeat;
use heliograph_service::operations::nodes;
use heliograph_testing::TestDb;
use std::time::{Duration, Instant};

const HOUR: i64 = 3_600_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_set_forward_does_not_end_the_leases_of_its_node() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let id = node.send(&ann, text("Hello")).await;
    assert_eq!(node.arrived().len(), 1);
    db.clock.step(HOUR);
    nodes::clock_offset(&node.cx).await.unwrap();
    assert_eq!(node.claim().await.len(), 0, "the node holds the lease");
    db.clock.advance(Duration::from_secs(59));
    assert_eq!(node.claim().await.len(), 0);
    // The lease ends a minute after it began.
    db.clock.advance(Duration::from_secs(2));
    let again = node.claim().await.pop().unwrap();
    assert!(again.leased.in_doubt);
    assert!(node.state(&ann, id).await.possible_duplicate);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_times_of_a_message_do_not_run_backwards() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let before = node.cx.db.now();
    let ids = [node.send(&ann, text("Hello")).await, node.send(&ann, text("Hello")).await];
    let held = node.arrived();
    db.clock.step(-HOUR);
    nodes::clock_offset(&node.cx).await.unwrap();
    assert!(node.cx.db.now() >= before);
    node.settle(vec![outcome(&held[0], accepted("a"))]).await;
    // A node that starts now has the time of its clock.
    let other = Node::with(&db, db.reopen().await, 1, 32).await;
    other.settle(vec![outcome(&held[1], accepted("b"))]).await;
    other.commit_receipts(vec![delivered("a"), delivered("b")]).await;
    for id in ids {
        let state = other.state(&ann, id).await;
        let (sent, done) = (state.sent_at.unwrap(), state.done_at.unwrap());
        assert!(before <= sent && sent <= done, "{before} {sent} {done}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_node_loses_its_leases_early() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let other = Node::with(&db, db.reopen().await, 2, 32).await;
    let fence = LeaseFence::closed(std::time::Instant::now());
    let mut heartbeat = NodeHeartbeat::new(fence.clone());
    let mut others = NodeHeartbeat::new(LeaseFence::closed(std::time::Instant::now()));
    heartbeat.beat(&node.cx).await.unwrap();
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let id = node.send(&ann, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    assert!(fence.allows(held.since, Instant::now()));
    // While the node sends its heartbeat, it keeps its lease.
    for _ in 0..8 {
        db.clock.advance(HEARTBEAT);
        heartbeat.beat(&node.cx).await.unwrap();
        others.beat(&other.cx).await.unwrap();
    }
    other.dispatch_queue.set_available(true);
    assert_eq!(other.claim().await.len(), 0);
    // Then it is stopped.
    let turns = MISSING_AFTER.as_secs() / HEARTBEAT.as_secs();
    for turn in 1..=turns {
        assert_eq!(other.claim().await.len(), 0, "{turn}");
        db.clock.advance(HEARTBEAT);
        others.beat(&other.cx).await.unwrap();
    }
    let taken = other.claim().await.pop().unwrap();
    assert_eq!((taken.leased.message.id, taken.leased.in_doubt), (id, true));
    assert!(node.state(&ann, id).await.possible_duplicate);
    // When it continues, its next heartbeat voids what it had leased before, and its outcome does
    // not count.
    heartbeat.beat(&node.cx).await.unwrap();
    assert!(!fence.allows(held.since, Instant::now()));
    node.settle(vec![outcome(&held, accepted("a"))]).await;
    other.settle(vec![outcome(&taken, accepted("b"))]).await;
    assert_eq!(other.status(&ann, id).await, MessageStatus::Sent);
    node.check().await;
}

/// Both nodes were stopped, as on a machine that was suspended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_stopped_itself_waits_for_the_others() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let other = Node::with(&db, db.reopen().await, 2, 32).await;
    let mut heartbeats = [
        LeaseFence::closed(std::time::Instant::now()),
        LeaseFence::closed(std::time::Instant::now()),
    ]
    .map(NodeHeartbeat::new);
    let ann = node.account("ann@example.com", 1_000).await;
    for (heartbeat, node) in heartbeats.iter_mut().zip([&node, &other]) {
        heartbeat.beat(&node.cx).await.unwrap();
    }
    node.open_queue().await;
    node.send(&ann, text("Hello")).await;
    db.clock.advance(Duration::from_secs(40));
    heartbeats[1].beat(&other.cx).await.unwrap();
    other.dispatch_queue.set_available(true);
    assert_eq!(other.claim().await.len(), 0);
}
