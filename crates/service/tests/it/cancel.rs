//! Calling back: only what nobody has begun to submit, whatever happens at the same moment.

use crate::node::{Node, accepted, outcome, parts, text};
use crate::support::{TestDb, on_both_engines};
use futures_util::future::join_all;
use heliograph_domain::id::MessageId;
use heliograph_domain::lease::LEASE;
use heliograph_domain::message::Status;
use heliograph_domain::submission::Outcome;
use heliograph_service::caller::Caller;
use heliograph_service::dispatch::judge;
use heliograph_service::error::{Error, Result};
use heliograph_service::messages;
use heliograph_service::writer::{Claim, Command};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

on_both_engines!(cancel:
    what_waits_is_called_back_and_its_money_released,
    what_somebody_holds_is_not,
    what_was_put_off_is_found_where_it_waits,
    what_may_have_gone_out_is_not,
    a_message_of_which_a_part_went_out_is_not,
    two_at_once_and_a_claim,
);

/// A node whose carrier is away, and somebody with money.
async fn one(db: &TestDb) -> (Node, Arc<Caller>) {
    let node = Node::start(db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    (node, ann)
}

async fn cancel(node: &Node, caller: &Caller, id: MessageId) -> Result<Status> {
    node.writing(async |writer| {
        let done = messages::cancel(&node.cx, &writer, caller, id).await;
        done.map(|(_, state)| state.status)
    })
    .await
}

fn refused(done: &Result<Status>) -> bool {
    matches!(done, Err(Error::NotCancellable(_)))
}

async fn what_waits_is_called_back_and_its_money_released(db: TestDb) {
    let (node, ann) = one(&db).await;
    let id = node.send(&ann, parts(3)).await;
    assert_eq!(node.balance(&ann).await, (700, 300));
    assert_eq!(cancel(&node, &ann, id).await.unwrap(), Status::Cancelled);
    assert_eq!(node.balance(&ann).await, (1_000, 0));
    assert_eq!(cancel(&node, &ann, id).await.unwrap(), Status::Cancelled);
    node.open().await;
    let unknown = MessageId(uuid::Uuid::max());
    assert!(matches!(cancel(&node, &ann, unknown).await, Err(Error::NotFound)));
    let bob = node.account("bob@example.com", 0).await;
    assert!(matches!(cancel(&node, &bob, id).await, Err(Error::NotFound)));
    node.check().await;
}

async fn what_somebody_holds_is_not(db: TestDb) {
    let (node, ann) = one(&db).await;
    node.open().await;
    let id = node.send(&ann, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    assert!(refused(&cancel(&node, &ann, id).await));
    // Also when its lease has run out: it may be out.
    db.clock.advance(LEASE * 2);
    assert!(refused(&cancel(&node, &ann, id).await));
    node.settle(vec![outcome(&held, accepted("1"))]).await;
    assert!(refused(&cancel(&node, &ann, id).await));
    assert_eq!(node.status(&ann, id).await, Status::Sent);
    node.check().await;
}

async fn what_was_put_off_is_found_where_it_waits(db: TestDb) {
    let (node, ann) = one(&db).await;
    node.open().await;
    let id = node.send(&ann, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    db.clock.advance(Duration::from_secs(3));
    node.settle(vec![outcome(&held, Outcome::Temporary { status: 0x45 })]).await;
    assert_eq!(cancel(&node, &ann, id).await.unwrap(), Status::Cancelled);
    db.clock.advance(Duration::from_secs(60));
    assert_eq!(node.claim().await.len(), 0);
    node.check().await;
}

async fn what_may_have_gone_out_is_not(db: TestDb) {
    let (node, ann) = one(&db).await;
    node.open().await;
    let id = node.send(&ann, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    node.settle(vec![outcome(&held, Outcome::InDoubt)]).await;
    assert!(refused(&cancel(&node, &ann, id).await));
    // A node that died with it.
    let other = node.send(&ann, text("Hello")).await;
    drop(node.arrived());
    let node = Node::start(&db).await;
    assert!(refused(&cancel(&node, &ann, other).await));
    assert_eq!(node.status(&ann, other).await, Status::Queued);
    node.check().await;
}

async fn a_message_of_which_a_part_went_out_is_not(db: TestDb) {
    let (node, ann) = one(&db).await;
    node.open().await;
    let id = node.send(&ann, parts(2)).await;
    let held = node.arrived().pop().unwrap();
    let outcomes = vec![(1, accepted("1")), (2, Outcome::Throttled)];
    node.settle(vec![judge(&held.leased, outcomes)]).await;
    assert!(refused(&cancel(&node, &ann, id).await));
    assert_eq!(node.status(&ann, id).await, Status::Queued);
    drop(held);
    db.clock.advance(Duration::from_secs(60));
    assert_eq!(node.claim().await.len(), 1);
    node.check().await;
}

/// Whoever comes first has it, and nobody has it twice.
async fn two_at_once_and_a_claim(db: TestDb) {
    let (node, ann) = one(&db).await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(node.send(&ann, text("Hello")).await);
    }
    node.desk.set_bound(true);
    let claimed = node
        .writing(async |writer| {
            let (reply, answer) = oneshot::channel();
            let room = node.desk.free_room(3).unwrap();
            writer.try_send(Command::Claim(Claim { carrier: node.carrier, room, reply })).unwrap();
            let cancels =
                ids.iter().chain(&ids).map(|id| messages::cancel(&node.cx, &writer, &ann, *id));
            let (claimed, cancelled) = tokio::join!(answer, join_all(cancels));
            let claimed: Vec<_> = claimed.unwrap().unwrap();
            let held: Vec<_> = claimed.iter().map(|h| h.leased.message.id).collect();
            for (id, done) in ids.iter().chain(&ids).zip(cancelled) {
                let done = done.map(|(_, state)| state.status);
                assert_eq!(refused(&done), held.contains(id), "{done:?}");
            }
            claimed
        })
        .await;
    let done = claimed.iter().enumerate().map(|(n, held)| outcome(held, accepted(&n.to_string())));
    node.settle(done.collect()).await;
    assert_eq!(node.balance(&ann).await, (1_000 - 100 * claimed.len() as i64, 0));
    node.check().await;
}
