//! The local queue: new messages are handed over directly only while no older ones wait.

use crate::node::{Node, accepted, outcome, text};
use futures_util::FutureExt;
use heliograph_domain::fields::Validity;
use heliograph_domain::id::MessageId;
use heliograph_domain::message::{Message, MessageStatus};
use heliograph_service::kernel::commands::accept::{Accept, AcceptOutcome};
use heliograph_service::kernel::commands::claim::{ClaimMessages, DispatchItem};
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::messaging::messages::SendRequest;
use heliograph_testing::TestDb;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

fn ids(held: &[DispatchItem]) -> Vec<MessageId> {
    held.iter().map(|h| h.leased.message.id).collect()
}

/// Returns true when the dispatcher was woken since the last call.
fn was_woken(node: &Node) -> bool {
    node.dispatch_queue.wake.notified().now_or_never().is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_queue_opens_after_a_complete_claim() {
    let db = TestDb::new().await;
    let node = Node::with(&db, db.db.clone(), 1, 4).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.dispatch_queue.set_available(true);
    assert!(was_woken(&node));
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.push(node.send(&ann, text("Hello")).await);
        assert_eq!(ids(&node.arrived()), [], "nothing is handed over before the first claim");
        assert!(was_woken(&node));
    }
    assert_eq!(ids(&node.claim().await), sent);
    // A claim of three with room for four: no older messages wait.
    let next = node.send(&ann, text("Hello")).await;
    assert_eq!(ids(&node.arrived()), [next]);
    assert!(!was_woken(&node));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_local_queue_closes_until_the_backlog_is_drained() {
    let db = TestDb::new().await;
    let node = Node::with(&db, db.db.clone(), 1, 4).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open_queue().await;
    let sent = node.send_all(&ann, (0..10).map(|_| (text("Hello"), None)).collect()).await;
    let sent: Vec<_> = sent.into_iter().map(|s| s.unwrap().message.id).collect();
    let mut seen = Vec::new();
    let mut held = node.arrived();
    assert_eq!(ids(&held), sent[..4]);
    // There is room again, but the six older messages come first.
    settle(&node, &mut held, &mut seen).await;
    let late = node.send(&ann, text("Hello")).await;
    assert_eq!(ids(&node.arrived()), []);
    for expected in [&sent[4..8], &[sent[8], sent[9], late]] {
        let mut held = node.claim().await;
        assert_eq!(ids(&held), expected);
        settle(&node, &mut held, &mut seen).await;
    }
    let next = node.send(&ann, text("Hello")).await;
    let mut held = node.arrived();
    assert_eq!(ids(&held), [next]);
    settle(&node, &mut held, &mut seen).await;
    assert_eq!(seen.len(), 12);
    for id in seen {
        assert_eq!(node.status(&ann, id).await, MessageStatus::Sent);
    }
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claim_of_expired_messages_is_followed_by_another() {
    let db = TestDb::new().await;
    let node = Node::with(&db, db.db.clone(), 1, 4).await;
    let ann = node.account("ann@example.com", 10_000).await;
    for _ in 0..4 {
        node.send(&ann, SendRequest { validity: Validity::try_from(60).unwrap(), ..text("Hello") })
            .await;
    }
    let alive = node.send(&ann, text("Hello")).await;
    db.clock.advance(Duration::from_secs(61));
    node.dispatch_queue.set_available(true);
    let _ = was_woken(&node);
    assert_eq!(ids(&node.claim().await), []);
    assert!(was_woken(&node), "more messages may wait");
    let late = node.send(&ann, text("Hello")).await;
    assert_eq!(ids(&node.arrived()), [], "the older message goes first");
    assert_eq!(ids(&node.claim().await), [alive, late]);
    node.check().await;
}

/// Reports all held messages as accepted, which frees their slots.
async fn settle(node: &Node, held: &mut Vec<DispatchItem>, seen: &mut Vec<MessageId>) {
    let named = |h: &DispatchItem| outcome(h, accepted(&h.leased.message.id.to_string()));
    node.settle(held.iter().map(named).collect()).await;
    seen.extend(ids(held));
    held.clear();
}

/// A message is stored after the claims of the same batch were executed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_accepted_in_the_batch_of_a_claim_is_not_overtaken() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.dispatch_queue.set_available(true);
    let message = node.send_all(&ann, vec![(text("Hello"), None)]).await.pop().unwrap();
    let first = node.claim().await.pop().unwrap();
    node.settle(vec![outcome(&first, accepted("a"))]).await;
    node.dispatch_queue.set_available(false);
    node.dispatch_queue.set_available(true);
    let concurrent = copy(&node, &message.unwrap().message, Duration::ZERO);
    let (reply, mut claimed) = oneshot::channel();
    let room = node.dispatch_queue.reserve_up_to(9).unwrap();
    let claim = Command::ClaimMessages(ClaimMessages { carrier: node.carrier, room, reply });
    let (accept, mut outcome) = accept(&concurrent);
    assert!(was_woken(&node));
    node.write(vec![claim, accept]).await;
    assert_eq!(outcome.try_recv().unwrap().unwrap(), AcceptOutcome::Done);
    assert_eq!(ids(&claimed.try_recv().unwrap().unwrap()), []);
    assert!(was_woken(&node), "the message in the table must be claimed");
    let next = node.send(&ann, text("Hello")).await;
    assert_eq!(ids(&node.arrived()), []);
    assert_eq!(ids(&node.claim().await), [concurrent.id, next]);
}

/// Returns a copy of a message with a new id, scheduled `later`.
fn copy(node: &Node, message: &Message, later: Duration) -> Arc<Message> {
    let (id, now) = node.cx.next_id();
    let scheduled_for = (later > Duration::ZERO).then(|| now.after(later));
    Arc::new(Message { id: MessageId(id), accepted_at: now, scheduled_for, ..message.clone() })
}

type ReceiptOutcome = oneshot::Receiver<heliograph_store::StoreResult<AcceptOutcome>>;

fn accept(message: &Arc<Message>) -> (Command, ReceiptOutcome) {
    let (reply, outcome) = oneshot::channel();
    let accept = Accept { message: message.clone(), idempotency: None, reply };
    (Command::Accept(accept), outcome)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unbound_carrier_gets_no_messages() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open_queue().await;
    node.dispatch_queue.set_available(false);
    let first = node.send(&ann, text("Hello")).await;
    assert_eq!(ids(&node.arrived()), []);
    node.dispatch_queue.set_available(true);
    let second = node.send(&ann, text("Hello")).await;
    assert_eq!(ids(&node.arrived()), [], "the first message goes first");
    assert_eq!(ids(&node.claim().await), [first, second]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_claimed_when_due() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open_queue().await;
    let now = node.send_all(&ann, vec![(text("Hello"), None)]).await.pop().unwrap().unwrap();
    assert_eq!(ids(&node.arrived()), [now.message.id]);
    let later = copy(&node, &now.message, Duration::from_secs(60));
    let (command, mut outcome) = accept(&later);
    node.write(vec![command]).await;
    assert_eq!(outcome.try_recv().unwrap().unwrap(), AcceptOutcome::Done);
    db.clock.advance(Duration::from_millis(59_999));
    assert_eq!(ids(&node.arrived()), []);
    assert_eq!(ids(&node.claim().await), []);
    db.clock.advance(Duration::from_millis(1));
    assert_eq!(ids(&node.claim().await), [later.id]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_for_another_carrier_stays_in_the_table() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open_queue().await;
    let here = node.send_all(&ann, vec![(text("Hello"), None)]).await.pop().unwrap().unwrap();
    drop(node.arrived());
    let simulated = node.cx.settings().simulated;
    let (id, accepted_at) = node.cx.next_id();
    let there =
        Message { id: MessageId(id), accepted_at, carrier: simulated, ..(*here.message).clone() };
    let (command, mut outcome) = accept(&Arc::new(there));
    node.write(vec![command]).await;
    assert_eq!(outcome.try_recv().unwrap().unwrap(), AcceptOutcome::Done);
    assert_eq!(ids(&node.arrived()), []);
    // Such a message does not close this carrier's local queue.
    let next = node.send(&ann, text("Hello")).await;
    assert_eq!(ids(&node.arrived()), [next]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn released_slots_are_free_again() {
    let db = TestDb::new().await;
    let node = Node::with(&db, db.db.clone(), 1, 3).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open_queue().await;
    for _ in 0..2 {
        node.send(&ann, text("Hello")).await;
    }
    let mut held = node.arrived();
    assert_eq!((held.len(), node.dispatch_queue.free_slots()), (2, 1));
    held.pop();
    assert_eq!(node.dispatch_queue.free_slots(), 2);
    // A refused message takes no slot, and a claim releases the slots that it does not need.
    let bob = node.account("bob@example.com", 0).await;
    assert!(node.send_all(&bob, vec![(text("Hi"), None)]).await[0].is_err());
    assert_eq!(node.claim().await.len(), 0);
    assert_eq!(node.dispatch_queue.free_slots(), 2);
    drop(held);
    assert_eq!(
        (
            node.dispatch_queue.free_slots(),
            node.dispatch_queue.reserve_up_to(9).unwrap().num_permits()
        ),
        (3, 3)
    );
}
