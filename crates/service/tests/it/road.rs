//! The road: from accepted to delivered or failed, and the money that goes with it.

use crate::node::{Node, PRICE, accepted, delivered, outcome, parts, receipt, text};
use crate::support::{TestDb, on_both_engines};
use heliograph_domain::account::Mode;
use heliograph_domain::message::{Failure, FailureCode, Status};
use heliograph_domain::money::Amount;
use heliograph_domain::receipt::Verdict;
use heliograph_domain::submission::Outcome;
use heliograph_service::dispatch::judge;
use heliograph_service::error::Error;
use heliograph_service::messages;
use std::time::Duration;

on_both_engines!(road:
    a_message_is_handed_over_sent_and_delivered,
    a_message_of_several_parts_is_delivered_with_the_last,
    a_refused_message_costs_nothing,
    a_refused_part_pays_for_those_before_it,
    a_failing_receipt_ends_a_message_that_is_paid_for,
    a_part_that_arrives_late_is_noted,
    a_test_message_is_simulated_and_free,
    a_message_is_seen_by_its_own_account_and_mode,
);

async fn a_message_is_handed_over_sent_and_delivered(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let id = node.send(&ann, text("Hello")).await;
    let held = node.arrived();
    assert_eq!(held.len(), 1);
    let leased = &held[0].leased;
    assert_eq!((leased.message.id, leased.message.text.as_str()), (id, "Hello"));
    assert_eq!((leased.lease.owner, leased.lease.attempt), (node.cx.node, 1));
    assert_eq!((node.desk.places(), node.balance(&ann).await), (31, (900, 100)));
    assert_eq!(node.claim().await.len(), 0, "it is leased already");
    assert_eq!(node.status(&ann, id).await, Status::Queued);

    db.clock.advance(Duration::from_secs(1));
    node.settle(vec![outcome(&held[0], accepted("a1"))]).await;
    drop(held);
    let sent = node.state(&ann, id).await;
    assert_eq!((sent.status, sent.captured), (Status::Sent, Amount(PRICE)));
    assert_eq!(sent.sent_at, Some(node.cx.db.now()));
    assert_eq!((node.desk.places(), node.balance(&ann).await), (32, (900, 0)));
    node.check().await;

    db.clock.advance(Duration::from_secs(1));
    node.hear(vec![delivered("a1")]).await;
    let done = node.state(&ann, id).await;
    assert_eq!((done.status, done.captured), (Status::Delivered, Amount(PRICE)));
    assert_eq!((done.sent_at, done.done_at), (sent.sent_at, Some(node.cx.db.now())));
    assert_eq!(node.balance(&ann).await, (900, 0));
    node.check().await;
}

async fn a_message_of_several_parts_is_delivered_with_the_last(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let id = node.send(&ann, parts(3)).await;
    let held = node.arrived();
    assert_eq!(node.balance(&ann).await, (700, 300));
    let outcomes = [(1, accepted("a")), (2, accepted("b")), (3, accepted("c"))];
    node.settle(vec![judge(&held[0].leased, outcomes.into())]).await;
    let sent = node.state(&ann, id).await;
    assert_eq!((sent.status, sent.parts_accepted, sent.captured), (Status::Sent, 3, Amount(300)));
    for (id_, told, status) in [
        ("b", 1, Status::Sent),
        ("b", 1, Status::Sent),
        ("a", 2, Status::Sent),
        ("c", 3, Status::Delivered),
    ] {
        node.hear(vec![delivered(id_)]).await;
        let state = node.state(&ann, id).await;
        assert_eq!((state.parts_delivered, state.status), (told, status));
    }
    node.check().await;
}

async fn a_refused_message_costs_nothing(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let id = node.send(&ann, text("Hello")).await;
    let carrier_code = Some("0x0000000B".to_owned());
    let failure = Failure { code: FailureCode::InvalidRecipient, carrier_code };
    let held = node.arrived();
    node.settle(vec![outcome(&held[0], Outcome::Refused(failure.clone()))]).await;
    let failed = node.state(&ann, id).await;
    assert_eq!((failed.status, failed.failure), (Status::Failed, Some(failure)));
    assert_eq!(node.balance(&ann).await, (1_000, 0));
    db.clock.advance(Duration::from_secs(3_600));
    assert_eq!(node.claim().await.len(), 0);
    node.check().await;
}

async fn a_refused_part_pays_for_those_before_it(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let id = node.send(&ann, parts(3)).await;
    let refused = Outcome::Refused(Failure::plain(FailureCode::RejectedContent));
    let outcomes = vec![(1, accepted("a")), (2, refused), (3, accepted("c"))];
    let held = node.arrived();
    node.settle(vec![judge(&held[0].leased, outcomes)]).await;
    let failed = node.state(&ann, id).await;
    assert_eq!((failed.status, failed.captured), (Status::Failed, Amount(200)));
    assert_eq!(node.balance(&ann).await, (800, 0));
    node.check().await;
}

async fn a_failing_receipt_ends_a_message_that_is_paid_for(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let id = node.send(&ann, text("Hello")).await;
    let held = node.arrived();
    node.settle(vec![outcome(&held[0], accepted("a1"))]).await;
    let carrier_code = Some("011".to_owned());
    let failure = Failure { code: FailureCode::Unreachable, carrier_code };
    node.hear(vec![receipt("a1", &Verdict::Failed(failure.clone()))]).await;
    let failed = node.state(&ann, id).await;
    assert_eq!((failed.status, failed.failure), (Status::Failed, Some(failure)));
    assert_eq!((failed.captured, node.balance(&ann).await), (Amount(PRICE), (900, 0)));
    node.check().await;
}

async fn a_part_that_arrives_late_is_noted(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let id = node.send(&ann, parts(2)).await;
    let held = node.arrived();
    let outcomes = vec![(1, accepted("a")), (2, accepted("b"))];
    node.settle(vec![judge(&held[0].leased, outcomes)]).await;
    let failed = Verdict::Failed(Failure::plain(FailureCode::Unreachable));
    node.hear(vec![receipt("a", &failed)]).await;
    assert!(!node.state(&ann, id).await.late_receipt);
    node.hear(vec![delivered("b")]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.late_receipt), (Status::Failed, true));
    node.check().await;
}

async fn a_test_message_is_simulated_and_free(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 0).await;
    let testing = node.key(ann.account, Mode::Test).await;
    node.open().await;
    let sent = node.send_all(&testing, vec![(parts(2), None)]).await.pop().unwrap().unwrap();
    assert_eq!(sent.message.carrier, node.cx.settings().simulated);
    assert_ne!(sent.message.carrier, node.carrier);
    assert_eq!(sent.message.price(), Amount::ZERO);
    assert_eq!(node.arrived().len() + node.claim().await.len(), 0, "no real carrier gets it");
    assert_eq!(node.balance(&ann).await, (0, 0));
    node.check().await;
}

async fn a_message_is_seen_by_its_own_account_and_mode(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let bob = node.account("bob@example.com", 1_000).await;
    let testing = node.key(ann.account, Mode::Test).await;
    let second = node.key(ann.account, Mode::Live).await;
    let id = node.send(&ann, text("Hello")).await;
    for stranger in [bob, testing] {
        let seen = messages::get(&node.cx, &stranger, id).await;
        assert!(matches!(seen, Err(Error::NotFound)), "{seen:?}");
    }
    assert_eq!(messages::get(&node.cx, &second, id).await.unwrap().0.id, id);
}
