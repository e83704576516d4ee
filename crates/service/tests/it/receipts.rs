//! Receipts: outcome and receipt of a part are matched once, in any order.

use crate::endpoint_worker::rows;
use crate::node::{ANN, Node, accepted, delivered, outcome, parts, receipt, text};
use heliograph_domain::carrier::ReceiptPolicy;
use heliograph_domain::fields::Validity;
use heliograph_domain::id::MessageId;
use heliograph_domain::message::{Failure, FailureCode, MessageStatus};
use heliograph_domain::money::Amount;
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::{Receipt, ReceiptOutcome};
use heliograph_domain::submission::SubmitOutcome;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::commands::claim::DispatchItem;
use heliograph_service::kernel::commands::progress::{Progress, Settlement};
use heliograph_service::messaging::dispatch::evaluate_outcomes;
use heliograph_service::messaging::messages::SendRequest;
use heliograph_service::operations::maintenance;
use heliograph_store::messaging::carrier_refs::{self, StoredReceipt};
use heliograph_testing::TestDb;
use std::sync::Arc;
use std::time::Duration;

/// Starts a node and an account with `n` submitted messages.
async fn submitted(db: &TestDb, n: usize) -> (Node, Arc<Caller>, Vec<DispatchItem>) {
    let node = Node::start(db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open_queue().await;
    for _ in 0..n {
        node.send(&ann, text("Hello")).await;
    }
    let held = node.arrived();
    assert_eq!(held.len(), n);
    (node, ann, held)
}

/// Another recipient.
const BOB: Recipient = Recipient(447_700_900_124);

fn id(held: &DispatchItem) -> MessageId {
    held.leased.message.id
}

fn failed() -> ReceiptOutcome {
    ReceiptOutcome::Failed(Failure::new(FailureCode::Unreachable))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receipt_arrives_before_the_outcome() {
    let db = TestDb::new().await;
    let (node, ann, held) = submitted(&db, 2).await;
    node.commit_receipts(vec![delivered("a"), receipt("b", &failed())]).await;
    for held in &held {
        assert_eq!(node.status(&ann, id(held)).await, MessageStatus::Queued);
    }
    node.settle(vec![outcome(&held[0], accepted("a")), outcome(&held[1], accepted("b"))]).await;
    let state = node.state(&ann, id(&held[0])).await;
    assert_eq!((state.status, state.captured), (MessageStatus::Delivered, Amount(100)));
    let state = node.state(&ann, id(&held[1])).await;
    assert_eq!((state.status, state.captured), (MessageStatus::Failed, Amount(100)));
    assert_eq!(state.failure, Some(Failure::new(FailureCode::Unreachable)));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcome_and_receipt_arrive_in_one_batch() {
    let db = TestDb::new().await;
    let (node, ann, held) = submitted(&db, 3).await;
    let settlements: Vec<_> =
        held.iter().zip(["a", "b", "c"]).map(|(h, id)| outcome(h, accepted(id))).collect();
    let receipts = [delivered("a"), receipt("b", &failed())];
    let receipts = receipts.map(|r| (node.carrier, r)).into();
    node.commit_progress(Progress { settlements, receipts, ..Progress::default() }).await;
    for (held, status) in
        held.iter().zip([MessageStatus::Delivered, MessageStatus::Failed, MessageStatus::Sent])
    {
        let state = node.state(&ann, id(held)).await;
        assert_eq!((state.status, state.captured), (status, Amount(100)));
    }
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicate_receipt_counts_once() {
    let db = TestDb::new().await;
    let (node, ann, held) = submitted(&db, 1).await;
    node.commit_receipts(vec![delivered("a"), delivered("a")]).await;
    node.commit_receipts(vec![delivered("a")]).await;
    node.settle(vec![outcome(&held[0], accepted("a"))]).await;
    let before = node.state(&ann, id(&held[0])).await;
    assert_eq!(before.status, MessageStatus::Delivered);
    db.clock.advance(Duration::from_secs(9));
    node.commit_receipts(vec![delivered("a"), receipt("a", &failed())]).await;
    assert_eq!(node.state(&ann, id(&held[0])).await, before);
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_id_is_found_in_other_notations() {
    let db = TestDb::new().await;
    let spellings = [
        ("1234567890", "499602D2"),
        ("499602d3", "1234567891"),
        ("15", "0000000015"),
        ("7b", "0000000123"),
        ("ab-77", "AB-77"),
        // The response is padded, or in mixed case.
        ("0000000000987654", "987654"),
        ("00000000499602D4", "1234567892"),
        ("0000001234567893", "499602D5"),
        ("00000000499602D6", "499602d6"),
        ("9f1C2b4e-0A1d-4c3B-8e7F-0123456789aB", "9f1c2b4e-0a1d-4c3b-8e7f-0123456789ab"),
        ("aF1C2b4e-0A1d-4c3B-8e7F-0123456789aB", "AF1C2B4E-0A1D-4C3B-8E7F-0123456789AB"),
        // Case distinguishes these.
        ("xA7q", "xA7q"),
        ("Xa7q", "Xa7q"),
    ];
    let (node, ann, held) = submitted(&db, 2 * spellings.len()).await;
    for (i, (in_response, in_receipt)) in spellings.into_iter().enumerate() {
        // Outcome and receipt in separate batches.
        node.settle(vec![outcome(&held[2 * i], accepted(in_response))]).await;
        node.commit_receipts(vec![delivered(in_receipt)]).await;
        assert_eq!(
            node.status(&ann, id(&held[2 * i])).await,
            MessageStatus::Delivered,
            "{in_receipt}"
        );
        // Outcome and receipt in one batch.
        let settlements = vec![outcome(&held[2 * i + 1], accepted(in_response))];
        let receipts = vec![(node.carrier, delivered(in_receipt))];
        node.commit_progress(Progress { settlements, receipts, ..Progress::default() }).await;
        assert_eq!(
            node.status(&ann, id(&held[2 * i + 1])).await,
            MessageStatus::Delivered,
            "{in_receipt}"
        );
    }
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receipt_for_another_recipient_changes_nothing() {
    let db = TestDb::new().await;
    let (node, ann, held) = submitted(&db, 2).await;
    let somebody = Recipient(ANN.0 + 1);
    let stray = |id| Receipt { recipient: somebody, ..receipt(id, &failed()) };
    // Receipts before the outcome, in the same batch, and after it.
    node.commit_receipts(vec![stray("a")]).await;
    node.settle(vec![outcome(&held[0], accepted("a"))]).await;
    let settlements = vec![outcome(&held[1], accepted("b"))];
    node.commit_progress(Progress {
        settlements,
        receipts: vec![(node.carrier, stray("b"))],
        ..Progress::default()
    })
    .await;
    node.commit_receipts(vec![stray("a"), stray("b")]).await;
    for held in &held {
        assert_eq!(node.status(&ann, id(held)).await, MessageStatus::Sent);
    }
    node.commit_receipts(vec![delivered("a"), delivered("b")]).await;
    for held in &held {
        assert_eq!(node.status(&ann, id(held)).await, MessageStatus::Delivered);
    }
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_receipt_matches_its_part_in_another_notation() {
    let db = TestDb::new().await;
    let (node, ann, held) = submitted(&db, 3).await;
    let stray = Receipt { recipient: Recipient(447_900_000_000), ..delivered("0000001B") };
    node.commit_receipts(vec![delivered("000000FF"), delivered("0000001A"), stray]).await;
    let taken = ["26", "27", "255"];
    let taken = held.iter().zip(taken).map(|(h, id)| outcome(h, accepted(id)));
    node.settle(taken.collect()).await;
    for _ in 0..2 {
        assert_eq!(node.status(&ann, id(&held[0])).await, MessageStatus::Delivered);
        assert_eq!(node.status(&ann, id(&held[1])).await, MessageStatus::Sent, "not its recipient");
        assert_eq!(node.status(&ann, id(&held[2])).await, MessageStatus::Delivered);
        node.writing(async |writer| maintenance::match_early_receipts(&node.cx, &writer).await)
            .await
            .unwrap();
    }
    node.check().await;
}

/// The id as written takes precedence over one that is only equal in the other number base.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_receipt_matches_the_id_as_written_first() {
    let db = TestDb::new().await;
    let (node, ann, held) = submitted(&db, 2).await;
    node.commit_receipts(vec![delivered("10")]).await;
    node.settle(vec![outcome(&held[0], accepted("16")), outcome(&held[1], accepted("10"))]).await;
    assert_eq!(node.status(&ann, id(&held[0])).await, MessageStatus::Sent);
    assert_eq!(node.status(&ann, id(&held[1])).await, MessageStatus::Delivered);
    node.check().await;
}

/// A receipt that came long ago belongs to another message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_receipt_matches_only_the_id_as_written() {
    let db = TestDb::new().await;
    let (node, ann, held) = submitted(&db, 2).await;
    node.commit_receipts(vec![delivered("FF"), delivered("0a-1")]).await;
    db.clock.advance(Duration::from_secs(151));
    node.settle(vec![outcome(&held[0], accepted("255")), outcome(&held[1], accepted("A-1"))]).await;
    assert_eq!(node.status(&ann, id(&held[0])).await, MessageStatus::Sent);
    assert_eq!(node.status(&ann, id(&held[1])).await, MessageStatus::Delivered);
    node.check().await;
}

/// Another node stored the receipt in the moment in which this one stored the part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn maintenance_matches_a_receipt_that_missed_its_part() {
    let db = TestDb::new().await;
    let (node, ann, held) = submitted(&db, 1).await;
    node.settle(vec![outcome(&held[0], accepted("255"))]).await;
    let mut tx = node.cx.db.write().await.unwrap();
    let early = StoredReceipt {
        carrier: node.carrier,
        smsc_id: "ff".to_owned(),
        recipient: ANN,
        outcome: ReceiptOutcome::Delivered,
    };
    carrier_refs::record_receipts(&mut tx, &[early], node.cx.db.now()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(node.status(&ann, id(&held[0])).await, MessageStatus::Sent);
    node.writing(async |writer| maintenance::match_early_receipts(&node.cx, &writer).await)
        .await
        .unwrap();
    assert_eq!(node.status(&ann, id(&held[0])).await, MessageStatus::Delivered);
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receipt_with_swapped_addresses_is_matched() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open_queue().await;
    let originator = "447700900999";
    for _ in 0..5 {
        node.send(&ann, SendRequest { originator: originator.parse().unwrap(), ..text("Hi") })
            .await;
    }
    let held = node.arrived();
    let swapped = |id| Receipt {
        recipient: Recipient::from_digits(originator).unwrap(),
        destination: Some(ANN),
        ..delivered(id)
    };
    let status = async |n: usize| node.status(&ann, id(&held[n])).await;
    // The receipt comes second, as written and in the other number base.
    node.settle(vec![outcome(&held[0], accepted("a1")), outcome(&held[1], accepted("256"))]).await;
    node.commit_receipts(vec![swapped("a1"), swapped("100")]).await;
    assert_eq!(
        (status(0).await, status(1).await),
        (MessageStatus::Delivered, MessageStatus::Delivered)
    );
    // The receipt comes first.
    node.commit_receipts(vec![swapped("a2"), swapped("ff")]).await;
    node.settle(vec![outcome(&held[2], accepted("a2")), outcome(&held[3], accepted("255"))]).await;
    assert_eq!(
        (status(2).await, status(3).await),
        (MessageStatus::Delivered, MessageStatus::Delivered)
    );
    // Both in one batch.
    let settlements = vec![outcome(&held[4], accepted("a3"))];
    let receipts = vec![(node.carrier, swapped("a3"))];
    node.commit_progress(Progress { settlements, receipts, ..Progress::default() }).await;
    assert_eq!(status(4).await, MessageStatus::Delivered);
    node.check().await;
}

/// An id of 64 KiB would exceed the largest entry of an index in PostgreSQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusable_message_ids_are_not_stored_and_their_receipts_time_out() {
    let db = TestDb::new().await;
    let (node, ann, held) = submitted(&db, 4).await;
    // Random digits: PostgreSQL would compress a repeated one.
    let mut random = fastrand::Rng::with_seed(7);
    let long: String = std::iter::repeat_with(|| random.alphanumeric()).take(65_000).collect();
    let ids = [long.as_str(), long.as_str(), "", ""];
    node.settle(held.iter().zip(ids).map(|(h, id)| outcome(h, accepted(id))).collect()).await;
    node.commit_receipts(vec![delivered(&long), delivered("")]).await;
    for held in &held {
        assert_eq!(node.status(&ann, id(held)).await, MessageStatus::Sent);
    }
    let longest = db.query_raw("SELECT CAST(max(length(smsc_id)) AS text) FROM carrier_refs").await;
    assert!(longest[0][0].parse::<usize>().unwrap() <= 64, "{longest:?}");
    db.clock.advance(Validity::DEFAULT.duration() + Duration::from_secs(24 * 3_600 + 1));
    node.writing(async |writer| maintenance::time_out_receipts(&node.cx, &writer).await)
        .await
        .unwrap();
    for held in &held {
        let failure = node.state(&ann, id(held)).await.failure;
        assert_eq!(failure, Some(Failure::new(FailureCode::ReceiptTimeout)));
    }
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_receipts_of_parts_wait_for_their_outcomes() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    let id = node.send(&ann, parts(3)).await;
    let held = node.arrived();
    node.commit_receipts(vec![delivered("c"), delivered("a")]).await;
    let outcomes = [(1, accepted("a")), (2, accepted("b")), (3, accepted("c"))];
    node.settle(vec![evaluate_outcomes(&held[0].leased, outcomes.into())]).await;
    let state = node.state(&ann, id).await;
    assert_eq!((state.status, state.parts_delivered), (MessageStatus::Sent, 2));
    node.commit_receipts(vec![delivered("b")]).await;
    assert_eq!(node.status(&ann, id).await, MessageStatus::Delivered);
    node.check().await;
}

/// Some carriers return the same id for every submission.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receipts_of_a_reused_id_reach_every_message() {
    let db = TestDb::new().await;
    let (node, ann, held) = submitted(&db, 5).await;
    let bob = node.send(&ann, SendRequest { recipient: BOB, ..text("Hello") }).await;
    let to_bob = node.arrived().pop().unwrap();
    let all = held.iter().chain([&to_bob]);
    node.settle(all.map(|h| outcome(h, accepted("0"))).collect()).await;
    // Two receipts in one batch are two receipts.
    node.commit_receipts(vec![delivered("0"), receipt("0", &failed())]).await;
    assert_eq!(node.status(&ann, id(&held[4])).await, MessageStatus::Delivered, "the newest");
    assert_eq!(node.status(&ann, id(&held[3])).await, MessageStatus::Failed);
    assert_eq!(node.status(&ann, bob).await, MessageStatus::Sent, "another recipient");
    node.commit_receipts(vec![Receipt { recipient: BOB, ..delivered("0") }, delivered("0")]).await;
    assert_eq!(node.status(&ann, bob).await, MessageStatus::Delivered);
    assert_eq!(node.status(&ann, id(&held[2])).await, MessageStatus::Delivered);
    // The others time out, each on its own.
    for held in &held[..2] {
        assert_eq!(node.status(&ann, id(held)).await, MessageStatus::Sent);
    }
    db.clock.advance(Validity::DEFAULT.duration() + Duration::from_secs(24 * 3_600 + 1));
    node.writing(async |writer| maintenance::time_out_receipts(&node.cx, &writer).await)
        .await
        .unwrap();
    for held in &held[..2] {
        let failure = node.state(&ann, id(held)).await.failure;
        assert_eq!(failure, Some(Failure::new(FailureCode::ReceiptTimeout)));
    }
    assert_eq!(rows(&db, "carrier_refs").await, 0);
    node.check().await;
}

/// Sends a message of three parts, and returns the outcome of its submission with these ids.
async fn three_parts(
    node: &Node,
    ann: &Caller,
    policy: ReceiptPolicy,
    ids: [&str; 3],
) -> (MessageId, Settlement) {
    let id = node.send(ann, parts(3)).await;
    let held = node.arrived().pop().unwrap();
    let outcomes = (1..).zip(ids).map(|(part, id)| (part, accepted(id))).collect();
    let settlement = evaluate_outcomes(&held.leased, outcomes);
    (id, Settlement { receipts: policy, ..settlement })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_id_for_all_parts_of_a_message_needs_one_receipt() {
    let db = TestDb::new().await;
    let (node, ann, _) = submitted(&db, 0).await;
    for together in [true, false] {
        let name = if together { "a" } else { "b" };
        let (id, settlement) =
            three_parts(&node, &ann, ReceiptPolicy::All, [name, name, name]).await;
        let (settlements, receipts) = (vec![settlement], vec![(node.carrier, delivered(name))]);
        if together {
            let progress = Progress { settlements, receipts, ..Progress::default() };
            node.commit_progress(progress).await;
        } else {
            node.settle(settlements).await;
            assert_eq!(node.status(&ann, id).await, MessageStatus::Sent);
            node.commit_receipts(vec![delivered(name)]).await;
        }
        let state = node.state(&ann, id).await;
        assert_eq!((state.status, state.parts_delivered), (MessageStatus::Delivered, 3));
    }
    let undelivered = db.query_raw("SELECT 'part' FROM parts WHERE delivered = 0").await;
    assert_eq!(undelivered.len(), 0);
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn carriers_may_send_one_receipt_for_a_message_or_none() {
    let db = TestDb::new().await;
    let (node, ann, _) = submitted(&db, 0).await;
    for (policy, named, other) in
        [(ReceiptPolicy::First, "a1", "a3"), (ReceiptPolicy::Last, "a3", "a1")]
    {
        let (id, settlement) = three_parts(&node, &ann, policy, ["a1", "a2", "a3"]).await;
        node.settle(vec![settlement]).await;
        assert_eq!(rows(&db, "carrier_refs").await, 1, "{policy:?}");
        node.commit_receipts(vec![delivered(other)]).await;
        assert_eq!(node.status(&ann, id).await, MessageStatus::Sent, "{policy:?}");
        node.commit_receipts(vec![delivered(named)]).await;
        assert_eq!(node.status(&ann, id).await, MessageStatus::Delivered, "{policy:?}");
        db.execute_raw("DELETE FROM carrier_refs").await;
    }
    let (id, settlement) = three_parts(&node, &ann, ReceiptPolicy::None, ["a", "b", "c"]).await;
    node.settle(vec![settlement]).await;
    assert_eq!(rows(&db, "carrier_refs").await, 0, "nothing can time out");
    assert_eq!(node.status(&ann, id).await, MessageStatus::Sent);
    node.check().await;
}

/// The receipt for the whole message comes while its second part is queued.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_receipt_for_a_whole_message_counts_for_its_later_parts() {
    let db = TestDb::new().await;
    let (node, ann, _) = submitted(&db, 0).await;
    let id = node.send(&ann, parts(2)).await;
    let held = node.arrived().pop().unwrap();
    let outcomes = vec![(1, accepted("a")), (2, SubmitOutcome::Throttled)];
    let first = evaluate_outcomes(&held.leased, outcomes);
    node.settle(vec![Settlement { receipts: ReceiptPolicy::First, ..first }]).await;
    node.commit_receipts(vec![delivered("a")]).await;
    assert_eq!(node.status(&ann, id).await, MessageStatus::Queued);
    node.check().await;
    db.clock.advance(Duration::from_secs(2));
    let held = node.claim().await.pop().unwrap();
    let second = evaluate_outcomes(&held.leased, vec![(2, accepted("b"))]);
    node.settle(vec![Settlement { receipts: ReceiptPolicy::First, ..second }]).await;
    assert_eq!(node.status(&ann, id).await, MessageStatus::Delivered);
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_without_a_receipt_fails_after_the_timeout() {
    let db = TestDb::new().await;
    let (node, ann, held) = submitted(&db, 2).await;
    node.settle(vec![outcome(&held[0], accepted("a")), outcome(&held[1], accepted("b"))]).await;
    node.commit_receipts(vec![delivered("b")]).await;
    let day = Duration::from_secs(24 * 3_600);
    for (later, status) in [
        (Validity::DEFAULT.duration() + day, MessageStatus::Sent),
        (Duration::from_millis(1), MessageStatus::Failed),
    ] {
        db.clock.advance(later);
        node.writing(async |writer| maintenance::time_out_receipts(&node.cx, &writer).await)
            .await
            .unwrap();
        assert_eq!(node.status(&ann, id(&held[0])).await, status);
    }
    let failed = node.state(&ann, id(&held[0])).await;
    assert_eq!(failed.failure, Some(Failure::new(FailureCode::ReceiptTimeout)));
    assert_eq!(node.status(&ann, id(&held[1])).await, MessageStatus::Delivered);
    assert_eq!(node.balance(&ann).await, (9_800, 0));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orphaned_receipts_are_deleted() {
    let db = TestDb::new().await;
    let (node, ann, held) = submitted(&db, 1).await;
    node.commit_receipts(vec![delivered("a")]).await;
    db.clock.advance(Duration::from_secs(72 * 3_600) + Duration::from_millis(1));
    maintenance::delete_outdated(&node.cx).await.unwrap();
    node.settle(vec![outcome(&held[0], accepted("a"))]).await;
    assert_eq!(node.status(&ann, id(&held[0])).await, MessageStatus::Sent);
}
