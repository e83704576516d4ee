//! Lists of messages: a page reads so much and no more, and nothing is left out or shown twice.

use crate::rows::{ANN, BOB, message};
use crate::support::{BEGIN, TestDb, on_both_engines};
use heliograph_domain::id::{AccountId, MessageId};
use heliograph_domain::message::{Failure, FailureCode, Message, State, Status};
use heliograph_store::messages::{self, Filter};
use std::time::Duration;

on_both_engines!(message_lists:
    what_is_rare_is_found_over_pages_that_hold_less,
    an_instant_bounds_by_when_it_was_accepted_whatever_the_id_says,
    failed_ones_are_found_among_many,
);

const ONE: AccountId = AccountId(1);
const NEWEST: MessageId = MessageId(uuid::Uuid::max());

/// Stores so many messages; the oldest first.
async fn many(db: &TestDb, count: usize, make: impl Fn(usize, Message) -> Message) -> Vec<Message> {
    let all: Vec<Message> = (0..count).map(|n| make(n, message(db, ONE))).collect();
    let mut tx = db.db.write().await.unwrap();
    for some in all.chunks(2_000) {
        messages::insert(&mut tx, &some.iter().collect::<Vec<_>>()).await.unwrap();
    }
    tx.commit().await.unwrap();
    all
}

/// All that is found page by page, and how many each page held.
async fn walk(db: &TestDb, filter: &Filter, limit: usize) -> (Vec<MessageId>, Vec<usize>) {
    let (mut found, mut sizes, mut before) = (Vec::new(), Vec::new(), NEWEST);
    let mut conn = db.db.read().await.unwrap();
    let mode = message(db, ONE).mode;
    loop {
        let page = messages::list(&mut conn, (ONE, mode), filter, before, limit).await.unwrap();
        sizes.push(page.messages.len());
        found.extend(page.messages.iter().map(|(m, _)| m.id));
        match page.next {
            Some(next) if next < before => before = next,
            Some(next) => panic!("{next} is not below {before}"),
            None => return (found, sizes),
        }
    }
}

async fn what_is_rare_is_found_over_pages_that_hold_less(db: TestDb) {
    let rare = |n: usize| n % 9_000 == 17;
    let all = many(&db, 25_000, |n, m| {
        let reference = rare(n).then(|| "rare".to_owned());
        Message { recipient: if rare(n) { BOB } else { ANN }, reference, ..m }
    })
    .await;
    let mut expected: Vec<_> =
        all.iter().enumerate().filter(|(n, _)| rare(*n)).map(|(_, m)| m.id).collect();
    expected.reverse();
    assert_eq!(expected.len(), 3);
    let by = |recipient, reference: Option<&str>, status| Filter {
        recipient,
        reference: reference.map(str::to_owned),
        status,
        ..Filter::default()
    };
    // With an index of its own each is found at once.
    for filter in [by(Some(BOB), None, None), by(None, Some("rare"), Some(Status::Queued))] {
        assert_eq!(walk(&db, &filter, 2).await, (expected.clone(), vec![2, 1]));
        assert_eq!(walk(&db, &filter, 3).await, (expected.clone(), vec![3]));
    }
    // Without, a page reads 10,000, or 2,000 of what an index has, and says that there is more.
    for (recipient, pages) in [(None, 3), (Some(ANN), 13)] {
        let none = by(recipient, None, Some(Status::Sent));
        assert_eq!(walk(&db, &none, 50).await, (vec![], vec![0; pages]));
    }
    let (found, sizes) = walk(&db, &by(None, None, Some(Status::Queued)), 100).await;
    assert!(found.iter().copied().eq(all.iter().rev().map(|m| m.id)));
    assert!(sizes.len() <= 251 && sizes[..250].iter().all(|n| *n == 100));
    let few = Filter { to: Some(BEGIN), ..Filter::default() };
    assert_eq!(walk(&db, &few, 50).await.0, vec![]);
}

/// Ids rise even when the clock is set back, so an id may be later than its message.
async fn an_instant_bounds_by_when_it_was_accepted_whatever_the_id_says(db: TestDb) {
    let at = |n: usize| BEGIN.after(Duration::from_millis(if n == 2 { 0 } else { n as u64 }));
    let all = many(&db, 4, |n, m| {
        let id = MessageId::first_at(BEGIN.after(Duration::from_millis(n as u64)));
        Message { id, accepted_at: at(n), ..m }
    })
    .await;
    let between = |from: usize, to: usize| Filter {
        from: Some(BEGIN.after(Duration::from_millis(from as u64))),
        to: Some(BEGIN.after(Duration::from_millis(to as u64))),
        ..Filter::default()
    };
    for (from, to, expected) in
        [(0, 4, &[3, 2, 1, 0][..]), (0, 1, &[2, 0]), (1, 3, &[1]), (3, 4, &[3]), (4, 9, &[])]
    {
        let expected: Vec<_> = expected.iter().map(|i: &usize| all[*i].id).collect();
        assert_eq!(walk(&db, &between(from, to), 50).await.0, expected, "{from} to {to}");
    }
}

async fn failed_ones_are_found_among_many(db: TestDb) {
    let all = many(&db, 12_000, |_, m| m).await;
    let failed = [&all[11_000], &all[3]];
    let mut tx = db.db.write().await.unwrap();
    let failure = Some(Failure::plain(FailureCode::Unknown));
    let state = State { status: Status::Failed, failure, ..State::accepted(1, all[0].part_price) };
    let states: Vec<_> = failed.iter().map(|m| (m.account, m.id, &state)).collect();
    messages::save_states(&mut tx, &states).await.unwrap();
    tx.commit().await.unwrap();
    let filter = Filter { status: Some(Status::Failed), ..Filter::default() };
    let expected = vec![failed[0].id, failed[1].id];
    assert_eq!(walk(&db, &filter, 50).await, (expected, vec![2]));
}
