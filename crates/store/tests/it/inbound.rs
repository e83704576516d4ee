//! Tests of inbound messages: their parts, the messages, and the owners of numbers.

use crate::fixtures::{ACME, account, at};
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, CarrierId, Ids, InboundId, MessageId};
use heliograph_domain::inbound::Keyword;
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::time::Timestamp;
use heliograph_store::messaging::inbound_messages::{self, UNASSIGNED};
use heliograph_store::messaging::inbound_parts::{self, InboundPart, PartGroup};
use heliograph_store::operations::numbers;
use heliograph_testing::{START, TestDb};
use uuid::Uuid;

fn group(reference: u16, total: u8) -> PartGroup {
    let (from, to) = ("447700900123".to_owned(), "447700900000".to_owned());
    PartGroup { carrier: ACME, from, to, reference, total }
}

fn part(sequence: u8, text: &str) -> InboundPart {
    InboundPart { sequence, text: text.to_owned(), label: None, assembled: false }
}

async fn insert_part(db: &TestDb, group: &PartGroup, part: &InboundPart, when: Timestamp) {
    let mut tx = db.db.write().await.unwrap();
    inbound_parts::insert(&mut tx, group, part, when).await.unwrap();
    tx.commit().await.unwrap();
}

async fn parts(db: &TestDb, group: &PartGroup) -> Vec<InboundPart> {
    inbound_parts::list(&mut db.db.read().await.unwrap(), group).await.unwrap()
}

/// Assembles a group and returns false if it has no parts.
async fn assemble(db: &TestDb, group: &PartGroup) -> bool {
    let mut tx = db.db.write().await.unwrap();
    let mut before = inbound_parts::mark_assembled(&mut tx, group).await.unwrap();
    before.sort_by_key(|p| p.sequence);
    let after = inbound_parts::list(&mut tx, group).await.unwrap();
    assert!(after.iter().all(|p| p.assembled));
    assert!(
        before
            .iter()
            .all(|p| !p.assembled && after.contains(&InboundPart { assembled: true, ..p.clone() }))
    );
    tx.commit().await.unwrap();
    !before.is_empty()
}

async fn overdue(db: &TestDb, before: Timestamp, limit: i64) -> Vec<PartGroup> {
    let mut conn = db.db.read().await.unwrap();
    let mut found = inbound_parts::overdue(&mut conn, before, limit).await.unwrap();
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_are_listed_in_order() {
    let db = TestDb::new().await;
    let all = [3, 1, 2].map(|n| InboundPart { label: Some(i64::from(n)), ..part(n, "ñ👋") });
    for p in &all {
        insert_part(&db, &group(7, 3), p, START).await;
    }
    assert_eq!(parts(&db, &group(7, 3)).await, [1, 2, 0].map(|i: usize| all[i].clone()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duplicate_part_changes_nothing() {
    let db = TestDb::new().await;
    insert_part(&db, &group(7, 3), &part(1, "a"), START).await;
    insert_part(&db, &group(7, 3), &part(1, "b"), at(5)).await;
    assert_eq!(parts(&db, &group(7, 3)).await, [part(1, "a")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_differ_by_every_field_of_their_key() {
    let db = TestDb::new().await;
    let one = group(7, 3);
    let all = [
        one.clone(),
        PartGroup { carrier: CarrierId(2), ..one.clone() },
        PartGroup { from: "447700900124".to_owned(), ..one.clone() },
        PartGroup { to: "12345".to_owned(), ..one.clone() },
        PartGroup { reference: u16::MAX, ..one.clone() },
        PartGroup { total: u8::MAX, ..one },
    ];
    for (i, group) in all.iter().enumerate() {
        insert_part(&db, group, &part(1, &i.to_string()), START).await;
    }
    for (i, group) in all.iter().enumerate() {
        assert_eq!(parts(&db, group).await, [part(1, &i.to_string())]);
    }
    assert_eq!(overdue(&db, at(1), 9).await.len(), 6);
    assert_eq!(overdue(&db, at(1), 4).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_assembled_once() {
    let db = TestDb::new().await;
    assert!(!assemble(&db, &group(7, 2)).await, "the group has no parts");
    for n in [1, 2] {
        insert_part(&db, &group(7, 2), &part(n, "x"), START).await;
    }
    assert!(assemble(&db, &group(7, 2)).await);
    assert!(!assemble(&db, &group(7, 2)).await);
    assert!(parts(&db, &group(7, 2)).await.iter().all(|p| p.assembled));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_group_starts_again() {
    let db = TestDb::new().await;
    insert_part(&db, &group(7, 2), &part(1, "a"), START).await;
    insert_part(&db, &group(8, 2), &part(1, "a"), START).await;
    let mut tx = db.db.write().await.unwrap();
    let deleted = inbound_parts::delete_group(&mut tx, &group(7, 2)).await.unwrap();
    assert_eq!(deleted, [part(1, "a")]);
    tx.commit().await.unwrap();
    assert_eq!(parts(&db, &group(7, 2)).await, []);
    assert_eq!(parts(&db, &group(8, 2)).await, [part(1, "a")]);
}

/// The age of a group is that of its first part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incomplete_group_becomes_overdue() {
    let db = TestDb::new().await;
    insert_part(&db, &group(7, 3), &part(2, "a"), at(10)).await;
    insert_part(&db, &group(7, 3), &part(1, "a"), at(50)).await;
    insert_part(&db, &group(8, 3), &part(1, "a"), at(20)).await;
    for (before, expected) in [(10, vec![]), (11, vec![7]), (20, vec![7]), (21, vec![7, 8])] {
        let found = overdue(&db, at(before), 9).await;
        assert_eq!(found.iter().map(|g| g.reference).collect::<Vec<_>>(), expected, "{before} s");
    }
    assert!(assemble(&db, &group(7, 3)).await);
    assert_eq!(overdue(&db, at(99), 9).await, [group(8, 3)]);
}

/// The parts arrived on two nodes at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_complete_group_is_overdue_at_once() {
    let db = TestDb::new().await;
    for n in [2, 1] {
        insert_part(&db, &group(7, 2), &part(n, "a"), at(10)).await;
        insert_part(&db, &group(8, 3), &part(n, "a"), at(10)).await;
    }
    assert_eq!(overdue(&db, START, 9).await, [group(7, 2)]);
    assert!(assemble(&db, &group(7, 2)).await);
    assert_eq!(overdue(&db, START, 9).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_assembled_parts_are_deleted() {
    let db = TestDb::new().await;
    for (reference, seconds) in [(7, 9), (8, 10), (9, 9)] {
        insert_part(&db, &group(reference, 2), &part(1, "a"), at(seconds)).await;
    }
    assert!(assemble(&db, &group(7, 2)).await && assemble(&db, &group(8, 2)).await);
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(inbound_parts::delete_assembled(&mut tx, at(10)).await.unwrap(), 1);
    tx.commit().await.unwrap();
    for (reference, left) in [(7, 0), (8, 1), (9, 1)] {
        assert_eq!(parts(&db, &group(reference, 2)).await.len(), left, "{reference}");
    }
}

fn message(db: &TestDb, account: AccountId, to: &str) -> InboundMessage {
    InboundMessage {
        id: InboundId(db.ids.next(START)),
        account,
        mode: Mode::Live,
        carrier: ACME,
        from: "447700900123".to_owned(),
        to: to.to_owned(),
        text: "Hello".to_owned(),
        received_at: START,
        in_reply_to: None,
        keyword: None,
        complete: true,
    }
}

async fn insert(db: &TestDb, all: &[InboundMessage]) {
    let mut tx = db.db.write().await.unwrap();
    inbound_messages::insert(&mut tx, &all.iter().collect::<Vec<_>>()).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inbound_message_reads_back_as_stored() {
    let db = TestDb::new().await;
    let plain = message(&db, AccountId(1), "0123");
    let all = [
        InboundMessage {
            mode: Mode::Test,
            from: "Bank".to_owned(),
            text: "Grüße 👋\n".to_owned(),
            received_at: at(7),
            in_reply_to: Some(MessageId(db.ids.next(START))),
            keyword: Some(Keyword::Help),
            complete: false,
            ..message(&db, AccountId(1), "447700900000")
        },
        plain,
    ];
    insert(&db, &all).await;
    let mut conn = db.db.read().await.unwrap();
    for stored in all {
        let key = (stored.account, stored.id);
        assert_eq!(inbound_messages::get_many(&mut conn, &[key]).await.unwrap(), [stored]);
        let strange = (AccountId(2), key.1);
        assert_eq!(inbound_messages::get_many(&mut conn, &[strange]).await.unwrap(), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inbound_messages_are_paged_newest_first() {
    let db = TestDb::new().await;
    let mut all: Vec<_> = (0..4).map(|_| message(&db, AccountId(1), "1")).collect();
    all[1].mode = Mode::Test;
    insert(&db, &all).await;
    insert(&db, &[message(&db, AccountId(2), "1")]).await;
    let owner = (AccountId(1), Mode::Live);
    let mut conn = db.db.read().await.unwrap();
    for (before, expected) in
        [(InboundId(Uuid::max()), vec![3, 2]), (all[2].id, vec![0]), (all[0].id, vec![])]
    {
        let found = inbound_messages::list(&mut conn, owner, before, 2).await.unwrap();
        let expected: Vec<_> = expected.into_iter().map(|i: usize| all[i].clone()).collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_can_be_reassigned() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let mut tx = db.db.write().await.unwrap();
    assert!(!numbers::reassign(&mut tx, "0123", ann).await.unwrap());
    assert!(numbers::assign(&mut tx, "0123", ann).await.unwrap());
    assert!(!numbers::assign(&mut tx, "0123", bob).await.unwrap());
    assert_eq!(numbers::owner(&mut tx, "0123").await.unwrap(), Some(ann));
    assert!(numbers::reassign(&mut tx, "0123", bob).await.unwrap());
    assert_eq!(numbers::owner(&mut tx, "0123").await.unwrap(), Some(bob));
    assert_eq!(numbers::owner(&mut tx, "123").await.unwrap(), None);
    let all = numbers::list(&mut tx).await.unwrap();
    assert_eq!(all, [("0123".to_owned(), bob, "bob@example.com".to_owned())]);
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn assigning_a_number_assigns_its_messages() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let of_bob = message(&db, bob, "0123");
    let all = [message(&db, UNASSIGNED, "0123"), message(&db, UNASSIGNED, "123"), of_bob.clone()];
    insert(&db, &all).await;
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(inbound_messages::assign_account(&mut tx, "0123", ann).await.unwrap(), 1);
    assert_eq!(inbound_messages::assign_account(&mut tx, "0123", ann).await.unwrap(), 0);
    tx.commit().await.unwrap();
    let mut conn = db.db.read().await.unwrap();
    let newest = InboundId(Uuid::max());
    for (owner, expected) in [(ann, all[0].id), (bob, of_bob.id), (UNASSIGNED, all[1].id)] {
        let owner = (owner, Mode::Live);
        let found = inbound_messages::list(&mut conn, owner, newest, 9).await.unwrap();
        assert_eq!(found.iter().map(|m| m.id).collect::<Vec<_>>(), [expected]);
    }
}
