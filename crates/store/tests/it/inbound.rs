//! What people sent: parts until they are whole, messages, and whose the numbers are.

use crate::rows::{ACME, account, at};
use crate::support::{BEGIN, TestDb, on_both_engines};
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, CarrierId, Ids, InboundId, MessageId};
use heliograph_domain::inbound::Keyword;
use heliograph_domain::inbound_message::InboundMessage;
use heliograph_domain::time::Timestamp;
use heliograph_store::inbound_messages::{self, NOBODY};
use heliograph_store::inbound_parts::{self, Group, Part};
use heliograph_store::numbers;
use uuid::Uuid;

on_both_engines!(inbound:
    parts_are_told_in_order_whenever_they_came,
    a_part_that_comes_twice_stays_as_it_was,
    groups_are_apart_by_everything_that_names_them,
    a_group_is_finished_once,
    a_forgotten_group_begins_anew,
    a_group_is_overdue_by_its_age,
    a_group_of_which_all_came_is_overdue_at_once,
    what_is_done_is_dropped_and_what_waits_is_not,
    a_message_reads_back_as_it_came,
    messages_are_told_page_by_page_the_newest_first,
    a_number_goes_from_hand_to_hand,
    who_gets_a_number_gets_what_was_written_to_it,
);

fn group(reference: u16, total: u8) -> Group {
    let (from, to) = ("447700900123".to_owned(), "447700900000".to_owned());
    Group { carrier: ACME, from, to, reference, total }
}

fn part(sequence: u8, text: &str) -> Part {
    Part { sequence, text: text.to_owned(), label: None, done: false }
}

async fn came(db: &TestDb, group: &Group, part: &Part, when: Timestamp) {
    let mut tx = db.db.write().await.unwrap();
    inbound_parts::insert(&mut tx, group, part, when).await.unwrap();
    tx.commit().await.unwrap();
}

async fn parts(db: &TestDb, group: &Group) -> Vec<Part> {
    inbound_parts::of(&mut db.db.read().await.unwrap(), group).await.unwrap()
}

/// Whether there was something to finish.
async fn finish(db: &TestDb, group: &Group) -> bool {
    let mut tx = db.db.write().await.unwrap();
    let mut mine = inbound_parts::finish(&mut tx, group).await.unwrap();
    mine.sort_by_key(|p| p.sequence);
    let there = inbound_parts::of(&mut tx, group).await.unwrap();
    assert!(there.iter().all(|p| p.done));
    assert!(mine.iter().all(|p| !p.done && there.contains(&Part { done: true, ..p.clone() })));
    tx.commit().await.unwrap();
    !mine.is_empty()
}

async fn overdue(db: &TestDb, before: Timestamp, limit: i64) -> Vec<Group> {
    let mut conn = db.db.read().await.unwrap();
    let mut found = inbound_parts::overdue(&mut conn, before, limit).await.unwrap();
    found.sort();
    found
}

async fn parts_are_told_in_order_whenever_they_came(db: TestDb) {
    let all = [3, 1, 2].map(|n| Part { label: Some(i64::from(n)), ..part(n, "ñ👋") });
    for p in &all {
        came(&db, &group(7, 3), p, BEGIN).await;
    }
    assert_eq!(parts(&db, &group(7, 3)).await, [1, 2, 0].map(|i: usize| all[i].clone()));
}

async fn a_part_that_comes_twice_stays_as_it_was(db: TestDb) {
    came(&db, &group(7, 3), &part(1, "a"), BEGIN).await;
    came(&db, &group(7, 3), &part(1, "b"), at(5)).await;
    assert_eq!(parts(&db, &group(7, 3)).await, [part(1, "a")]);
}

async fn groups_are_apart_by_everything_that_names_them(db: TestDb) {
    let one = group(7, 3);
    let all = [
        one.clone(),
        Group { carrier: CarrierId(2), ..one.clone() },
        Group { from: "447700900124".to_owned(), ..one.clone() },
        Group { to: "12345".to_owned(), ..one.clone() },
        Group { reference: u16::MAX, ..one.clone() },
        Group { total: u8::MAX, ..one },
    ];
    for (i, group) in all.iter().enumerate() {
        came(&db, group, &part(1, &i.to_string()), BEGIN).await;
    }
    for (i, group) in all.iter().enumerate() {
        assert_eq!(parts(&db, group).await, [part(1, &i.to_string())]);
    }
    assert_eq!(overdue(&db, at(1), 9).await.len(), 6);
    assert_eq!(overdue(&db, at(1), 4).await.len(), 4);
}

async fn a_group_is_finished_once(db: TestDb) {
    assert!(!finish(&db, &group(7, 2)).await, "there is nothing");
    for n in [1, 2] {
        came(&db, &group(7, 2), &part(n, "x"), BEGIN).await;
    }
    assert!(finish(&db, &group(7, 2)).await);
    assert!(!finish(&db, &group(7, 2)).await);
    assert!(parts(&db, &group(7, 2)).await.iter().all(|p| p.done));
}

async fn a_forgotten_group_begins_anew(db: TestDb) {
    came(&db, &group(7, 2), &part(1, "a"), BEGIN).await;
    came(&db, &group(8, 2), &part(1, "a"), BEGIN).await;
    let mut tx = db.db.write().await.unwrap();
    let there = inbound_parts::forget(&mut tx, &group(7, 2)).await.unwrap();
    assert_eq!(there, [part(1, "a")]);
    tx.commit().await.unwrap();
    assert_eq!(parts(&db, &group(7, 2)).await, []);
    assert_eq!(parts(&db, &group(8, 2)).await, [part(1, "a")]);
}

/// By the first of its parts.
async fn a_group_is_overdue_by_its_age(db: TestDb) {
    came(&db, &group(7, 3), &part(2, "a"), at(10)).await;
    came(&db, &group(7, 3), &part(1, "a"), at(50)).await;
    came(&db, &group(8, 3), &part(1, "a"), at(20)).await;
    for (before, expected) in [(10, vec![]), (11, vec![7]), (20, vec![7]), (21, vec![7, 8])] {
        let found = overdue(&db, at(before), 9).await;
        assert_eq!(found.iter().map(|g| g.reference).collect::<Vec<_>>(), expected, "{before} s");
    }
    assert!(finish(&db, &group(7, 3)).await);
    assert_eq!(overdue(&db, at(99), 9).await, [group(8, 3)]);
}

/// They came over two nodes at once.
async fn a_group_of_which_all_came_is_overdue_at_once(db: TestDb) {
    for n in [2, 1] {
        came(&db, &group(7, 2), &part(n, "a"), at(10)).await;
        came(&db, &group(8, 3), &part(n, "a"), at(10)).await;
    }
    assert_eq!(overdue(&db, BEGIN, 9).await, [group(7, 2)]);
    assert!(finish(&db, &group(7, 2)).await);
    assert_eq!(overdue(&db, BEGIN, 9).await, []);
}

async fn what_is_done_is_dropped_and_what_waits_is_not(db: TestDb) {
    for (reference, seconds) in [(7, 9), (8, 10), (9, 9)] {
        came(&db, &group(reference, 2), &part(1, "a"), at(seconds)).await;
    }
    assert!(finish(&db, &group(7, 2)).await && finish(&db, &group(8, 2)).await);
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(inbound_parts::drop_done(&mut tx, at(10)).await.unwrap(), 1);
    tx.commit().await.unwrap();
    for (reference, left) in [(7, 0), (8, 1), (9, 1)] {
        assert_eq!(parts(&db, &group(reference, 2)).await.len(), left, "{reference}");
    }
}

fn message(db: &TestDb, account: AccountId, to: &str) -> InboundMessage {
    InboundMessage {
        id: InboundId(db.ids.next(BEGIN)),
        account,
        mode: Mode::Live,
        carrier: ACME,
        from: "447700900123".to_owned(),
        to: to.to_owned(),
        text: "Hello".to_owned(),
        received_at: BEGIN,
        in_reply_to: None,
        keyword: None,
        complete: true,
    }
}

async fn kept(db: &TestDb, all: &[InboundMessage]) {
    let mut tx = db.db.write().await.unwrap();
    inbound_messages::insert(&mut tx, &all.iter().collect::<Vec<_>>()).await.unwrap();
    tx.commit().await.unwrap();
}

async fn a_message_reads_back_as_it_came(db: TestDb) {
    let plain = message(&db, AccountId(1), "0123");
    let all = [
        InboundMessage {
            mode: Mode::Test,
            from: "Bank".to_owned(),
            text: "Grüße 👋\n".to_owned(),
            received_at: at(7),
            in_reply_to: Some(MessageId(db.ids.next(BEGIN))),
            keyword: Some(Keyword::Help),
            complete: false,
            ..message(&db, AccountId(1), "447700900000")
        },
        plain,
    ];
    kept(&db, &all).await;
    let mut conn = db.db.read().await.unwrap();
    for stored in all {
        let key = (stored.account, stored.id);
        assert_eq!(inbound_messages::whole(&mut conn, &[key]).await.unwrap(), [stored]);
        let strange = (AccountId(2), key.1);
        assert_eq!(inbound_messages::whole(&mut conn, &[strange]).await.unwrap(), []);
    }
}

async fn messages_are_told_page_by_page_the_newest_first(db: TestDb) {
    let mut all: Vec<_> = (0..4).map(|_| message(&db, AccountId(1), "1")).collect();
    all[1].mode = Mode::Test;
    kept(&db, &all).await;
    kept(&db, &[message(&db, AccountId(2), "1")]).await;
    let whose = (AccountId(1), Mode::Live);
    let mut conn = db.db.read().await.unwrap();
    for (before, expected) in
        [(InboundId(Uuid::max()), vec![3, 2]), (all[2].id, vec![0]), (all[0].id, vec![])]
    {
        let found = inbound_messages::of(&mut conn, whose, before, 2).await.unwrap();
        let expected: Vec<_> = expected.into_iter().map(|i: usize| all[i].clone()).collect();
        assert_eq!(found, expected);
    }
}

async fn a_number_goes_from_hand_to_hand(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    for (account, changes) in [(ann, true), (ann, false), (bob, true), (bob, false), (ann, true)] {
        let mut tx = db.db.write().await.unwrap();
        assert_eq!(numbers::assign(&mut tx, "0123", account).await.unwrap(), changes);
        tx.commit().await.unwrap();
        let mut conn = db.db.read().await.unwrap();
        assert_eq!(numbers::owner(&mut conn, "0123").await.unwrap(), Some(account));
        assert_eq!(numbers::owner(&mut conn, "123").await.unwrap(), None);
    }
}

async fn who_gets_a_number_gets_what_was_written_to_it(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let his = message(&db, bob, "0123");
    let all = [message(&db, NOBODY, "0123"), message(&db, NOBODY, "123"), his.clone()];
    kept(&db, &all).await;
    let mut tx = db.db.write().await.unwrap();
    assert_eq!(inbound_messages::adopt(&mut tx, "0123", ann).await.unwrap(), 1);
    assert_eq!(inbound_messages::adopt(&mut tx, "0123", ann).await.unwrap(), 0);
    tx.commit().await.unwrap();
    let mut conn = db.db.read().await.unwrap();
    let newest = InboundId(Uuid::max());
    for (whose, expected) in [(ann, all[0].id), (bob, his.id), (NOBODY, all[1].id)] {
        let whose = (whose, Mode::Live);
        let found = inbound_messages::of(&mut conn, whose, newest, 9).await.unwrap();
        assert_eq!(found.iter().map(|m| m.id).collect::<Vec<_>>(), [expected]);
    }
}
