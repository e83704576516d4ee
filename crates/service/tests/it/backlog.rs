//! The desk: new messages take the short way only while nothing older waits, and nothing is stuck.

use crate::node::{Node, accepted, outcome, text};
use crate::support::{TestDb, on_both_engines};
use futures_util::FutureExt;
use heliograph_domain::id::MessageId;
use heliograph_domain::message::{Message, Status};
use heliograph_service::messages::Send;
use heliograph_service::writer::{Accept, Accepted, Claim, Command, Handed};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

on_both_engines!(backlog:
    a_desk_opens_when_a_claim_has_found_everything,
    a_full_desk_closes_until_the_backlog_is_drained,
    a_claim_that_finds_what_expired_is_not_the_last,
    a_message_accepted_beside_a_claim_is_not_overtaken,
    a_carrier_that_is_away_gets_nothing,
    what_is_due_later_is_claimed_later,
    a_message_over_another_carrier_stays_in_the_table,
    places_are_free_again_when_they_are_left,
);

fn ids(held: &[Handed]) -> Vec<MessageId> {
    held.iter().map(|h| h.leased.message.id).collect()
}

/// Whether the bell has rung since the last look.
fn rang(node: &Node) -> bool {
    node.desk.bell.notified().now_or_never().is_some()
}

async fn a_desk_opens_when_a_claim_has_found_everything(db: TestDb) {
    let node = Node::with(&db, db.db.clone(), (1, 4)).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.desk.set_bound(true);
    assert!(rang(&node));
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.push(node.send(&ann, text("Hello")).await);
        assert_eq!(ids(&node.arrived()), [], "nobody has looked yet what waits");
        assert!(rang(&node));
    }
    assert_eq!(ids(&node.claim().await), sent);
    // Three for four places: nothing older waits.
    let next = node.send(&ann, text("Hello")).await;
    assert_eq!(ids(&node.arrived()), [next]);
    assert!(!rang(&node));
}

async fn a_full_desk_closes_until_the_backlog_is_drained(db: TestDb) {
    let node = Node::with(&db, db.db.clone(), (1, 4)).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open().await;
    let sent = node.send_all(&ann, (0..10).map(|_| (text("Hello"), None)).collect()).await;
    let sent: Vec<_> = sent.into_iter().map(|s| s.unwrap().message.id).collect();
    let mut seen = Vec::new();
    let mut held = node.arrived();
    assert_eq!(ids(&held), sent[..4]);
    // There is room again, but the six come first.
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
        assert_eq!(node.status(&ann, id).await, Status::Sent);
    }
    node.check().await;
}

async fn a_claim_that_finds_what_expired_is_not_the_last(db: TestDb) {
    let node = Node::with(&db, db.db.clone(), (1, 4)).await;
    let ann = node.account("ann@example.com", 10_000).await;
    for _ in 0..4 {
        node.send(&ann, Send { validity: Duration::from_secs(60), ..text("Hello") }).await;
    }
    let alive = node.send(&ann, text("Hello")).await;
    db.clock.advance(Duration::from_secs(61));
    node.desk.set_bound(true);
    let _ = rang(&node);
    assert_eq!(ids(&node.claim().await), []);
    assert!(rang(&node), "more may wait");
    let late = node.send(&ann, text("Hello")).await;
    assert_eq!(ids(&node.arrived()), [], "the older one goes first");
    assert_eq!(ids(&node.claim().await), [alive, late]);
    node.check().await;
}

/// All are taken; their places are free again.
async fn settle(node: &Node, held: &mut Vec<Handed>, seen: &mut Vec<MessageId>) {
    let named = |h: &Handed| outcome(h, accepted(&h.leased.message.id.to_string()));
    node.settle(held.iter().map(named).collect()).await;
    seen.extend(ids(held));
    held.clear();
}

/// A message of a batch is stored after the claims of the same batch have looked.
async fn a_message_accepted_beside_a_claim_is_not_overtaken(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.desk.set_bound(true);
    let message = node.send_all(&ann, vec![(text("Hello"), None)]).await.pop().unwrap();
    let first = node.claim().await.pop().unwrap();
    node.settle(vec![outcome(&first, accepted("a"))]).await;
    node.desk.set_bound(false);
    node.desk.set_bound(true);
    let beside = copy(&node, &message.unwrap().message, Duration::ZERO);
    let (reply, mut claimed) = oneshot::channel();
    let room = node.desk.free_room(9).unwrap();
    let claim = Command::Claim(Claim { carrier: node.carrier, room, reply });
    let (accept, mut verdict) = accept(&beside);
    assert!(rang(&node));
    node.write(vec![claim, accept]).await;
    assert_eq!(verdict.try_recv().unwrap().unwrap(), Accepted::Done);
    assert_eq!(ids(&claimed.try_recv().unwrap().unwrap()), []);
    assert!(rang(&node), "what it left in the table has to be claimed");
    let next = node.send(&ann, text("Hello")).await;
    assert_eq!(ids(&node.arrived()), []);
    assert_eq!(ids(&node.claim().await), [beside.id, next]);
}

/// The same message under another name, to be sent so much later.
fn copy(node: &Node, message: &Message, later: Duration) -> Arc<Message> {
    let (id, now) = node.cx.next_id();
    let scheduled_for = (later > Duration::ZERO).then(|| now.after(later));
    Arc::new(Message { id: MessageId(id), accepted_at: now, scheduled_for, ..message.clone() })
}

type Verdict = oneshot::Receiver<heliograph_store::Result<Accepted>>;

fn accept(message: &Arc<Message>) -> (Command, Verdict) {
    let (reply, verdict) = oneshot::channel();
    let accept = Accept { message: message.clone(), idempotency: None, reply };
    (Command::Accept(accept), verdict)
}

async fn a_carrier_that_is_away_gets_nothing(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open().await;
    node.desk.set_bound(false);
    let first = node.send(&ann, text("Hello")).await;
    assert_eq!(ids(&node.arrived()), []);
    node.desk.set_bound(true);
    let second = node.send(&ann, text("Hello")).await;
    assert_eq!(ids(&node.arrived()), [], "the first one goes first");
    assert_eq!(ids(&node.claim().await), [first, second]);
}

async fn what_is_due_later_is_claimed_later(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open().await;
    let now = node.send_all(&ann, vec![(text("Hello"), None)]).await.pop().unwrap().unwrap();
    assert_eq!(ids(&node.arrived()), [now.message.id]);
    let later = copy(&node, &now.message, Duration::from_secs(60));
    let (command, mut verdict) = accept(&later);
    node.write(vec![command]).await;
    assert_eq!(verdict.try_recv().unwrap().unwrap(), Accepted::Done);
    db.clock.advance(Duration::from_millis(59_999));
    assert_eq!(ids(&node.arrived()), []);
    assert_eq!(ids(&node.claim().await), []);
    db.clock.advance(Duration::from_millis(1));
    assert_eq!(ids(&node.claim().await), [later.id]);
}

async fn a_message_over_another_carrier_stays_in_the_table(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open().await;
    let here = node.send_all(&ann, vec![(text("Hello"), None)]).await.pop().unwrap().unwrap();
    drop(node.arrived());
    let simulated = node.cx.settings().simulated;
    let (id, accepted_at) = node.cx.next_id();
    let there =
        Message { id: MessageId(id), accepted_at, carrier: simulated, ..(*here.message).clone() };
    let (command, mut verdict) = accept(&Arc::new(there));
    node.write(vec![command]).await;
    assert_eq!(verdict.try_recv().unwrap().unwrap(), Accepted::Done);
    assert_eq!(ids(&node.arrived()), []);
    // It does not close this carrier's desk.
    let next = node.send(&ann, text("Hello")).await;
    assert_eq!(ids(&node.arrived()), [next]);
}

async fn places_are_free_again_when_they_are_left(db: TestDb) {
    let node = Node::with(&db, db.db.clone(), (1, 3)).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open().await;
    for _ in 0..2 {
        node.send(&ann, text("Hello")).await;
    }
    let mut held = node.arrived();
    assert_eq!((held.len(), node.desk.places()), (2, 1));
    held.pop();
    assert_eq!(node.desk.places(), 2);
    // A message that is refused takes no place, and a claim gives back what it does not need.
    let bob = node.account("bob@example.com", 0).await;
    assert!(node.send_all(&bob, vec![(text("Hi"), None)]).await[0].is_err());
    assert_eq!(node.claim().await.len(), 0);
    assert_eq!(node.desk.places(), 2);
    drop(held);
    assert_eq!((node.desk.places(), node.desk.free_room(9).unwrap().num_permits()), (3, 3));
}
