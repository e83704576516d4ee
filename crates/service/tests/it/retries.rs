//! Retries of messages after temporary errors, in doubt, and after expiry.

use crate::node::{Node, accepted, delivered, outcome, parts, receipt, text};
use heliograph_domain::fields::Validity;
use heliograph_domain::id::MessageId;
use heliograph_domain::lease::LEASE;
use heliograph_domain::message::{Failure, FailureCode, MessageStatus};
use heliograph_domain::money::Amount;
use heliograph_domain::receipt::ReceiptOutcome;
use heliograph_domain::submission::SubmitOutcome;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::commands::claim::DispatchItem;
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::renew::Renew;
use heliograph_service::messaging::dispatch::evaluate_outcomes;
use heliograph_service::messaging::messages::SendRequest;
use heliograph_service::operations::maintenance;
use heliograph_service::operations::nodes;
use heliograph_testing::TestDb;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use uuid::Uuid;

async fn send_one(db: &TestDb, send: SendRequest) -> (Node, Arc<Caller>, MessageId, DispatchItem) {
    let node = Node::start(db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let id = node.send(&ann, send).await;
    let held = node.arrived().pop().unwrap();
    (node, ann, id, held)
}

/// Asserts that the message is due after exactly `wait`, and claims it.
async fn claim_after(db: &TestDb, node: &Node, wait: Duration) -> DispatchItem {
    db.clock.advance(wait - Duration::from_millis(1));
    assert_eq!(node.claim().await.len(), 0, "not before {wait:?}");
    db.clock.advance(Duration::from_millis(1));
    node.claim().await.pop().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn back_off_grows_with_each_attempt() {
    let db = TestDb::new().await;
    let (node, ann, id, mut held) = send_one(&db, text("Hello")).await;
    for (tries, seconds) in [(0, 1), (1, 2), (2, 4), (3, 8)] {
        assert_eq!(held.leased.tries, tries);
        node.settle(vec![outcome(&held, SubmitOutcome::Temporary { status: 0x45 })]).await;
        held = claim_after(&db, &node, Duration::from_secs(seconds)).await;
        assert!(!held.leased.in_doubt);
    }
    assert!(!node.state(&ann, id).await.possible_duplicate);
    assert_eq!(node.balance(&ann).await, (900, 100));
    node.settle(vec![outcome(&held, accepted("a"))]).await;
    assert_eq!(node.status(&ann, id).await, MessageStatus::Sent);
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn throttling_does_not_count_as_an_attempt() {
    let db = TestDb::new().await;
    let (node, _, _, mut held) = send_one(&db, text("Hello")).await;
    for _ in 0..3 {
        node.settle(vec![outcome(&held, SubmitOutcome::Throttled)]).await;
        held = claim_after(&db, &node, Duration::from_secs(1)).await;
        assert_eq!(held.leased.tries, 0);
    }
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsent_message_is_due_at_once() {
    let db = TestDb::new().await;
    let (node, _, id, held) = send_one(&db, text("Hello")).await;
    let bob = node.account("bob@example.com", 100).await;
    let second = node.send(&bob, text("Hi")).await;
    let other = node.arrived().pop().unwrap();
    node.settle(vec![
        outcome(&other, SubmitOutcome::NotSent),
        outcome(&held, SubmitOutcome::NotSent),
    ])
    .await;
    let again = node.claim().await;
    let ids: Vec<_> = again.iter().map(|h| h.leased.message.id).collect();
    assert_eq!(ids, [id, second], "in their old order");
    assert!(again.iter().all(|h| h.leased.tries == 0 && !h.leased.in_doubt));
    assert!(again.iter().all(|h| h.leased.lease.attempt == 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ambiguous_status_is_retried_twice() {
    let db = TestDb::new().await;
    let (node, ann, id, mut held) = send_one(&db, text("Hello")).await;
    let ambiguous = SubmitOutcome::Ambiguous { status: 0x45 };
    for seconds in [1, 2] {
        node.settle(vec![outcome(&held, ambiguous.clone())]).await;
        let state = node.state(&ann, id).await;
        assert!(state.possible_duplicate && state.in_doubt, "the carrier may have it");
        held = claim_after(&db, &node, Duration::from_secs(seconds)).await;
    }
    node.settle(vec![outcome(&held, ambiguous)]).await;
    let state = node.state(&ann, id).await;
    let carrier_code = Some("0x00000045".to_owned());
    let failure = Failure { code: FailureCode::CarrierError, carrier_code };
    assert_eq!((state.status, state.failure), (MessageStatus::Failed, Some(failure)));
    assert_eq!(node.balance(&ann).await, (1_000, 0));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_ambiguous_part_makes_the_message_a_possible_duplicate() {
    let db = TestDb::new().await;
    let (node, ann, id, held) = send_one(&db, parts(3)).await;
    let outcomes = vec![
        (1, SubmitOutcome::Temporary { status: 0x08 }),
        (2, SubmitOutcome::Ambiguous { status: 0xFF }),
        (3, SubmitOutcome::Temporary { status: 0x08 }),
    ];
    node.settle(vec![evaluate_outcomes(&held.leased, outcomes)]).await;
    assert!(node.state(&ann, id).await.possible_duplicate);
    let held = claim_after(&db, &node, Duration::from_secs(1)).await;
    let all = [(1, accepted("a")), (2, accepted("b")), (3, accepted("c"))];
    node.settle(vec![evaluate_outcomes(&held.leased, all.into())]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.in_doubt), (MessageStatus::Sent, false));
    assert!(state.possible_duplicate);
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_fails_after_the_maximum_number_of_attempts() {
    let db = TestDb::new().await;
    let (node, ann, id, held) = send_one(&db, text("Hello")).await;
    node.settle(vec![outcome(&held, SubmitOutcome::NotSent)]).await;
    db.execute_raw("UPDATE queue SET tries = 299").await;
    let held = node.claim().await.pop().unwrap();
    node.settle(vec![outcome(&held, SubmitOutcome::Temporary { status: 0x14 })]).await;
    let held = claim_after(&db, &node, Duration::from_secs(300)).await;
    node.settle(vec![outcome(&held, SubmitOutcome::Temporary { status: 0x14 })]).await;
    let state = node.state(&ann, id).await;
    assert_eq!(state.failure.unwrap().carrier_code.as_deref(), Some("0x00000014"));
    assert_eq!((state.status, node.balance(&ann).await), (MessageStatus::Failed, (1_000, 0)));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_response_is_retried_once() {
    let db = TestDb::new().await;
    let (node, ann, id, held) = send_one(&db, text("Hello")).await;
    node.settle(vec![outcome(&held, SubmitOutcome::InDoubt)]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.in_doubt), (MessageStatus::Queued, true));
    let held = node.claim().await.pop().unwrap();
    assert_eq!((held.leased.doubts, held.leased.tries), (1, 1));
    node.settle(vec![outcome(&held, SubmitOutcome::InDoubt)]).await;
    let state = node.state(&ann, id).await;
    assert_eq!(state.failure, Some(Failure::new(FailureCode::CarrierError)));
    assert_eq!((state.status, state.in_doubt), (MessageStatus::Failed, false));
    assert!(state.possible_duplicate);
    assert_eq!(node.balance(&ann).await, (1_000, 0));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resent_message_in_doubt_is_a_possible_duplicate() {
    let db = TestDb::new().await;
    let (node, ann, id, held) = send_one(&db, text("Hello")).await;
    node.settle(vec![outcome(&held, SubmitOutcome::InDoubt)]).await;
    let held = node.claim().await.pop().unwrap();
    node.settle(vec![outcome(&held, accepted("a"))]).await;
    node.commit_receipts(vec![delivered("a")]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.in_doubt), (MessageStatus::Delivered, false));
    assert!(state.possible_duplicate);
    assert_eq!(node.balance(&ann).await, (900, 0));
    node.check().await;
}

fn short() -> SendRequest {
    SendRequest { validity: Validity::try_from(60).unwrap(), ..text("Hello") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_message_is_not_submitted() {
    let db = TestDb::new().await;
    let (node, ann, id, held) = send_one(&db, short()).await;
    node.settle(vec![outcome(&held, SubmitOutcome::Throttled)]).await;
    let alive = node.send(&ann, text("Hello")).await;
    drop(node.arrived());
    db.clock.advance(Duration::from_secs(61));
    let claimed = node.claim().await;
    let ids: Vec<_> = claimed.iter().map(|h| h.leased.message.id).collect();
    assert_eq!(ids, [alive]);
    let state = node.state(&ann, id).await;
    assert_eq!(state.failure, Some(Failure::new(FailureCode::Expired)));
    assert_eq!((state.status, node.balance(&ann).await), (MessageStatus::Failed, (900, 100)));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unclaimed_message_expires() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let gone = node.send(&ann, short()).await;
    let alive = node.send(&ann, text("Hello")).await;
    let expire = async || {
        node.writing(async |writer| maintenance::expire_messages(&node.cx, &writer).await)
            .await
            .unwrap();
    };
    db.clock.advance(Duration::from_millis(59_999));
    expire().await;
    assert_eq!(node.status(&ann, gone).await, MessageStatus::Queued);
    db.clock.advance(Duration::from_millis(1));
    expire().await;
    let state = node.state(&ann, gone).await;
    assert_eq!(state.failure, Some(Failure::new(FailureCode::Expired)));
    assert_eq!(node.status(&ann, alive).await, MessageStatus::Queued);
    assert_eq!(node.balance(&ann).await, (900, 100));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_a_crashed_node_are_in_doubt() {
    let db = TestDb::new().await;
    let (node, ann, id, held) = send_one(&db, text("Hello")).await;
    let again = nodes::start(&node.cx.db, Uuid::from_u128(1)).await.unwrap();
    assert_eq!(again, node.cx.node);
    let second = node.claim().await.pop().unwrap();
    assert!(second.leased.in_doubt);
    let state = node.state(&ann, id).await;
    assert!(state.in_doubt && state.possible_duplicate);
    // The former process's outcome is too late for the queue but still recorded.
    node.settle(vec![outcome(&held, accepted("a"))]).await;
    assert_eq!(node.status(&ann, id).await, MessageStatus::Sent);
    node.settle(vec![outcome(&second, accepted("b"))]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.captured), (MessageStatus::Sent, Amount(100)));
    assert_eq!(node.balance(&ann).await, (900, 0));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_lease_goes_to_another_node() {
    let db = TestDb::new().await;
    let (node, ann, id, held) = send_one(&db, text("Hello")).await;
    let other = Node::with(&db, db.reopen().await, 2, 8).await;
    assert_eq!(other.claim().await.len(), 0);
    // Each node measures the database's clock by itself; one second is a tolerance for that.
    db.clock.advance(LEASE + Duration::from_secs(1));
    let second = other.claim().await.pop().unwrap();
    assert!(second.leased.in_doubt);
    assert_eq!((second.leased.lease.owner, second.leased.lease.attempt), (other.cx.node, 2));
    // The first holder resumes and reports with its lost lease, which has no effect (fencing).
    node.settle(vec![outcome(&held, SubmitOutcome::NotSent)]).await;
    assert_eq!(node.claim().await.len(), 0);
    other.settle(vec![outcome(&second, accepted("a"))]).await;
    node.commit_receipts(vec![delivered("a")]).await;
    assert_eq!(node.status(&ann, id).await, MessageStatus::Delivered);
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewed_lease_stays_with_its_node() {
    let db = TestDb::new().await;
    let (node, _, _, held) = send_one(&db, text("Hello")).await;
    let other = Node::with(&db, db.reopen().await, 2, 8).await;
    db.clock.advance(Duration::from_secs(50));
    let (reply, mut answer) = oneshot::channel();
    node.write(vec![Command::Renew(Renew { leases: vec![held.leased.lease.clone()], reply })])
        .await;
    answer.try_recv().unwrap().unwrap();
    db.clock.advance(Duration::from_secs(50));
    assert_eq!(other.claim().await.len(), 0);
    db.clock.advance(Duration::from_secs(12));
    assert_eq!(other.claim().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepted_parts_are_not_sent_again() {
    let db = TestDb::new().await;
    let (node, ann, id, held) = send_one(&db, parts(3)).await;
    let outcomes = vec![(1, accepted("a")), (2, SubmitOutcome::Throttled), (3, accepted("c"))];
    node.settle(vec![evaluate_outcomes(&held.leased, outcomes)]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.parts_accepted), (MessageStatus::Queued, 2));
    assert_eq!((state.captured, node.balance(&ann).await), (Amount(200), (700, 100)));
    node.commit_receipts(vec![delivered("c")]).await;
    let mut held = claim_after(&db, &node, Duration::from_secs(1)).await;
    held.leased.accepted_parts.sort_unstable();
    assert_eq!(held.leased.accepted_parts, [1, 3]);
    node.settle(vec![evaluate_outcomes(&held.leased, vec![(2, accepted("b"))])]).await;
    assert_eq!(node.status(&ann, id).await, MessageStatus::Sent);
    node.commit_receipts(vec![delivered("a"), delivered("b")]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.captured), (MessageStatus::Delivered, Amount(300)));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_message_is_not_continued() {
    let db = TestDb::new().await;
    let (node, ann, id, held) = send_one(&db, parts(2)).await;
    let outcomes = vec![(1, accepted("a")), (2, SubmitOutcome::Throttled)];
    node.settle(vec![evaluate_outcomes(&held.leased, outcomes)]).await;
    let failed = ReceiptOutcome::Failed(Failure::new(FailureCode::Unreachable));
    node.commit_receipts(vec![receipt("a", &failed)]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.captured), (MessageStatus::Failed, Amount(100)));
    assert_eq!(node.balance(&ann).await, (900, 0));
    db.clock.advance(Duration::from_secs(1));
    assert_eq!(node.claim().await.len(), 0);
    node.check().await;
}
