//! Tests of opt-out lists: their numbers and the evidence.

use crate::fixtures::{ANN, BOB, account, at};
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, Ids, InboundId, OptoutListId};
use heliograph_domain::optout::{Optout, OptoutList, OptoutSource};
use heliograph_domain::phone::Recipient;
use heliograph_store::audience::optouts;
use heliograph_testing::{START, TestDb};
use std::collections::HashSet;
use uuid::Uuid;

const NONE: OptoutListId = OptoutListId(Uuid::nil());
const UNASSIGNED: Recipient = Recipient(0);

async fn standard(db: &TestDb, account: AccountId, mode: Mode) -> OptoutList {
    let mut conn = db.db.read().await.unwrap();
    optouts::default_list(&mut conn, (account, mode)).await.unwrap().unwrap()
}

async fn create_list(db: &TestDb, account: AccountId, name: &str) -> OptoutList {
    let (id, name) = (OptoutListId(db.ids.next(START)), name.to_owned());
    let mode = Mode::Live;
    let list = OptoutList { id, account, mode, name, standard: false, created_at: at(3) };
    let mut tx = db.db.write().await.unwrap();
    optouts::create_list(&mut tx, &list).await.unwrap();
    tx.commit().await.unwrap();
    list
}

fn by_hand(number: Recipient) -> Optout {
    let (message, originator, note) = (None, None, None);
    Optout { number, source: OptoutSource::Api, message, originator, note, at: at(9) }
}

async fn add(db: &TestDb, all: &[(OptoutListId, &Optout)]) -> Vec<(OptoutListId, Recipient)> {
    let mut tx = db.db.write().await.unwrap();
    let added = optouts::add(&mut tx, all).await.unwrap();
    tx.commit().await.unwrap();
    added
}

async fn numbers(db: &TestDb, list: OptoutListId, after: Recipient, limit: i64) -> Vec<Recipient> {
    let mut conn = db.db.read().await.unwrap();
    let found = optouts::list_numbers(&mut conn, list, after, limit).await.unwrap();
    found.into_iter().map(|o| o.number).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_has_a_default_list_in_each_mode() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let live = standard(&db, ann, Mode::Live).await;
    let test = standard(&db, ann, Mode::Test).await;
    assert!(live.standard && test.standard && live.id != test.id);
    assert_eq!((live.mode, test.mode), (Mode::Live, Mode::Test));
    // A second default list is rejected.
    let (id, name) = (OptoutListId(db.ids.next(START)), "second".to_owned());
    let second = OptoutList { id, name, ..live };
    let mut tx = db.db.write().await.unwrap();
    assert!(optouts::create_list(&mut tx, &second).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_visible_to_its_own_account_and_mode_only() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let of_ann = create_list(&db, ann, "Shoes ñ").await;
    let mut conn = db.db.read().await.unwrap();
    for (owner, seen) in
        [((ann, Mode::Live), true), ((ann, Mode::Test), false), ((bob, Mode::Live), false)]
    {
        let found = optouts::get_list(&mut conn, owner, of_ann.id).await.unwrap();
        assert_eq!(found, seen.then(|| of_ann.clone()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_lists_are_unique_within_account_and_mode() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let sale = create_list(&db, ann, "Sale").await;
    let other = create_list(&db, ann, "Other").await;
    let mut tx = db.db.write().await.unwrap();
    for (account, mode, name, is_new) in [
        (ann, Mode::Live, "Sale", false),
        (ann, Mode::Live, "default", false),
        (ann, Mode::Live, "sale", true),
        (ann, Mode::Test, "Sale", true),
        (bob, Mode::Live, "Sale", true),
    ] {
        let (id, name) = (OptoutListId(db.ids.next(START)), name.to_owned());
        let list = OptoutList { id, account, mode, name, ..sale.clone() };
        assert_eq!(optouts::create_list(&mut tx, &list).await.unwrap(), is_new, "{list:?}");
    }
    optouts::lock_lists(&mut tx, (ann, Mode::Live)).await.unwrap();
    for (name, is_free) in
        [("Sale", false), ("default", false), ("Other", true), ("New", true), ("Other", true)]
    {
        let renamed = optouts::rename_list(&mut tx, &other, name).await.unwrap();
        assert_eq!(renamed, is_free, "{name}");
    }
    let kept = optouts::get_list(&mut tx, (ann, Mode::Live), sale.id).await.unwrap();
    assert_eq!(kept, Some(sale));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_paged() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let mut all = vec![standard(&db, ann, Mode::Live).await];
    for name in ["one", "two"] {
        create_list(&db, bob, name).await;
        all.push(create_list(&db, ann, name).await);
    }
    let mut conn = db.db.read().await.unwrap();
    for (after, limit, expected) in
        [(NONE, 9, 0..3), (NONE, 2, 0..2), (all[1].id, 2, 2..3), (all[2].id, 2, 3..3)]
    {
        let found = optouts::lists(&mut conn, (ann, Mode::Live), after, limit).await.unwrap();
        assert_eq!(found, all[expected]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_evidence_reads_back_as_stored() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let list = standard(&db, ann, Mode::Live).await.id;
    let all = [
        Optout {
            number: ANN,
            source: OptoutSource::Reply,
            message: Some(InboundId(db.ids.next(START))),
            originator: Some("447700900000".to_owned()),
            note: None,
            at: at(4),
        },
        Optout {
            note: Some("by telephone ☎".to_owned()),
            source: OptoutSource::Import,
            ..by_hand(BOB)
        },
    ];
    let added = add(&db, &[(list, &all[0]), (list, &all[1])]).await;
    let added: HashSet<_> = added.into_iter().collect();
    assert_eq!(added, HashSet::from([(list, ANN), (list, BOB)]));
    let mut conn = db.db.read().await.unwrap();
    for stored in all {
        let found = optouts::find(&mut conn, list, stored.number).await.unwrap();
        assert_eq!(found, Some(stored));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_added_again_keeps_its_evidence() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let (list, other) =
        (standard(&db, ann, Mode::Live).await.id, create_list(&db, ann, "x").await.id);
    let first = Optout { note: Some("first".to_owned()), ..by_hand(ANN) };
    assert_eq!(add(&db, &[(list, &first)]).await, [(list, ANN)]);
    let again = Optout { note: Some("again".to_owned()), at: at(99), ..by_hand(ANN) };
    let added = add(&db, &[(list, &again), (other, &again), (list, &by_hand(BOB))]).await;
    let added: HashSet<_> = added.into_iter().collect();
    assert_eq!(added, HashSet::from([(other, ANN), (list, BOB)]));
    // A number that is given twice in one call is added once.
    let twice = by_hand(Recipient(491_511_234_567));
    assert_eq!(add(&db, &[(list, &twice), (list, &twice)]).await.len(), 1);
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(optouts::find(&mut conn, list, ANN).await.unwrap(), Some(first));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_paged_in_numeric_order() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let (list, other) =
        (standard(&db, ann, Mode::Live).await.id, create_list(&db, ann, "x").await.id);
    let all: Vec<_> = [30, 10, 50, 20, 40].map(|n| by_hand(Recipient(n))).into();
    add(&db, &all.iter().map(|o| (list, o)).collect::<Vec<_>>()).await;
    add(&db, &[(other, &by_hand(Recipient(25)))]).await;
    for (after, limit, expected) in [
        (UNASSIGNED, 2, vec![10, 20]),
        (Recipient(20), 2, vec![30, 40]),
        (Recipient(40), 2, vec![50]),
        (Recipient(50), 2, vec![]),
    ] {
        let expected: Vec<_> = expected.into_iter().map(Recipient).collect();
        assert_eq!(numbers(&db, list, after, limit).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listed_returns_the_numbers_that_are_on_each_list() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let (list, other) =
        (standard(&db, ann, Mode::Live).await.id, create_list(&db, ann, "x").await.id);
    add(&db, &[(list, &by_hand(ANN)), (other, &by_hand(BOB))]).await;
    let mut conn = db.db.read().await.unwrap();
    let pairs = [(list, ANN), (list, BOB), (other, ANN), (other, BOB), (NONE, ANN), (list, ANN)];
    let found = conn.query_many(optouts::listed(&pairs)).await.unwrap();
    let found: HashSet<_> = found.into_iter().collect();
    assert_eq!(found, HashSet::from([(list, ANN), (other, BOB)]));
    assert_eq!(conn.query_many(optouts::listed(&[])).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_number_is_not_listed() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let list = standard(&db, ann, Mode::Live).await.id;
    add(&db, &[(list, &by_hand(ANN))]).await;
    let mut tx = db.db.write().await.unwrap();
    assert!(optouts::remove(&mut tx, list, ANN).await.unwrap());
    assert!(!optouts::remove(&mut tx, list, ANN).await.unwrap());
    assert_eq!(tx.query_many(optouts::listed(&[(list, ANN)])).await.unwrap(), []);
    tx.commit().await.unwrap();
    assert_eq!(add(&db, &[(list, &by_hand(ANN))]).await, [(list, ANN)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_deleted_with_its_numbers_unless_it_is_the_default() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let (list, other) =
        (standard(&db, ann, Mode::Live).await.id, create_list(&db, ann, "x").await.id);
    add(&db, &[(list, &by_hand(ANN)), (other, &by_hand(ANN))]).await;
    for (owner, list, removed) in
        [(bob, other, false), (ann, list, false), (ann, other, true), (ann, other, false)]
    {
        let mut tx = db.db.write().await.unwrap();
        assert_eq!(optouts::delete_list(&mut tx, owner, list).await.unwrap(), removed);
        tx.commit().await.unwrap();
    }
    assert_eq!(numbers(&db, other, UNASSIGNED, 9).await, []);
    assert_eq!(numbers(&db, list, UNASSIGNED, 9).await, [ANN]);
}
