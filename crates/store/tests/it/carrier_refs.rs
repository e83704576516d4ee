//! Tests of carrier references: submit response and receipt are matched once, in either order.

use crate::fixtures::{ACME, ANN, BOB, at, message, queued};
use heliograph_domain::id::{ALL_PARTS, AccountId, CarrierId, Ids, MessageId, PartKey};
use heliograph_domain::message::{Failure, FailureCode, Message};
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::ReceiptOutcome;
use heliograph_domain::time::Timestamp;
use heliograph_store::Db;
use heliograph_store::messaging::carrier_refs::{self, AcceptedPart, RefKey, StoredReceipt};
use heliograph_testing::{START, TestDb};

/// Returns part 1 of a new message.
fn part(db: &TestDb) -> PartKey {
    (AccountId(1), MessageId(db.ids.next(START)), 1)
}

fn accepted_part(id: &str, part: PartKey, recipient: Recipient) -> AcceptedPart {
    AcceptedPart { carrier: ACME, smsc_id: id.to_owned(), part, recipient }
}

fn stored_receipt(id: &str, recipient: Recipient, outcome: &ReceiptOutcome) -> StoredReceipt {
    StoredReceipt { carrier: ACME, smsc_id: id.to_owned(), recipient, outcome: outcome.clone() }
}

fn failed() -> ReceiptOutcome {
    let carrier_code = Some("011".to_owned());
    ReceiptOutcome::Failed(Failure { code: FailureCode::Unreachable, carrier_code })
}

type MatchedReceipt = Vec<(String, PartKey, ReceiptOutcome)>;

fn matches(found: Vec<carrier_refs::MatchedReceipt>) -> MatchedReceipt {
    let mut matches: MatchedReceipt =
        found.into_iter().map(|m| (m.key.smsc_id, m.part, m.outcome)).collect();
    matches.sort_by_key(|(id, part, _)| (id.clone(), *part));
    matches
}

async fn record_accepted(db: &Db, all: &[AcceptedPart]) -> MatchedReceipt {
    let mut tx = db.write().await.unwrap();
    let found = carrier_refs::record_accepted(&mut tx, all, START).await.unwrap();
    tx.commit().await.unwrap();
    matches(found.matched)
}

async fn record_receipts(db: &Db, all: &[StoredReceipt], now: Timestamp) -> MatchedReceipt {
    let mut tx = db.write().await.unwrap();
    let found = carrier_refs::record_receipts(&mut tx, all, now).await.unwrap();
    tx.commit().await.unwrap();
    matches(found)
}

async fn matching(db: &Db, names: &[(CarrierId, &str, Recipient)]) -> Vec<(String, PartKey)> {
    let name = |(carrier, id, recipient): &(CarrierId, &str, Recipient)| RefKey {
        carrier: *carrier,
        smsc_id: (*id).to_owned(),
        recipient: *recipient,
    };
    let names: Vec<_> = names.iter().map(name).collect();
    let mut tx = db.write().await.unwrap();
    let mut found =
        carrier_refs::take_matching(&mut tx, &names.iter().collect::<Vec<_>>()).await.unwrap();
    tx.commit().await.unwrap();
    found.sort_by_key(|(key, _)| key.smsc_id.clone());
    found.into_iter().map(|(key, part)| (key.smsc_id, part)).collect()
}

/// Returns the part of an older message to Ann whose id was given to a newer one.
async fn reused(db: &Db, id: &str) -> Option<PartKey> {
    let name = RefKey { carrier: ACME, smsc_id: id.to_owned(), recipient: ANN };
    let mut tx = db.write().await.unwrap();
    let found = carrier_refs::take_reused(&mut tx, &name).await.unwrap();
    tx.commit().await.unwrap();
    found
}

/// Returns the number of unmatched rows.
async fn waiting(db: &TestDb) -> usize {
    db.query_raw("SELECT smsc_id FROM carrier_refs").await.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submit_response_before_its_receipt_is_matched() {
    let db = TestDb::new().await;
    let one = part(&db);
    assert_eq!(record_accepted(&db.db, &[accepted_part("a1", one, ANN)]).await, []);
    assert_eq!(matching(&db.db, &[(ACME, "A1", ANN), (ACME, "a", ANN)]).await, []);
    assert_eq!(matching(&db.db, &[(ACME, "a1", ANN)]).await, [("a1".to_owned(), one)]);
    assert_eq!(matching(&db.db, &[(ACME, "a1", ANN)]).await, []);
    assert_eq!(waiting(&db).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_before_its_submit_response_is_matched() {
    let db = TestDb::new().await;
    for (id, outcome) in [("a1", ReceiptOutcome::Delivered), ("a2", failed())] {
        let one = part(&db);
        assert_eq!(matching(&db.db, &[(ACME, id, ANN)]).await, []);
        assert_eq!(record_receipts(&db.db, &[stored_receipt(id, ANN, &outcome)], START).await, []);
        assert_eq!(matching(&db.db, &[(ACME, id, ANN)]).await, [], "the receipt has no part yet");
        assert_eq!(
            record_accepted(&db.db, &[accepted_part(id, one, ANN)]).await,
            [(id.to_owned(), one, outcome.clone())]
        );
        assert_eq!(waiting(&db).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_of_two_receipts_counts() {
    let db = TestDb::new().await;
    let one = part(&db);
    record_receipts(&db.db, &[stored_receipt("a1", ANN, &failed())], START).await;
    record_receipts(&db.db, &[stored_receipt("a1", ANN, &ReceiptOutcome::Delivered)], at(1)).await;
    assert_eq!(waiting(&db).await, 1);
    let found = record_accepted(&db.db, &[accepted_part("a1", one, ANN)]).await;
    assert_eq!(found, [("a1".to_owned(), one, ReceiptOutcome::Delivered)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_for_another_recipient_is_not_matched() {
    let db = TestDb::new().await;
    let one = part(&db);
    record_accepted(&db.db, &[accepted_part("a1", one, ANN)]).await;
    assert_eq!(matching(&db.db, &[(ACME, "a1", BOB)]).await, []);
    assert_eq!(record_receipts(&db.db, &[stored_receipt("a1", BOB, &failed())], START).await, []);
    assert_eq!(matching(&db.db, &[(ACME, "a1", ANN)]).await, [("a1".to_owned(), one)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_receipt_for_another_recipient_is_not_matched() {
    let db = TestDb::new().await;
    let one = part(&db);
    record_receipts(&db.db, &[stored_receipt("a1", BOB, &failed())], START).await;
    assert_eq!(record_accepted(&db.db, &[accepted_part("a1", one, ANN)]).await, []);
    assert_eq!(matching(&db.db, &[(ACME, "a1", BOB)]).await, []);
    assert_eq!(matching(&db.db, &[(ACME, "a1", ANN)]).await, [("a1".to_owned(), one)]);
    // The receipt does not replace one for the right recipient either.
    record_receipts(&db.db, &[stored_receipt("a2", ANN, &ReceiptOutcome::Delivered)], START).await;
    record_receipts(&db.db, &[stored_receipt("a2", BOB, &failed())], START).await;
    let found = record_accepted(&db.db, &[accepted_part("a2", one, ANN)]).await;
    assert_eq!(found, [("a2".to_owned(), one, ReceiptOutcome::Delivered)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reused_id_is_resolved_by_the_recipient() {
    let db = TestDb::new().await;
    let (older, newer) = (part(&db), part(&db));
    record_accepted(&db.db, &[accepted_part("0", older, ANN)]).await;
    assert_eq!(record_accepted(&db.db, &[accepted_part("0", newer, BOB)]).await, []);
    assert_eq!(matching(&db.db, &[(ACME, "0", ANN)]).await, [("0".to_owned(), older)]);
    assert_eq!(matching(&db.db, &[(ACME, "0", BOB)]).await, [("0".to_owned(), newer)]);
    assert_eq!(waiting(&db).await, 0);
}

/// Receipts for one id and recipient belong to the newest message first, then to the older ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reused_id_names_the_newest_part_first() {
    let db = TestDb::new().await;
    let all = [part(&db), part(&db), part(&db), part(&db)];
    let mut tx = db.db.write().await.unwrap();
    let mut reused_ids = 0;
    // Two in one batch, then one by one.
    for parts in [&all[..2], &all[2..3], &all[3..]] {
        let parts: Vec<_> = parts.iter().map(|part| accepted_part("0", *part, ANN)).collect();
        let recorded = carrier_refs::record_accepted(&mut tx, &parts, START).await.unwrap();
        reused_ids += recorded.reused.len();
    }
    tx.commit().await.unwrap();
    assert_eq!((waiting(&db).await, reused_ids), (4, 3));
    assert_eq!(reused(&db.db, "0").await, Some(all[2]), "the newest of those set back");
    assert_eq!(matching(&db.db, &[(ACME, "0", ANN)]).await, [("0".to_owned(), all[3])]);
    assert_eq!(matching(&db.db, &[(ACME, "0", ANN)]).await, []);
    assert_eq!(reused(&db.db, "0").await, Some(all[1]));
    assert_eq!(reused(&db.db, "0").await, Some(all[0]));
    assert_eq!((reused(&db.db, "0").await, waiting(&db).await), (None, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_of_several_parts_of_a_message_stands_for_all() {
    let db = TestDb::new().await;
    let (account, message, _) = part(&db);
    let numbered = |n| accepted_part("0", (account, message, n), ANN);
    record_accepted(&db.db, &[numbered(1), numbered(2)]).await;
    record_accepted(&db.db, &[numbered(3)]).await;
    assert_eq!(waiting(&db).await, 1);
    let whole = (account, message, ALL_PARTS);
    assert_eq!(matching(&db.db, &[(ACME, "0", ANN)]).await, [("0".to_owned(), whole)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_used_twice_in_a_batch_names_the_newer_part() {
    let db = TestDb::new().await;
    let (older, newer, other) = (part(&db), part(&db), part(&db));
    let all = [
        accepted_part("0", older, ANN),
        accepted_part("1", other, ANN),
        accepted_part("0", newer, ANN),
    ];
    assert_eq!(record_accepted(&db.db, &all).await, []);
    let found = matching(&db.db, &[(ACME, "0", ANN), (ACME, "1", ANN)]).await;
    assert_eq!(found, [("0".to_owned(), newer), ("1".to_owned(), other)]);
    assert_eq!(reused(&db.db, "0").await, Some(older));
    // Receipts of both, recorded at once, are stored as one.
    let both = [
        stored_receipt("2", ANN, &ReceiptOutcome::Delivered),
        stored_receipt("2", ANN, &ReceiptOutcome::Delivered),
    ];
    assert_eq!(record_receipts(&db.db, &both, START).await, []);
    assert_eq!(waiting(&db).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_id_of_another_carrier_is_another_id() {
    let db = TestDb::new().await;
    let (one, two) = (part(&db), part(&db));
    let other = AcceptedPart { carrier: CarrierId(2), ..accepted_part("a1", two, ANN) };
    record_accepted(&db.db, &[accepted_part("a1", one, ANN), other]).await;
    assert_eq!(matching(&db.db, &[(CarrierId(3), "a1", ANN)]).await, []);
    assert_eq!(matching(&db.db, &[(CarrierId(2), "a1", ANN)]).await, [("a1".to_owned(), two)]);
    assert_eq!(matching(&db.db, &[(ACME, "a1", ANN)]).await, [("a1".to_owned(), one)]);
}

/// The submit response was committed between the look-up for the receipt and its recording.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_matches_a_part_that_another_node_just_recorded() {
    let db = TestDb::new().await;
    let one = part(&db);
    record_accepted(&db.db, &[accepted_part("a1", one, ANN)]).await;
    let all = [
        stored_receipt("a1", ANN, &failed()),
        stored_receipt("a2", ANN, &ReceiptOutcome::Delivered),
    ];
    assert_eq!(record_receipts(&db.db, &all, START).await, [("a1".to_owned(), one, failed())]);
    assert_eq!(waiting(&db).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_receipts_are_matched_at_once() {
    let db = TestDb::new().await;
    let all: Vec<_> = (0..300).map(|i| (format!("{i:03}"), part(&db))).collect();
    let early: Vec<_> =
        all.iter().step_by(3).map(|(id, _)| stored_receipt(id, ANN, &failed())).collect();
    assert_eq!(record_receipts(&db.db, &early, START).await, []);
    let accepted: Vec<_> = all.iter().map(|(id, part)| accepted_part(id, *part, ANN)).collect();
    let expected: MatchedReceipt =
        all.iter().step_by(3).map(|(id, p)| (id.clone(), *p, failed())).collect();
    assert_eq!(record_accepted(&db.db, &accepted).await, expected);
    let names: Vec<_> = all.iter().map(|(id, _)| (ACME, id.as_str(), ANN)).collect();
    let found = matching(&db.db, &names).await;
    let left = all.iter().enumerate().filter(|(i, _)| i % 3 != 0).map(|(_, row)| row.clone());
    assert_eq!(found, left.collect::<Vec<_>>());
    assert_eq!(waiting(&db).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_receipts_are_taken_by_name() {
    let db = TestDb::new().await;
    record_accepted(&db.db, &[accepted_part("part", part(&db), ANN)]).await;
    record_receipts(&db.db, &[stored_receipt("old", ANN, &failed())], at(9)).await;
    let young = [stored_receipt("a1", ANN, &failed()), stored_receipt("a2", ANN, &failed())];
    record_receipts(&db.db, &young, at(10)).await;
    let mut tx = db.db.write().await.unwrap();
    assert!(carrier_refs::has_early_receipts(&mut tx, at(10)).await.unwrap());
    assert!(!carrier_refs::has_early_receipts(&mut tx, at(11)).await.unwrap());
    let name = |id: &str, recipient| RefKey { carrier: ACME, smsc_id: id.to_owned(), recipient };
    let names = [name("part", ANN), name("old", ANN), name("a1", ANN), name("a2", BOB)];
    let names: Vec<_> = names.iter().collect();
    let found = carrier_refs::take_early_receipts(&mut tx, &names, at(10)).await.unwrap();
    assert_eq!(found, [(name("a1", ANN), failed())]);
    tx.commit().await.unwrap();
    assert_eq!(waiting(&db).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unmatched_receipts_are_deleted_after_a_while() {
    let db = TestDb::new().await;
    let one = part(&db);
    record_accepted(&db.db, &[accepted_part("old part", one, ANN)]).await;
    for (id, seconds) in [("oldest", 0), ("older", 9), ("young", 10)] {
        record_receipts(
            &db.db,
            &[stored_receipt(id, ANN, &ReceiptOutcome::Delivered)],
            at(seconds),
        )
        .await;
    }
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(carrier_refs::delete_unmatched(&mut tx, at(10)).await.unwrap(), 2);
    tx.commit().await.unwrap();
    let left = db.query_raw("SELECT smsc_id FROM carrier_refs ORDER BY smsc_id").await;
    assert_eq!(left, [["old part"], ["young"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_without_a_receipt_become_overdue() {
    let db = TestDb::new().await;
    let until = |seconds| Message { expires_at: at(seconds), ..message(&db, AccountId(1)) };
    let all = [until(10), until(20), until(10), until(10)];
    queued(&db, &all).await;
    let accepted = |i: usize| accepted_part(&i.to_string(), (AccountId(1), all[i].id, 0), ANN);
    let mut tx = db.db.write().await.unwrap();
    carrier_refs::record_accepted(&mut tx, &[accepted(0), accepted(1)], at(5)).await.unwrap();
    carrier_refs::record_accepted(&mut tx, &[accepted(2)], at(12)).await.unwrap();
    // A receipt without a part and a part without a message are not overdue.
    carrier_refs::record_receipts(&mut tx, &[stored_receipt("3", ANN, &failed())], at(5))
        .await
        .unwrap();
    carrier_refs::record_accepted(&mut tx, &[accepted_part("4", part(&db), ANN)], at(5))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let mut conn = db.db.read().await.unwrap();
    for (seconds, limit, expected) in [(10, 9, 0), (11, 9, 1), (13, 9, 2), (21, 9, 3), (21, 0, 0)] {
        let found = carrier_refs::overdue(&mut conn, at(seconds), limit).await.unwrap();
        assert_eq!(found.len(), expected, "after {seconds} s");
    }
    let overdue = carrier_refs::overdue(&mut conn, at(13), 9).await.unwrap();
    let mut tx = db.db.write().await.unwrap();
    for expected in [2, 0] {
        let names: Vec<_> = overdue.iter().collect();
        let mut taken = carrier_refs::take_overdue(&mut tx, &names).await.unwrap();
        taken.sort_unstable_by_key(|(_, message, _)| *message);
        let parts = [all[0].id, all[2].id].map(|id| (AccountId(1), id, 0));
        assert_eq!(taken, parts[..expected]);
    }
}
