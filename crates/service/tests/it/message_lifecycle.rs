//! The lifecycle of a message, from accepted to delivered or failed, and its charges.

use crate::node::{Node, PRICE, accepted, delivered, outcome, parts, receipt, text};
use heliograph_domain::account::Mode;
use heliograph_domain::message::{Failure, FailureCode, MessageStatus};
use heliograph_domain::money::Amount;
use heliograph_domain::receipt::ReceiptOutcome;
use heliograph_domain::submission::SubmitOutcome;
use heliograph_service::kernel::error::Error;
use heliograph_service::messaging::dispatch::evaluate_outcomes;
use heliograph_service::messaging::messages;
use heliograph_testing::TestDb;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_is_dispatched_sent_and_delivered() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let id = node.send(&ann, text("Hello")).await;
    let held = node.arrived();
    assert_eq!(held.len(), 1);
    let leased = &held[0].leased;
    assert_eq!((leased.message.id, leased.message.text.as_str()), (id, "Hello"));
    assert_eq!((leased.lease.owner, leased.lease.attempt), (node.cx.node, 1));
    assert_eq!((node.dispatch_queue.free_slots(), node.balance(&ann).await), (31, (900, 100)));
    assert_eq!(node.claim().await.len(), 0, "the message is leased already");
    assert_eq!(node.status(&ann, id).await, MessageStatus::Queued);

    db.clock.advance(Duration::from_secs(1));
    node.settle(vec![outcome(&held[0], accepted("a1"))]).await;
    drop(held);
    let sent = node.state(&ann, id).await;
    assert_eq!((sent.status, sent.captured), (MessageStatus::Sent, Amount(PRICE)));
    assert_eq!(sent.sent_at, Some(node.cx.db.now()));
    assert_eq!((node.dispatch_queue.free_slots(), node.balance(&ann).await), (32, (900, 0)));
    node.check().await;

    db.clock.advance(Duration::from_secs(1));
    node.commit_receipts(vec![delivered("a1")]).await;
    let done = node.state(&ann, id).await;
    assert_eq!((done.status, done.captured), (MessageStatus::Delivered, Amount(PRICE)));
    assert_eq!((done.sent_at, done.done_at), (sent.sent_at, Some(node.cx.db.now())));
    assert_eq!(node.balance(&ann).await, (900, 0));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn multipart_message_is_delivered_with_its_last_part() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let id = node.send(&ann, parts(3)).await;
    let held = node.arrived();
    assert_eq!(node.balance(&ann).await, (700, 300));
    let outcomes = [(1, accepted("a")), (2, accepted("b")), (3, accepted("c"))];
    node.settle(vec![evaluate_outcomes(&held[0].leased, outcomes.into())]).await;
    let sent = node.state(&ann, id).await;
    assert_eq!(
        (sent.status, sent.parts_accepted, sent.captured),
        (MessageStatus::Sent, 3, Amount(300))
    );
    for (id_, delivered_parts, status) in [
        ("b", 1, MessageStatus::Sent),
        ("b", 1, MessageStatus::Sent),
        ("a", 2, MessageStatus::Sent),
        ("c", 3, MessageStatus::Delivered),
    ] {
        node.commit_receipts(vec![delivered(id_)]).await;
        let state = node.state(&ann, id).await;
        assert_eq!((state.parts_delivered, state.status), (delivered_parts, status));
    }
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_message_costs_nothing() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let id = node.send(&ann, text("Hello")).await;
    let carrier_code = Some("0x0000000B".to_owned());
    let failure = Failure { code: FailureCode::InvalidRecipient, carrier_code };
    let held = node.arrived();
    node.settle(vec![outcome(&held[0], SubmitOutcome::Refused(failure.clone()))]).await;
    let failed = node.state(&ann, id).await;
    assert_eq!((failed.status, failed.failure), (MessageStatus::Failed, Some(failure)));
    assert_eq!(node.balance(&ann).await, (1_000, 0));
    db.clock.advance(Duration::from_secs(3_600));
    assert_eq!(node.claim().await.len(), 0);
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_part_charges_only_the_parts_before_it() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let id = node.send(&ann, parts(3)).await;
    let refused = SubmitOutcome::Refused(Failure::new(FailureCode::RejectedContent));
    let outcomes = vec![(1, accepted("a")), (2, refused), (3, accepted("c"))];
    let held = node.arrived();
    node.settle(vec![evaluate_outcomes(&held[0].leased, outcomes)]).await;
    let failed = node.state(&ann, id).await;
    assert_eq!((failed.status, failed.captured), (MessageStatus::Failed, Amount(200)));
    assert_eq!(node.balance(&ann).await, (800, 0));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_receipt_ends_a_charged_message() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let id = node.send(&ann, text("Hello")).await;
    let held = node.arrived();
    node.settle(vec![outcome(&held[0], accepted("a1"))]).await;
    let carrier_code = Some("011".to_owned());
    let failure = Failure { code: FailureCode::Unreachable, carrier_code };
    node.commit_receipts(vec![receipt("a1", &ReceiptOutcome::Failed(failure.clone()))]).await;
    let failed = node.state(&ann, id).await;
    assert_eq!((failed.status, failed.failure), (MessageStatus::Failed, Some(failure)));
    assert_eq!((failed.captured, node.balance(&ann).await), (Amount(PRICE), (900, 0)));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_delivery_of_a_part_is_recorded() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let id = node.send(&ann, parts(2)).await;
    let held = node.arrived();
    let outcomes = vec![(1, accepted("a")), (2, accepted("b"))];
    node.settle(vec![evaluate_outcomes(&held[0].leased, outcomes)]).await;
    let failed = ReceiptOutcome::Failed(Failure::new(FailureCode::Unreachable));
    node.commit_receipts(vec![receipt("a", &failed)]).await;
    assert!(!node.state(&ann, id).await.late_receipt);
    node.commit_receipts(vec![delivered("b")]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.late_receipt), (MessageStatus::Failed, true));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_message_is_simulated_and_free() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 0).await;
    let testing = node.key(ann.account, Mode::Test).await;
    node.open_queue().await;
    let sent = node.send_all(&testing, vec![(parts(2), None)]).await.pop().unwrap().unwrap();
    assert_eq!(sent.message.carrier, node.cx.settings().simulated);
    assert_ne!(sent.message.carrier, node.carrier);
    assert_eq!(sent.message.price(), Amount::ZERO);
    assert_eq!(
        node.arrived().len() + node.claim().await.len(),
        0,
        "no real carrier gets a test message"
    );
    assert_eq!(node.balance(&ann).await, (0, 0));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_is_visible_only_to_its_account_and_mode() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let bob = node.account("bob@example.com", 1_000).await;
    let testing = node.key(ann.account, Mode::Test).await;
    let second = node.key(ann.account, Mode::Live).await;
    let id = node.send(&ann, text("Hello")).await;
    for other in [bob, testing] {
        let seen = messages::get(&node.cx, &other, id).await;
        assert!(matches!(seen, Err(Error::NotFound)), "{seen:?}");
    }
    assert_eq!(messages::get(&node.cx, &second, id).await.unwrap().0.id, id);
}
