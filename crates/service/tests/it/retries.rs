//! Retries: what a carrier put off, what is in doubt, and what has expired.

use crate::node::{Node, accepted, delivered, outcome, parts, receipt, text};
use crate::support::{TestDb, on_both_engines};
use heliograph_domain::id::MessageId;
use heliograph_domain::lease::LEASE;
use heliograph_domain::message::{Failure, FailureCode, Status};
use heliograph_domain::money::Amount;
use heliograph_domain::receipt::Verdict;
use heliograph_domain::submission::Outcome;
use heliograph_service::caller::Caller;
use heliograph_service::dispatch::judge;
use heliograph_service::messages::Send;
use heliograph_service::writer::{Command, Handed};
use heliograph_service::{janitor, nodes};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use uuid::Uuid;

on_both_engines!(retries:
    waits_grow_from_try_to_try,
    a_busy_carrier_is_no_try,
    what_was_not_sent_is_due_at_once,
    an_answer_that_may_mean_anything_is_tried_twice_more,
    after_very_many_tries_no_is_taken_for_an_answer,
    a_lost_response_is_doubted_once,
    a_doubted_message_that_is_taken_is_a_possible_duplicate,
    what_expired_is_not_submitted,
    what_nobody_claims_expires,
    the_work_of_a_dead_node_is_in_doubt,
    a_lease_that_ran_out_goes_to_another_node,
    a_renewed_lease_does_not,
    parts_that_were_taken_are_not_sent_again,
    a_message_that_fails_while_a_part_waits_is_not_sent_on,
);

async fn one(db: &TestDb, send: Send) -> (Node, Arc<Caller>, MessageId, Handed) {
    let node = Node::start(db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let id = node.send(&ann, send).await;
    let held = node.arrived().pop().unwrap();
    (node, ann, id, held)
}

/// Nothing is due before `wait` is over, and then the message is.
async fn after(db: &TestDb, node: &Node, wait: Duration) -> Handed {
    db.clock.advance(wait - Duration::from_millis(1));
    assert_eq!(node.claim().await.len(), 0, "not before {wait:?}");
    db.clock.advance(Duration::from_millis(1));
    node.claim().await.pop().unwrap()
}

async fn waits_grow_from_try_to_try(db: TestDb) {
    let (node, ann, id, mut held) = one(&db, text("Hello")).await;
    for (tries, seconds) in [(0, 1), (1, 2), (2, 4), (3, 8)] {
        assert_eq!(held.leased.tries, tries);
        node.settle(vec![outcome(&held, Outcome::Temporary { status: 0x45 })]).await;
        held = after(&db, &node, Duration::from_secs(seconds)).await;
        assert!(!held.leased.in_doubt);
    }
    assert_eq!(node.balance(&ann).await, (900, 100));
    node.settle(vec![outcome(&held, accepted("a"))]).await;
    assert_eq!(node.status(&ann, id).await, Status::Sent);
    node.check().await;
}

async fn a_busy_carrier_is_no_try(db: TestDb) {
    let (node, _, _, mut held) = one(&db, text("Hello")).await;
    for _ in 0..3 {
        node.settle(vec![outcome(&held, Outcome::Throttled)]).await;
        held = after(&db, &node, Duration::from_secs(1)).await;
        assert_eq!(held.leased.tries, 0);
    }
    node.check().await;
}

async fn what_was_not_sent_is_due_at_once(db: TestDb) {
    let (node, _, id, held) = one(&db, text("Hello")).await;
    let bob = node.account("bob@example.com", 100).await;
    let second = node.send(&bob, text("Hi")).await;
    let other = node.arrived().pop().unwrap();
    node.settle(vec![outcome(&other, Outcome::NotSent), outcome(&held, Outcome::NotSent)]).await;
    let again = node.claim().await;
    let ids: Vec<_> = again.iter().map(|h| h.leased.message.id).collect();
    assert_eq!(ids, [id, second], "in their old order");
    assert!(again.iter().all(|h| h.leased.tries == 0 && !h.leased.in_doubt));
    assert!(again.iter().all(|h| h.leased.lease.attempt == 2));
}

async fn an_answer_that_may_mean_anything_is_tried_twice_more(db: TestDb) {
    let (node, ann, id, mut held) = one(&db, text("Hello")).await;
    let ambiguous = Outcome::Ambiguous { status: 0x45 };
    for seconds in [1, 2] {
        node.settle(vec![outcome(&held, ambiguous.clone())]).await;
        held = after(&db, &node, Duration::from_secs(seconds)).await;
    }
    node.settle(vec![outcome(&held, ambiguous)]).await;
    let state = node.state(&ann, id).await;
    let carrier_code = Some("0x00000045".to_owned());
    let failure = Failure { code: FailureCode::CarrierError, carrier_code };
    assert_eq!((state.status, state.failure), (Status::Failed, Some(failure)));
    assert_eq!(node.balance(&ann).await, (1_000, 0));
    node.check().await;
}

async fn after_very_many_tries_no_is_taken_for_an_answer(db: TestDb) {
    let (node, ann, id, held) = one(&db, text("Hello")).await;
    node.settle(vec![outcome(&held, Outcome::NotSent)]).await;
    db.behind("UPDATE queue SET tries = 299").await;
    let held = node.claim().await.pop().unwrap();
    node.settle(vec![outcome(&held, Outcome::Temporary { status: 0x14 })]).await;
    let held = after(&db, &node, Duration::from_secs(300)).await;
    node.settle(vec![outcome(&held, Outcome::Temporary { status: 0x14 })]).await;
    let state = node.state(&ann, id).await;
    assert_eq!(state.failure.unwrap().carrier_code.as_deref(), Some("0x00000014"));
    assert_eq!((state.status, node.balance(&ann).await), (Status::Failed, (1_000, 0)));
    node.check().await;
}

async fn a_lost_response_is_doubted_once(db: TestDb) {
    let (node, ann, id, held) = one(&db, text("Hello")).await;
    node.settle(vec![outcome(&held, Outcome::InDoubt)]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.in_doubt), (Status::Queued, true));
    let held = node.claim().await.pop().unwrap();
    assert_eq!((held.leased.doubts, held.leased.tries), (1, 1));
    node.settle(vec![outcome(&held, Outcome::InDoubt)]).await;
    let state = node.state(&ann, id).await;
    assert_eq!(state.failure, Some(Failure::plain(FailureCode::CarrierError)));
    assert_eq!((state.status, state.in_doubt), (Status::Failed, false));
    assert!(state.possible_duplicate);
    assert_eq!(node.balance(&ann).await, (1_000, 0));
    node.check().await;
}

async fn a_doubted_message_that_is_taken_is_a_possible_duplicate(db: TestDb) {
    let (node, ann, id, held) = one(&db, text("Hello")).await;
    node.settle(vec![outcome(&held, Outcome::InDoubt)]).await;
    let held = node.claim().await.pop().unwrap();
    node.settle(vec![outcome(&held, accepted("a"))]).await;
    node.hear(vec![delivered("a")]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.in_doubt), (Status::Delivered, false));
    assert!(state.possible_duplicate);
    assert_eq!(node.balance(&ann).await, (900, 0));
    node.check().await;
}

fn short() -> Send {
    Send { validity: Duration::from_secs(60), ..text("Hello") }
}

async fn what_expired_is_not_submitted(db: TestDb) {
    let (node, ann, id, held) = one(&db, short()).await;
    node.settle(vec![outcome(&held, Outcome::Throttled)]).await;
    let alive = node.send(&ann, text("Hello")).await;
    drop(node.arrived());
    db.clock.advance(Duration::from_secs(61));
    let claimed = node.claim().await;
    let ids: Vec<_> = claimed.iter().map(|h| h.leased.message.id).collect();
    assert_eq!(ids, [alive]);
    let state = node.state(&ann, id).await;
    assert_eq!(state.failure, Some(Failure::plain(FailureCode::Expired)));
    assert_eq!((state.status, node.balance(&ann).await), (Status::Failed, (900, 100)));
    node.check().await;
}

async fn what_nobody_claims_expires(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let gone = node.send(&ann, short()).await;
    let alive = node.send(&ann, text("Hello")).await;
    let expire = async || {
        node.writing(async |writer| janitor::expire(&node.cx, &writer).await).await.unwrap();
    };
    db.clock.advance(Duration::from_millis(59_999));
    expire().await;
    assert_eq!(node.status(&ann, gone).await, Status::Queued);
    db.clock.advance(Duration::from_millis(1));
    expire().await;
    let state = node.state(&ann, gone).await;
    assert_eq!(state.failure, Some(Failure::plain(FailureCode::Expired)));
    assert_eq!(node.status(&ann, alive).await, Status::Queued);
    assert_eq!(node.balance(&ann).await, (900, 100));
    node.check().await;
}

async fn the_work_of_a_dead_node_is_in_doubt(db: TestDb) {
    let (node, ann, id, held) = one(&db, text("Hello")).await;
    let again = nodes::start(&node.cx.db, Uuid::from_u128(1)).await.unwrap();
    assert_eq!(again, node.cx.node);
    let second = node.claim().await.pop().unwrap();
    assert!(second.leased.in_doubt);
    let state = node.state(&ann, id).await;
    assert!(state.in_doubt && state.possible_duplicate);
    // What the former self had learned comes too late for the queue, but is true all the same.
    node.settle(vec![outcome(&held, accepted("a"))]).await;
    assert_eq!(node.status(&ann, id).await, Status::Sent);
    node.settle(vec![outcome(&second, accepted("b"))]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.captured), (Status::Sent, Amount(100)));
    assert_eq!(node.balance(&ann).await, (900, 0));
    node.check().await;
}

async fn a_lease_that_ran_out_goes_to_another_node(db: TestDb) {
    let (node, ann, id, held) = one(&db, text("Hello")).await;
    let other = Node::with(&db, db.again().await, (2, 8)).await;
    assert_eq!(other.claim().await.len(), 0);
    // Each node measures the database's clock by itself: a second leaves room for that.
    db.clock.advance(LEASE + Duration::from_secs(1));
    let second = other.claim().await.pop().unwrap();
    assert!(second.leased.in_doubt);
    assert_eq!((second.leased.lease.owner, second.leased.lease.attempt), (other.cx.node, 2));
    // The first holder wakes up and gives its lease back: it has none.
    node.settle(vec![outcome(&held, Outcome::NotSent)]).await;
    assert_eq!(node.claim().await.len(), 0);
    other.settle(vec![outcome(&second, accepted("a"))]).await;
    node.hear(vec![delivered("a")]).await;
    assert_eq!(node.status(&ann, id).await, Status::Delivered);
    node.check().await;
}

async fn a_renewed_lease_does_not(db: TestDb) {
    let (node, _, _, held) = one(&db, text("Hello")).await;
    let other = Node::with(&db, db.again().await, (2, 8)).await;
    db.clock.advance(Duration::from_secs(50));
    let (reply, mut answer) = oneshot::channel();
    node.write(vec![Command::Renew(vec![held.leased.lease.clone()], reply)]).await;
    answer.try_recv().unwrap().unwrap();
    db.clock.advance(Duration::from_secs(50));
    assert_eq!(other.claim().await.len(), 0);
    db.clock.advance(Duration::from_secs(12));
    assert_eq!(other.claim().await.len(), 1);
}

async fn parts_that_were_taken_are_not_sent_again(db: TestDb) {
    let (node, ann, id, held) = one(&db, parts(3)).await;
    let outcomes = vec![(1, accepted("a")), (2, Outcome::Throttled), (3, accepted("c"))];
    node.settle(vec![judge(&held.leased, outcomes)]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.parts_accepted), (Status::Queued, 2));
    assert_eq!((state.captured, node.balance(&ann).await), (Amount(200), (700, 100)));
    node.hear(vec![delivered("c")]).await;
    let mut held = after(&db, &node, Duration::from_secs(1)).await;
    held.leased.parts_taken.sort_unstable();
    assert_eq!(held.leased.parts_taken, [1, 3]);
    node.settle(vec![judge(&held.leased, vec![(2, accepted("b"))])]).await;
    assert_eq!(node.status(&ann, id).await, Status::Sent);
    node.hear(vec![delivered("a"), delivered("b")]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.captured), (Status::Delivered, Amount(300)));
    node.check().await;
}

async fn a_message_that_fails_while_a_part_waits_is_not_sent_on(db: TestDb) {
    let (node, ann, id, held) = one(&db, parts(2)).await;
    let outcomes = vec![(1, accepted("a")), (2, Outcome::Throttled)];
    node.settle(vec![judge(&held.leased, outcomes)]).await;
    let failed = Verdict::Failed(Failure::plain(FailureCode::Unreachable));
    node.hear(vec![receipt("a", &failed)]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.captured), (Status::Failed, Amount(100)));
    assert_eq!(node.balance(&ann).await, (900, 0));
    db.clock.advance(Duration::from_secs(1));
    assert_eq!(node.claim().await.len(), 0);
    node.check().await;
}
