//! Receipts: whichever half of a part comes first, both meet once.

use crate::node::{ANN, Node, accepted, delivered, outcome, parts, receipt, text};
use crate::support::{TestDb, on_both_engines};
use heliograph_domain::id::MessageId;
use heliograph_domain::message::{Failure, FailureCode, Status};
use heliograph_domain::money::Amount;
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::{Receipt, Verdict};
use heliograph_service::caller::Caller;
use heliograph_service::dispatch::judge;
use heliograph_service::janitor;
use heliograph_service::messages::DEFAULT_VALIDITY;
use heliograph_service::writer::{Handed, Progress};
use std::sync::Arc;
use std::time::Duration;

on_both_engines!(receipts:
    the_receipt_comes_before_the_outcome,
    outcome_and_receipt_come_in_one_batch,
    a_receipt_that_comes_twice_counts_once,
    an_id_is_found_in_its_other_spellings,
    a_receipt_for_somebody_else_changes_nothing,
    an_early_receipt_meets_its_part_in_another_spelling,
    early_receipts_of_parts_wait_for_their_outcomes,
    a_carrier_that_names_two_messages_alike_stops_nothing,
    a_message_without_a_receipt_fails_in_the_end,
    orphans_are_swept_away,
);

/// A node, an account, and so many messages on their way.
async fn on_their_way(db: &TestDb, n: usize) -> (Node, Arc<Caller>, Vec<Handed>) {
    let node = Node::start(db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open().await;
    for _ in 0..n {
        node.send(&ann, text("Hello")).await;
    }
    let held = node.arrived();
    assert_eq!(held.len(), n);
    (node, ann, held)
}

fn id(held: &Handed) -> MessageId {
    held.leased.message.id
}

fn failed() -> Verdict {
    Verdict::Failed(Failure::plain(FailureCode::Unreachable))
}

async fn the_receipt_comes_before_the_outcome(db: TestDb) {
    let (node, ann, held) = on_their_way(&db, 2).await;
    node.hear(vec![delivered("a"), receipt("b", &failed())]).await;
    for held in &held {
        assert_eq!(node.status(&ann, id(held)).await, Status::Queued);
    }
    node.settle(vec![outcome(&held[0], accepted("a")), outcome(&held[1], accepted("b"))]).await;
    let state = node.state(&ann, id(&held[0])).await;
    assert_eq!((state.status, state.captured), (Status::Delivered, Amount(100)));
    let state = node.state(&ann, id(&held[1])).await;
    assert_eq!((state.status, state.captured), (Status::Failed, Amount(100)));
    assert_eq!(state.failure, Some(Failure::plain(FailureCode::Unreachable)));
    node.check().await;
}

async fn outcome_and_receipt_come_in_one_batch(db: TestDb) {
    let (node, ann, held) = on_their_way(&db, 3).await;
    let settlements: Vec<_> =
        held.iter().zip(["a", "b", "c"]).map(|(h, id)| outcome(h, accepted(id))).collect();
    let receipts = [delivered("a"), receipt("b", &failed())];
    let receipts = receipts.map(|r| (node.carrier, r)).into();
    node.tell(Progress { settlements, receipts, ..Progress::default() }).await;
    for (held, status) in held.iter().zip([Status::Delivered, Status::Failed, Status::Sent]) {
        let state = node.state(&ann, id(held)).await;
        assert_eq!((state.status, state.captured), (status, Amount(100)));
    }
    node.check().await;
}

async fn a_receipt_that_comes_twice_counts_once(db: TestDb) {
    let (node, ann, held) = on_their_way(&db, 1).await;
    node.hear(vec![delivered("a"), delivered("a")]).await;
    node.hear(vec![delivered("a")]).await;
    node.settle(vec![outcome(&held[0], accepted("a"))]).await;
    let before = node.state(&ann, id(&held[0])).await;
    assert_eq!(before.status, Status::Delivered);
    db.clock.advance(Duration::from_secs(9));
    node.hear(vec![delivered("a"), receipt("a", &failed())]).await;
    assert_eq!(node.state(&ann, id(&held[0])).await, before);
    node.check().await;
}

async fn an_id_is_found_in_its_other_spellings(db: TestDb) {
    let spellings = [
        ("1234567890", "499602D2"),
        ("499602d3", "1234567891"),
        ("15", "0000000015"),
        ("7b", "0000000123"),
        ("ab-77", "AB-77"),
    ];
    let (node, ann, held) = on_their_way(&db, 2 * spellings.len()).await;
    for (i, (ours, theirs)) in spellings.into_iter().enumerate() {
        // One half after the other.
        node.settle(vec![outcome(&held[2 * i], accepted(ours))]).await;
        node.hear(vec![delivered(theirs)]).await;
        assert_eq!(node.status(&ann, id(&held[2 * i])).await, Status::Delivered, "{theirs}");
        // Both at once.
        let settlements = vec![outcome(&held[2 * i + 1], accepted(ours))];
        let receipts = vec![(node.carrier, delivered(theirs))];
        node.tell(Progress { settlements, receipts, ..Progress::default() }).await;
        assert_eq!(node.status(&ann, id(&held[2 * i + 1])).await, Status::Delivered, "{theirs}");
    }
    node.check().await;
}

async fn a_receipt_for_somebody_else_changes_nothing(db: TestDb) {
    let (node, ann, held) = on_their_way(&db, 2).await;
    let somebody = Recipient(ANN.0 + 1);
    let stray = |id| Receipt { recipient: somebody, ..receipt(id, &failed()) };
    // Before the outcome, with it, and after it.
    node.hear(vec![stray("a")]).await;
    node.settle(vec![outcome(&held[0], accepted("a"))]).await;
    let settlements = vec![outcome(&held[1], accepted("b"))];
    node.tell(Progress {
        settlements,
        receipts: vec![(node.carrier, stray("b"))],
        ..Progress::default()
    })
    .await;
    node.hear(vec![stray("a"), stray("b")]).await;
    for held in &held {
        assert_eq!(node.status(&ann, id(held)).await, Status::Sent);
    }
    node.hear(vec![delivered("a"), delivered("b")]).await;
    for held in &held {
        assert_eq!(node.status(&ann, id(held)).await, Status::Delivered);
    }
    node.check().await;
}

async fn an_early_receipt_meets_its_part_in_another_spelling(db: TestDb) {
    let (node, ann, held) = on_their_way(&db, 3).await;
    let stray = Receipt { recipient: Recipient(447_900_000_000), ..delivered("0000001B") };
    node.hear(vec![delivered("000000FF"), delivered("0000001A"), stray]).await;
    let taken = ["26", "27", "255"];
    let taken = held.iter().zip(taken).map(|(h, id)| outcome(h, accepted(id)));
    node.settle(taken.collect()).await;
    for held in &held {
        assert_eq!(node.status(&ann, id(held)).await, Status::Sent);
    }
    for _ in 0..2 {
        node.writing(async |writer| janitor::match_early_receipts(&node.cx, &writer).await)
            .await
            .unwrap();
        assert_eq!(node.status(&ann, id(&held[0])).await, Status::Delivered);
        assert_eq!(node.status(&ann, id(&held[1])).await, Status::Sent, "not its recipient");
        assert_eq!(node.status(&ann, id(&held[2])).await, Status::Delivered);
    }
    node.check().await;
}

async fn early_receipts_of_parts_wait_for_their_outcomes(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let id = node.send(&ann, parts(3)).await;
    let held = node.arrived();
    node.hear(vec![delivered("c"), delivered("a")]).await;
    let outcomes = [(1, accepted("a")), (2, accepted("b")), (3, accepted("c"))];
    node.settle(vec![judge(&held[0].leased, outcomes.into())]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.parts_delivered), (Status::Sent, 2));
    node.hear(vec![delivered("b")]).await;
    assert_eq!(node.status(&ann, id).await, Status::Delivered);
    node.check().await;
}

/// Some answer every submission with the same id. Nothing can tell their receipts apart, but
/// everything that was taken is SENT.
async fn a_carrier_that_names_two_messages_alike_stops_nothing(db: TestDb) {
    let (node, ann, held) = on_their_way(&db, 3).await;
    node.settle(held.iter().map(|h| outcome(h, accepted("0"))).collect()).await;
    for held in &held {
        assert_eq!(node.status(&ann, id(held)).await, Status::Sent);
    }
    node.hear(vec![delivered("0")]).await;
    assert_eq!(node.status(&ann, id(&held[2])).await, Status::Delivered);
    assert_eq!(node.balance(&ann).await, (9_700, 0));
    node.check().await;
}

async fn a_message_without_a_receipt_fails_in_the_end(db: TestDb) {
    let (node, ann, held) = on_their_way(&db, 2).await;
    node.settle(vec![outcome(&held[0], accepted("a")), outcome(&held[1], accepted("b"))]).await;
    node.hear(vec![delivered("b")]).await;
    let day = Duration::from_secs(24 * 3_600);
    for (later, status) in
        [(DEFAULT_VALIDITY + day, Status::Sent), (Duration::from_millis(1), Status::Failed)]
    {
        db.clock.advance(later);
        node.writing(async |writer| janitor::time_out_receipts(&node.cx, &writer).await)
            .await
            .unwrap();
        assert_eq!(node.status(&ann, id(&held[0])).await, status);
    }
    let failed = node.state(&ann, id(&held[0])).await;
    assert_eq!(failed.failure, Some(Failure::plain(FailureCode::ReceiptTimeout)));
    assert_eq!(node.status(&ann, id(&held[1])).await, Status::Delivered);
    assert_eq!(node.balance(&ann).await, (9_800, 0));
    node.check().await;
}

async fn orphans_are_swept_away(db: TestDb) {
    let (node, ann, held) = on_their_way(&db, 1).await;
    node.hear(vec![delivered("a")]).await;
    db.clock.advance(Duration::from_secs(72 * 3_600) + Duration::from_millis(1));
    janitor::sweep(&node.cx).await.unwrap();
    node.settle(vec![outcome(&held[0], accepted("a"))]).await;
    assert_eq!(node.status(&ann, id(&held[0])).await, Status::Sent);
}
