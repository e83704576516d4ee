//! Tests of messages: every field reads back as stored, for the owner only.

use crate::fixtures::{ANN, at, message, queued};
use heliograph_domain::account::Mode;
use heliograph_domain::id::{AccountId, ApiKeyId, CarrierId, Ids, MessageId, UserId};
use heliograph_domain::message::{Failure, FailureCode, Message, MessageState, MessageStatus};
use heliograph_domain::money::Amount;
use heliograph_domain::phone::Recipient;
use heliograph_domain::text::Encoding;
use heliograph_domain::time::Timestamp;
use heliograph_store::Db;
use heliograph_store::messaging::messages;
use heliograph_testing::{START, TestDb};
use std::time::Duration;
use tokio::time::timeout;

const ONE: AccountId = AccountId(1);
const TWO: AccountId = AccountId(2);

async fn insert(db: &Db, all: &[&Message]) {
    let mut tx = db.write().await.unwrap();
    messages::insert(&mut tx, all).await.unwrap();
    tx.commit().await.unwrap();
}

async fn get(db: &Db, m: &Message) -> Option<(Message, MessageState)> {
    messages::get(&mut db.read().await.unwrap(), m.account, m.mode, m.id).await.unwrap()
}

async fn states(db: &Db, keys: &[(AccountId, MessageId)]) -> Vec<(MessageId, MessageState)> {
    let mut tx = db.write().await.unwrap();
    let mut found = messages::lock_states(&mut tx, keys).await.unwrap();
    tx.commit().await.unwrap();
    found.sort_by_key(|m| (m.account, m.id));
    found.into_iter().map(|m| (m.id, m.state)).collect()
}

async fn save(db: &Db, m: &Message, state: &MessageState) {
    let mut tx = db.write().await.unwrap();
    messages::save_states(&mut tx, &[(m.account, m.id, state)]).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_field_reads_back_as_stored() {
    let db = TestDb::new().await;
    let stored = Message {
        mode: Mode::Test,
        api_key: Some(ApiKeyId(db.ids.next(START))),
        sent_by: Some(UserId(db.ids.next(START))),
        campaign: Some(db.ids.next(START)),
        optout_list: Some(db.ids.next(START)),
        originator: "A-B_C&D. +1".parse().unwrap(),
        text: "Grüße, 世界! 👩‍👩‍👧 \u{10ffff} 'quoted' \"$1\" ?1 \r\n\t\\".to_owned(),
        reference: Some("order № 7 — ñ".to_owned()),
        encoding: Encoding::Ucs2,
        parts: 3,
        part_price: Amount(42_001),
        carrier: CarrierId(7),
        scheduled_for: Some(at(60)),
        ..message(&db, ONE)
    };
    insert(&db.db, &[&stored]).await;
    let (found, state) = get(&db.db, &stored).await.unwrap();
    assert_eq!(found, stored);
    assert_eq!(state, MessageState::accepted(3, Amount(42_001)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nulls_and_limits_read_back_as_stored() {
    let db = TestDb::new().await;
    let bare = Message { text: String::new(), ..message(&db, ONE) };
    let biggest = Message {
        id: MessageId(uuid::Uuid::max()),
        account: AccountId(i64::MAX),
        recipient: Recipient(999_999_999_999_999),
        text: "\u{1f600}".repeat(17_085),
        reference: Some("r".repeat(255)),
        parts: 255,
        part_price: Amount(i64::MAX / 255),
        carrier: CarrierId(i16::MAX),
        accepted_at: Timestamp(i64::MAX),
        scheduled_for: Some(Timestamp(i64::MAX)),
        expires_at: Timestamp(i64::MAX),
        ..message(&db, ONE)
    };
    insert(&db.db, &[&bare, &biggest]).await;
    for stored in [bare, biggest] {
        let (found, state) = get(&db.db, &stored).await.unwrap();
        assert_eq!(found, stored);
        assert_eq!(state, MessageState::accepted(stored.parts, stored.part_price));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_visible_to_its_own_account_only() {
    let db = TestDb::new().await;
    let of_ann = message(&db, ONE);
    insert(&db.db, &[&of_ann]).await;
    let in_test = Message { mode: Mode::Test, ..of_ann.clone() };
    let of_bob = Message { account: TWO, ..of_ann.clone() };
    assert!(get(&db.db, &of_ann).await.is_some());
    assert_eq!(get(&db.db, &in_test).await, None);
    assert_eq!(get(&db.db, &of_bob).await, None);
    let mut conn = db.db.read().await.unwrap();
    assert!(messages::exists(&mut conn, ONE, of_ann.id).await.unwrap());
    assert!(!messages::exists(&mut conn, TWO, of_ann.id).await.unwrap());
    assert!(!messages::exists(&mut conn, ONE, MessageId(db.ids.next(START))).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_messages_are_stored_at_once() {
    let db = TestDb::new().await;
    let all: Vec<_> = (0..700)
        .map(|i| Message { recipient: Recipient(ANN.0 + i), ..message(&db, ONE) })
        .collect();
    insert(&db.db, &all.iter().collect::<Vec<_>>()).await;
    insert(&db.db, &[]).await;
    for stored in all.iter().step_by(97) {
        assert_eq!(get(&db.db, stored).await.unwrap().0, *stored);
    }
    let keys: Vec<_> = all.iter().map(|m| (ONE, m.id)).collect();
    let found: Vec<_> = states(&db.db, &keys).await.into_iter().map(|(id, _)| id).collect();
    assert_eq!(found, all.iter().map(|m| m.id).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_of_every_form_read_back_as_stored() {
    let db = TestDb::new().await;
    let m = Message { parts: 255, ..message(&db, ONE) };
    insert(&db.db, &[&m]).await;
    let code = |i: usize| (i & 1 == 0).then(|| "0x00000045 ñ".to_owned());
    let failure = |(i, c): (usize, &FailureCode)| Failure { code: *c, carrier_code: code(i) };
    let mut failures: Vec<_> = FailureCode::ALL.iter().enumerate().map(failure).map(Some).collect();
    failures.push(None);
    for (i, failure) in failures.into_iter().enumerate() {
        let state = MessageState {
            status: MessageStatus::ALL[i % 5],
            parts: 255,
            parts_accepted: 255,
            parts_delivered: 254,
            part_price: Amount(100),
            reserved: Amount(i64::MAX),
            captured: Amount(25_500),
            failure,
            sent_at: (i % 3 == 0).then_some(at(1)),
            done_at: (i % 3 == 1).then_some(Timestamp(i64::MAX)),
            in_doubt: i & 1 != 0,
            possible_duplicate: i & 2 != 0,
            late_receipt: i & 4 != 0,
        };
        save(&db.db, &m, &state).await;
        assert_eq!(get(&db.db, &m).await.unwrap(), (m.clone(), state.clone()));
        assert_eq!(states(&db.db, &[(ONE, m.id)]).await, [(m.id, state)]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_messages_have_no_state() {
    let db = TestDb::new().await;
    let m = message(&db, ONE);
    insert(&db.db, &[&m]).await;
    let unknown = MessageId(db.ids.next(START));
    let found = states(&db.db, &[(TWO, m.id), (ONE, unknown), (ONE, m.id)]).await;
    assert_eq!(found, [(m.id, MessageState::accepted(1, Amount(100)))]);
    assert_eq!(states(&db.db, &[]).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn saving_a_state_changes_one_message_only() {
    let db = TestDb::new().await;
    let (a, b) = (message(&db, ONE), message(&db, ONE));
    let c = Message { id: a.id, account: TWO, ..message(&db, TWO) };
    insert(&db.db, &[&a, &b, &c]).await;
    let fresh = MessageState::accepted(1, Amount(100));
    let sent = MessageState { status: MessageStatus::Sent, sent_at: Some(at(5)), ..fresh.clone() };
    save(&db.db, &a, &sent).await;
    for (m, state) in [(&a, &sent), (&b, &fresh), (&c, &fresh)] {
        assert_eq!(get(&db.db, m).await.unwrap().1, *state);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_state_blocks_another_transaction() {
    let db = TestDb::new().await;
    let m = message(&db, ONE);
    queued(&db, std::slice::from_ref(&m)).await;
    let fresh = MessageState::accepted(1, Amount(100));
    let mut first = db.db.write().await.unwrap();
    messages::lock_states(&mut first, &[(ONE, m.id)]).await.unwrap();
    let keys = [(ONE, m.id)];
    let second = states(&db.db, &keys);
    tokio::pin!(second);
    assert!(
        timeout(Duration::from_millis(100), &mut second).await.is_err(),
        "the second transaction did not wait"
    );
    let sent = MessageState { status: MessageStatus::Sent, ..fresh };
    messages::save_states(&mut first, &[(ONE, m.id, &sent)]).await.unwrap();
    first.commit().await.unwrap();
    assert_eq!(second.await, [(m.id, sent)]);
}
