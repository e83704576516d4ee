//! Tests of message lists: a page reads a bounded number of rows, and no message is missing or
//! listed twice.

use crate::fixtures::{ANN, BOB, message};
use heliograph_domain::id::{AccountId, MessageId};
use heliograph_domain::message::{Failure, FailureCode, Message, MessageState, MessageStatus};
use heliograph_store::messaging::messages::{self, MessageFilter};
use heliograph_testing::{START, TestDb};
use std::time::Duration;

const ONE: AccountId = AccountId(1);
const NEWEST: MessageId = MessageId(uuid::Uuid::max());

/// Stores `count` messages and returns them oldest first.
async fn many(db: &TestDb, count: usize, make: impl Fn(usize, Message) -> Message) -> Vec<Message> {
    let all: Vec<Message> = (0..count).map(|n| make(n, message(db, ONE))).collect();
    let mut tx = db.db.write().await.unwrap();
    for some in all.chunks(2_000) {
        messages::insert(&mut tx, &some.iter().collect::<Vec<_>>()).await.unwrap();
    }
    tx.commit().await.unwrap();
    all
}

/// Reads all pages and returns the messages and the size of each page.
async fn read_pages(
    db: &TestDb,
    filter: &MessageFilter,
    limit: usize,
) -> (Vec<MessageId>, Vec<usize>) {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rare_messages_are_found_over_partial_pages() {
    let db = TestDb::new().await;
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
    let by = |recipient, reference: Option<&str>, status: Option<MessageStatus>| MessageFilter {
        recipient,
        reference: reference.map(str::to_owned),
        statuses: status.into_iter().collect(),
        ..MessageFilter::default()
    };
    // With an index each message is found at once.
    for filter in [by(Some(BOB), None, None), by(None, Some("rare"), Some(MessageStatus::Queued))] {
        assert_eq!(read_pages(&db, &filter, 2).await, (expected.clone(), vec![2, 1]));
        assert_eq!(read_pages(&db, &filter, 3).await, (expected.clone(), vec![3]));
    }
    // A search reads as many rows as a list without an index, in numbers, texts and references.
    let search =
        |text: &str| MessageFilter { search: Some(text.to_owned()), ..MessageFilter::default() };
    let bob = BOB.to_string();
    for text in ["RARE", &bob[3..], &format!("+{bob}")] {
        assert_eq!(read_pages(&db, &search(text), 50).await.0, expected, "{text}");
    }
    let (found, sizes) = read_pages(&db, &search("%"), 50).await;
    assert_eq!((found, sizes), (vec![], vec![0; 3]));
    // Without one, a page reads 10,000 rows, or 2,000 by an index, and reports that there is more.
    for (recipient, pages) in [(None, 3), (Some(ANN), 13)] {
        let none = by(recipient, None, Some(MessageStatus::Sent));
        assert_eq!(read_pages(&db, &none, 50).await, (vec![], vec![0; pages]));
    }
    let (found, sizes) = read_pages(&db, &by(None, None, Some(MessageStatus::Queued)), 100).await;
    assert!(found.iter().copied().eq(all.iter().rev().map(|m| m.id)));
    assert!(sizes.len() <= 251 && sizes[..250].iter().all(|n| *n == 100));
    let few = MessageFilter { to: Some(START), ..MessageFilter::default() };
    assert_eq!(read_pages(&db, &few, 50).await.0, vec![]);
}

/// Ids rise even when the clock is set back, so the time in an id may be later than its message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_filters_use_the_time_of_acceptance() {
    let db = TestDb::new().await;
    let at = |n: usize| START.after(Duration::from_millis(if n == 2 { 0 } else { n as u64 }));
    let all = many(&db, 4, |n, m| {
        let id = MessageId::first_at(START.after(Duration::from_millis(n as u64)));
        Message { id, accepted_at: at(n), ..m }
    })
    .await;
    let between = |from: usize, to: usize| MessageFilter {
        from: Some(START.after(Duration::from_millis(from as u64))),
        to: Some(START.after(Duration::from_millis(to as u64))),
        ..MessageFilter::default()
    };
    for (from, to, expected) in
        [(0, 4, &[3, 2, 1, 0][..]), (0, 1, &[2, 0]), (1, 3, &[1]), (3, 4, &[3]), (4, 9, &[])]
    {
        let expected: Vec<_> = expected.iter().map(|i: &usize| all[*i].id).collect();
        assert_eq!(read_pages(&db, &between(from, to), 50).await.0, expected, "{from} to {to}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_messages_are_found_among_many() {
    let db = TestDb::new().await;
    let all = many(&db, 12_000, |_, m| m).await;
    let failed = [&all[11_000], &all[3]];
    let mut tx = db.db.write().await.unwrap();
    let failure = Some(Failure::new(FailureCode::Unknown));
    let state = MessageState {
        status: MessageStatus::Failed,
        failure,
        ..MessageState::accepted(1, all[0].part_price)
    };
    let states: Vec<_> = failed.iter().map(|m| (m.account, m.id, &state)).collect();
    messages::save_states(&mut tx, &states).await.unwrap();
    tx.commit().await.unwrap();
    let filter =
        MessageFilter { statuses: vec![MessageStatus::Failed], ..MessageFilter::default() };
    let expected = vec![failed[0].id, failed[1].id];
    assert_eq!(read_pages(&db, &filter, 50).await, (expected, vec![2]));
}
