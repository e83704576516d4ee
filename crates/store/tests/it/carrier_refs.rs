//! Carrier references: the two halves of a part meet once, whichever comes first.

use crate::rows::{ACME, ANN, BOB, at, look, message, queued};
use crate::support::{BEGIN, TestDb, on_both_engines};
use heliograph_domain::id::{AccountId, CarrierId, Ids, MessageId, PartKey};
use heliograph_domain::message::{Failure, FailureCode, Message};
use heliograph_domain::phone::Recipient;
use heliograph_domain::receipt::Verdict;
use heliograph_domain::time::Timestamp;
use heliograph_store::Db;
use heliograph_store::carrier_refs::{self, Taken, Told};

on_both_engines!(carrier_refs:
    the_outcome_comes_first,
    the_receipt_comes_first,
    of_a_receipt_told_twice_the_last_word_counts,
    a_receipt_for_somebody_else_is_never_met,
    an_early_receipt_for_somebody_else_is_never_met,
    an_id_used_again_names_the_newer_part,
    an_id_used_twice_at_once_names_the_newer_part,
    another_carriers_id_is_another_id,
    a_receipt_meets_what_another_node_has_just_taken,
    many_meet_at_once,
    early_receipts_are_dropped_in_the_end,
    parts_whose_receipt_does_not_come_are_overdue,
);

/// One half or another of part 1 of a message.
fn part(db: &TestDb) -> PartKey {
    (AccountId(1), MessageId(db.ids.next(BEGIN)), 1)
}

fn taken(id: &str, part: PartKey, recipient: Recipient) -> Taken {
    Taken { carrier: ACME, smsc_id: id.to_owned(), part, recipient }
}

fn told(id: &str, recipient: Recipient, verdict: &Verdict) -> Told {
    Told { carrier: ACME, smsc_id: id.to_owned(), recipient, verdict: verdict.clone() }
}

fn failed() -> Verdict {
    let carrier_code = Some("011".to_owned());
    Verdict::Failed(Failure { code: FailureCode::Unreachable, carrier_code })
}

type Met = Vec<(String, PartKey, Verdict)>;

fn met(found: Vec<carrier_refs::Met>) -> Met {
    let mut met: Met = found.into_iter().map(|m| (m.smsc_id, m.part, m.verdict)).collect();
    met.sort_by_key(|(id, part, _)| (id.clone(), *part));
    met
}

async fn take(db: &Db, all: &[Taken]) -> Met {
    let mut tx = db.write().await.unwrap();
    let found = carrier_refs::take(&mut tx, all, BEGIN).await.unwrap();
    tx.commit().await.unwrap();
    met(found)
}

async fn tell(db: &Db, all: &[Told], now: Timestamp) -> Met {
    let mut tx = db.write().await.unwrap();
    let found = carrier_refs::tell(&mut tx, all, now).await.unwrap();
    tx.commit().await.unwrap();
    met(found)
}

async fn matching(db: &Db, names: &[(CarrierId, &str, Recipient)]) -> Vec<(String, PartKey)> {
    let mut tx = db.write().await.unwrap();
    let mut found = carrier_refs::matching(&mut tx, names).await.unwrap();
    tx.commit().await.unwrap();
    found.sort_by_key(|(_, id, _)| id.clone());
    found.into_iter().map(|(_, id, part)| (id, part)).collect()
}

/// How many halves still wait.
async fn waiting(db: &TestDb) -> usize {
    look(db, "SELECT smsc_id FROM carrier_refs").await.len()
}

async fn the_outcome_comes_first(db: TestDb) {
    let hers = part(&db);
    assert_eq!(take(&db.db, &[taken("a1", hers, ANN)]).await, []);
    assert_eq!(matching(&db.db, &[(ACME, "A1", ANN), (ACME, "a", ANN)]).await, []);
    assert_eq!(matching(&db.db, &[(ACME, "a1", ANN)]).await, [("a1".to_owned(), hers)]);
    assert_eq!(matching(&db.db, &[(ACME, "a1", ANN)]).await, []);
    assert_eq!(waiting(&db).await, 0);
}

async fn the_receipt_comes_first(db: TestDb) {
    for (id, verdict) in [("a1", Verdict::Delivered), ("a2", failed())] {
        let hers = part(&db);
        assert_eq!(matching(&db.db, &[(ACME, id, ANN)]).await, []);
        assert_eq!(tell(&db.db, &[told(id, ANN, &verdict)], BEGIN).await, []);
        assert_eq!(matching(&db.db, &[(ACME, id, ANN)]).await, [], "it has no part yet");
        assert_eq!(
            take(&db.db, &[taken(id, hers, ANN)]).await,
            [(id.to_owned(), hers, verdict.clone())]
        );
        assert_eq!(waiting(&db).await, 0);
    }
}

async fn of_a_receipt_told_twice_the_last_word_counts(db: TestDb) {
    let hers = part(&db);
    tell(&db.db, &[told("a1", ANN, &failed())], BEGIN).await;
    tell(&db.db, &[told("a1", ANN, &Verdict::Delivered)], at(1)).await;
    assert_eq!(waiting(&db).await, 1);
    let found = take(&db.db, &[taken("a1", hers, ANN)]).await;
    assert_eq!(found, [("a1".to_owned(), hers, Verdict::Delivered)]);
}

async fn a_receipt_for_somebody_else_is_never_met(db: TestDb) {
    let hers = part(&db);
    take(&db.db, &[taken("a1", hers, ANN)]).await;
    assert_eq!(matching(&db.db, &[(ACME, "a1", BOB)]).await, []);
    assert_eq!(tell(&db.db, &[told("a1", BOB, &failed())], BEGIN).await, []);
    assert_eq!(matching(&db.db, &[(ACME, "a1", ANN)]).await, [("a1".to_owned(), hers)]);
}

async fn an_early_receipt_for_somebody_else_is_never_met(db: TestDb) {
    let hers = part(&db);
    tell(&db.db, &[told("a1", BOB, &failed())], BEGIN).await;
    assert_eq!(take(&db.db, &[taken("a1", hers, ANN)]).await, []);
    assert_eq!(matching(&db.db, &[(ACME, "a1", BOB)]).await, []);
    assert_eq!(matching(&db.db, &[(ACME, "a1", ANN)]).await, [("a1".to_owned(), hers)]);
    // Nor does it replace one that speaks of the right person.
    tell(&db.db, &[told("a2", ANN, &Verdict::Delivered)], BEGIN).await;
    tell(&db.db, &[told("a2", BOB, &failed())], BEGIN).await;
    let found = take(&db.db, &[taken("a2", hers, ANN)]).await;
    assert_eq!(found, [("a2".to_owned(), hers, Verdict::Delivered)]);
}

async fn an_id_used_again_names_the_newer_part(db: TestDb) {
    let (older, newer) = (part(&db), part(&db));
    take(&db.db, &[taken("0", older, ANN)]).await;
    assert_eq!(take(&db.db, &[taken("0", newer, BOB)]).await, []);
    assert_eq!(matching(&db.db, &[(ACME, "0", ANN)]).await, []);
    assert_eq!(matching(&db.db, &[(ACME, "0", BOB)]).await, [("0".to_owned(), newer)]);
}

async fn an_id_used_twice_at_once_names_the_newer_part(db: TestDb) {
    let (older, newer, other) = (part(&db), part(&db), part(&db));
    let all = [taken("0", older, ANN), taken("1", other, ANN), taken("0", newer, ANN)];
    assert_eq!(take(&db.db, &all).await, []);
    let found = matching(&db.db, &[(ACME, "0", ANN), (ACME, "1", ANN)]).await;
    assert_eq!(found, [("0".to_owned(), newer), ("1".to_owned(), other)]);
    // The receipts of both, told at once, are kept as one.
    let both = [told("2", ANN, &Verdict::Delivered), told("2", ANN, &Verdict::Delivered)];
    assert_eq!(tell(&db.db, &both, BEGIN).await, []);
    assert_eq!(waiting(&db).await, 1);
}

async fn another_carriers_id_is_another_id(db: TestDb) {
    let (hers, theirs) = (part(&db), part(&db));
    let other = Taken { carrier: CarrierId(2), ..taken("a1", theirs, ANN) };
    take(&db.db, &[taken("a1", hers, ANN), other]).await;
    assert_eq!(matching(&db.db, &[(CarrierId(3), "a1", ANN)]).await, []);
    assert_eq!(matching(&db.db, &[(CarrierId(2), "a1", ANN)]).await, [("a1".to_owned(), theirs)]);
    assert_eq!(matching(&db.db, &[(ACME, "a1", ANN)]).await, [("a1".to_owned(), hers)]);
}

/// The outcome was committed after this receipt had looked for it.
async fn a_receipt_meets_what_another_node_has_just_taken(db: TestDb) {
    let hers = part(&db);
    take(&db.db, &[taken("a1", hers, ANN)]).await;
    let all = [told("a1", ANN, &failed()), told("a2", ANN, &Verdict::Delivered)];
    assert_eq!(tell(&db.db, &all, BEGIN).await, [("a1".to_owned(), hers, failed())]);
    assert_eq!(waiting(&db).await, 1);
}

async fn many_meet_at_once(db: TestDb) {
    let all: Vec<_> = (0..300).map(|i| (format!("{i:03}"), part(&db))).collect();
    let early: Vec<_> = all.iter().step_by(3).map(|(id, _)| told(id, ANN, &failed())).collect();
    assert_eq!(tell(&db.db, &early, BEGIN).await, []);
    let halves: Vec<_> = all.iter().map(|(id, part)| taken(id, *part, ANN)).collect();
    let expected: Met = all.iter().step_by(3).map(|(id, p)| (id.clone(), *p, failed())).collect();
    assert_eq!(take(&db.db, &halves).await, expected);
    let names: Vec<_> = all.iter().map(|(id, _)| (ACME, id.as_str(), ANN)).collect();
    let found = matching(&db.db, &names).await;
    let left = all.iter().enumerate().filter(|(i, _)| i % 3 != 0).map(|(_, row)| row.clone());
    assert_eq!(found, left.collect::<Vec<_>>());
    assert_eq!(waiting(&db).await, 0);
}

async fn early_receipts_are_dropped_in_the_end(db: TestDb) {
    let hers = part(&db);
    take(&db.db, &[taken("old part", hers, ANN)]).await;
    for (id, seconds) in [("oldest", 0), ("older", 9), ("young", 10)] {
        tell(&db.db, &[told(id, ANN, &Verdict::Delivered)], at(seconds)).await;
    }
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(carrier_refs::drop_early(&mut tx, at(10)).await.unwrap(), 2);
    tx.commit().await.unwrap();
    let left = look(&db, "SELECT smsc_id FROM carrier_refs ORDER BY smsc_id").await;
    assert_eq!(left, [["old part"], ["young"]]);
}

async fn parts_whose_receipt_does_not_come_are_overdue(db: TestDb) {
    let until = |seconds| Message { expires_at: at(seconds), ..message(&db, AccountId(1)) };
    let all = [until(10), until(20), until(10), until(10)];
    queued(&db, &all).await;
    let half = |i: usize| taken(&i.to_string(), (AccountId(1), all[i].id, 0), ANN);
    let mut tx = db.db.write().await.unwrap();
    carrier_refs::take(&mut tx, &[half(0), half(1)], at(5)).await.unwrap();
    carrier_refs::take(&mut tx, &[half(2)], at(12)).await.unwrap();
    // Neither a receipt without its part nor a part without its message is overdue.
    carrier_refs::tell(&mut tx, &[told("3", ANN, &failed())], at(5)).await.unwrap();
    carrier_refs::take(&mut tx, &[taken("4", part(&db), ANN)], at(5)).await.unwrap();
    tx.commit().await.unwrap();
    let mut conn = db.db.read().await.unwrap();
    for (seconds, limit, expected) in
        [(10, 9, ""), (11, 9, "0"), (13, 9, "0 2"), (21, 9, "0 1 2"), (21, 0, "")]
    {
        let found = carrier_refs::overdue(&mut conn, at(seconds), limit).await.unwrap();
        assert!(found.iter().all(|(carrier, _, to)| (*carrier, *to) == (ACME, ANN)));
        let mut ids: Vec<_> = found.into_iter().map(|(_, id, _)| id).collect();
        ids.sort();
        assert_eq!(ids.join(" "), expected, "after {seconds} s");
    }
}
