//! Cancelling messages: possible only before the submission starts, even under concurrency.

use crate::node::{Node, accepted, outcome, parts, text};
use futures_util::future::join_all;
use heliograph_domain::id::MessageId;
use heliograph_domain::lease::LEASE;
use heliograph_domain::message::MessageStatus;
use heliograph_domain::submission::SubmitOutcome;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::commands::claim::ClaimMessages;
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::error::{Error, Result};
use heliograph_service::messaging::dispatch::evaluate_outcomes;
use heliograph_service::messaging::messages;
use heliograph_testing::TestDb;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Starts a node whose carrier is not bound, and an account with a balance.
async fn start(db: &TestDb) -> (Node, Arc<Caller>) {
    let node = Node::start(db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    (node, ann)
}

async fn cancel(node: &Node, caller: &Caller, id: MessageId) -> Result<MessageStatus> {
    node.writing(async |writer| {
        let done = messages::cancel(&node.cx, &writer, caller, id).await;
        done.map(|(_, state)| state.status)
    })
    .await
}

fn refused(done: &Result<MessageStatus>) -> bool {
    matches!(done, Err(Error::NotCancellable(_)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_message_is_cancelled_and_its_reservation_released() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    let id = node.send(&ann, parts(3)).await;
    assert_eq!(node.balance(&ann).await, (700, 300));
    assert_eq!(cancel(&node, &ann, id).await.unwrap(), MessageStatus::Cancelled);
    assert_eq!(node.balance(&ann).await, (1_000, 0));
    assert_eq!(cancel(&node, &ann, id).await.unwrap(), MessageStatus::Cancelled);
    node.open_queue().await;
    let unknown = MessageId(uuid::Uuid::max());
    assert!(matches!(cancel(&node, &ann, unknown).await, Err(Error::NotFound)));
    let bob = node.account("bob@example.com", 0).await;
    assert!(matches!(cancel(&node, &bob, id).await, Err(Error::NotFound)));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leased_message_is_not_cancelled() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    node.open_queue().await;
    let id = node.send(&ann, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    assert!(refused(&cancel(&node, &ann, id).await));
    // Even when its lease has expired, since it may have been sent.
    db.clock.advance(LEASE * 2);
    assert!(refused(&cancel(&node, &ann, id).await));
    node.settle(vec![outcome(&held, accepted("1"))]).await;
    assert!(refused(&cancel(&node, &ann, id).await));
    assert_eq!(node.status(&ann, id).await, MessageStatus::Sent);
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_waiting_for_a_retry_is_cancelled() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    node.open_queue().await;
    let id = node.send(&ann, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    db.clock.advance(Duration::from_secs(3));
    node.settle(vec![outcome(&held, SubmitOutcome::Temporary { status: 0x45 })]).await;
    assert_eq!(cancel(&node, &ann, id).await.unwrap(), MessageStatus::Cancelled);
    db.clock.advance(Duration::from_secs(60));
    assert_eq!(node.claim().await.len(), 0);
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_in_doubt_is_not_cancelled() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    node.open_queue().await;
    let id = node.send(&ann, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    node.settle(vec![outcome(&held, SubmitOutcome::InDoubt)]).await;
    assert!(refused(&cancel(&node, &ann, id).await));
    // A message that was leased by a crashed node.
    let other = node.send(&ann, text("Hello")).await;
    drop(node.arrived());
    let node = Node::start(&db).await;
    assert!(refused(&cancel(&node, &ann, other).await));
    assert_eq!(node.status(&ann, other).await, MessageStatus::Queued);
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partly_sent_message_is_not_cancelled() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    node.open_queue().await;
    let id = node.send(&ann, parts(2)).await;
    let held = node.arrived().pop().unwrap();
    let outcomes = vec![(1, accepted("1")), (2, SubmitOutcome::Throttled)];
    node.settle(vec![evaluate_outcomes(&held.leased, outcomes)]).await;
    assert!(refused(&cancel(&node, &ann, id).await));
    assert_eq!(node.status(&ann, id).await, MessageStatus::Queued);
    drop(held);
    db.clock.advance(Duration::from_secs(60));
    assert_eq!(node.claim().await.len(), 1);
    node.check().await;
}

/// The first command gets the message, and no message is both cancelled and claimed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_cancels_and_a_claim_have_one_winner() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(node.send(&ann, text("Hello")).await);
    }
    node.dispatch_queue.set_available(true);
    let claimed = node
        .writing(async |writer| {
            let (reply, answer) = oneshot::channel();
            let room = node.dispatch_queue.reserve_up_to(3).unwrap();
            writer
                .try_send(Command::ClaimMessages(ClaimMessages {
                    carrier: node.carrier,
                    room,
                    reply,
                }))
                .unwrap();
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
