//! Opt-outs: who is on which list, since when, and how that is known.

use crate::rows::{ANN, BOB, account, at};
use crate::support::{BEGIN, TestDb, on_both_engines};
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, Ids, InboundId, OptoutListId};
use heliograph_domain::optout::{Optout, OptoutList, Source};
use heliograph_domain::phone::Recipient;
use heliograph_store::optouts;
use std::collections::HashSet;
use uuid::Uuid;

on_both_engines!(optouts:
    an_account_has_a_default_list_in_each_mode,
    a_list_is_seen_by_its_own_account_and_mode,
    lists_are_told_page_by_page,
    the_evidence_reads_back,
    who_is_added_again_keeps_the_evidence,
    numbers_are_told_page_by_page_in_their_order,
    listed_says_who_of_these_is_on_which_list,
    who_is_taken_off_is_not_listed,
    a_list_goes_with_everyone_on_it_but_never_the_default,
);

const NONE: OptoutListId = OptoutListId(Uuid::nil());
const NOBODY: Recipient = Recipient(0);

async fn standard(db: &TestDb, account: AccountId, mode: Mode) -> OptoutList {
    let mut conn = db.db.read().await.unwrap();
    optouts::standard(&mut conn, (account, mode)).await.unwrap().unwrap()
}

async fn made(db: &TestDb, account: AccountId, name: &str) -> OptoutList {
    let (id, name) = (OptoutListId(db.ids.next(BEGIN)), name.to_owned());
    let mode = Mode::Live;
    let list = OptoutList { id, account, mode, name, standard: false, created_at: at(3) };
    let mut tx = db.db.write().await.unwrap();
    optouts::make(&mut tx, &list).await.unwrap();
    tx.commit().await.unwrap();
    list
}

fn by_hand(number: Recipient) -> Optout {
    let (message, originator, note) = (None, None, None);
    Optout { number, source: Source::Api, message, originator, note, at: at(9) }
}

async fn add(db: &TestDb, all: &[(OptoutListId, &Optout)]) -> Vec<(OptoutListId, Recipient)> {
    let mut tx = db.db.write().await.unwrap();
    let added = optouts::add(&mut tx, all).await.unwrap();
    tx.commit().await.unwrap();
    added
}

async fn numbers(db: &TestDb, list: OptoutListId, after: Recipient, limit: i64) -> Vec<Recipient> {
    let mut conn = db.db.read().await.unwrap();
    let found = optouts::of(&mut conn, list, after, limit).await.unwrap();
    found.into_iter().map(|o| o.number).collect()
}

async fn an_account_has_a_default_list_in_each_mode(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let live = standard(&db, ann, Mode::Live).await;
    let test = standard(&db, ann, Mode::Test).await;
    assert!(live.standard && test.standard && live.id != test.id);
    assert_eq!((live.mode, test.mode), (Mode::Live, Mode::Test));
    // And never a second one.
    let second = OptoutList { id: OptoutListId(db.ids.next(BEGIN)), ..live };
    let mut tx = db.db.write().await.unwrap();
    assert!(optouts::make(&mut tx, &second).await.is_err());
}

async fn a_list_is_seen_by_its_own_account_and_mode(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let hers = made(&db, ann, "Shoes ñ").await;
    let mut conn = db.db.read().await.unwrap();
    for (whose, seen) in
        [((ann, Mode::Live), true), ((ann, Mode::Test), false), ((bob, Mode::Live), false)]
    {
        let found = optouts::get(&mut conn, whose, hers.id).await.unwrap();
        assert_eq!(found, seen.then(|| hers.clone()));
    }
}

async fn lists_are_told_page_by_page(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let mut all = vec![standard(&db, ann, Mode::Live).await];
    for name in ["one", "two"] {
        made(&db, bob, name).await;
        all.push(made(&db, ann, name).await);
    }
    let mut conn = db.db.read().await.unwrap();
    for (after, limit, expected) in
        [(NONE, 9, 0..3), (NONE, 2, 0..2), (all[1].id, 2, 2..3), (all[2].id, 2, 3..3)]
    {
        let found = optouts::lists(&mut conn, (ann, Mode::Live), after, limit).await.unwrap();
        assert_eq!(found, all[expected]);
    }
}

async fn the_evidence_reads_back(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let list = standard(&db, ann, Mode::Live).await.id;
    let all = [
        Optout {
            number: ANN,
            source: Source::Reply,
            message: Some(InboundId(db.ids.next(BEGIN))),
            originator: Some("447700900000".to_owned()),
            note: None,
            at: at(4),
        },
        Optout {
            note: Some("by telephone ☎".to_owned()), source: Source::Import, ..by_hand(BOB)
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

async fn who_is_added_again_keeps_the_evidence(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let (list, other) = (standard(&db, ann, Mode::Live).await.id, made(&db, ann, "x").await.id);
    let first = Optout { note: Some("first".to_owned()), ..by_hand(ANN) };
    assert_eq!(add(&db, &[(list, &first)]).await, [(list, ANN)]);
    let again = Optout { note: Some("again".to_owned()), at: at(99), ..by_hand(ANN) };
    let added = add(&db, &[(list, &again), (other, &again), (list, &by_hand(BOB))]).await;
    let added: HashSet<_> = added.into_iter().collect();
    assert_eq!(added, HashSet::from([(other, ANN), (list, BOB)]));
    // Twice in one call is once, too.
    let twice = by_hand(Recipient(491_511_234_567));
    assert_eq!(add(&db, &[(list, &twice), (list, &twice)]).await.len(), 1);
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(optouts::find(&mut conn, list, ANN).await.unwrap(), Some(first));
}

async fn numbers_are_told_page_by_page_in_their_order(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let (list, other) = (standard(&db, ann, Mode::Live).await.id, made(&db, ann, "x").await.id);
    let all: Vec<_> = [30, 10, 50, 20, 40].map(|n| by_hand(Recipient(n))).into();
    add(&db, &all.iter().map(|o| (list, o)).collect::<Vec<_>>()).await;
    add(&db, &[(other, &by_hand(Recipient(25)))]).await;
    for (after, limit, expected) in [
        (NOBODY, 2, vec![10, 20]),
        (Recipient(20), 2, vec![30, 40]),
        (Recipient(40), 2, vec![50]),
        (Recipient(50), 2, vec![]),
    ] {
        let expected: Vec<_> = expected.into_iter().map(Recipient).collect();
        assert_eq!(numbers(&db, list, after, limit).await, expected);
    }
}

async fn listed_says_who_of_these_is_on_which_list(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let (list, other) = (standard(&db, ann, Mode::Live).await.id, made(&db, ann, "x").await.id);
    add(&db, &[(list, &by_hand(ANN)), (other, &by_hand(BOB))]).await;
    let mut conn = db.db.read().await.unwrap();
    let pairs = [(list, ANN), (list, BOB), (other, ANN), (other, BOB), (NONE, ANN), (list, ANN)];
    let found = conn.ask(optouts::listed(&pairs)).await.unwrap();
    let found: HashSet<_> = found.into_iter().collect();
    assert_eq!(found, HashSet::from([(list, ANN), (other, BOB)]));
    assert_eq!(conn.ask(optouts::listed(&[])).await.unwrap(), []);
}

async fn who_is_taken_off_is_not_listed(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let list = standard(&db, ann, Mode::Live).await.id;
    add(&db, &[(list, &by_hand(ANN))]).await;
    let mut tx = db.db.write().await.unwrap();
    assert!(optouts::remove(&mut tx, list, ANN).await.unwrap());
    assert!(!optouts::remove(&mut tx, list, ANN).await.unwrap());
    assert_eq!(tx.ask(optouts::listed(&[(list, ANN)])).await.unwrap(), []);
    tx.commit().await.unwrap();
    assert_eq!(add(&db, &[(list, &by_hand(ANN))]).await, [(list, ANN)]);
}

async fn a_list_goes_with_everyone_on_it_but_never_the_default(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let (list, other) = (standard(&db, ann, Mode::Live).await.id, made(&db, ann, "x").await.id);
    add(&db, &[(list, &by_hand(ANN)), (other, &by_hand(ANN))]).await;
    for (whose, which, removed) in
        [(bob, other, false), (ann, list, false), (ann, other, true), (ann, other, false)]
    {
        let mut tx = db.db.write().await.unwrap();
        assert_eq!(optouts::remove_list(&mut tx, whose, which).await.unwrap(), removed);
        tx.commit().await.unwrap();
    }
    assert_eq!(numbers(&db, other, NOBODY, 9).await, []);
    assert_eq!(numbers(&db, list, NOBODY, 9).await, [ANN]);
}
