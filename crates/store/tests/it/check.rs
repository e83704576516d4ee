//! Tests of the check: a healthy database passes, and every kind of damage is named.

use crate::fixtures::{BOB, account, at, balance, message, queued};
use heliograph_domain::message::{
    Failure, FailureCode, Message, MessageEvent, MessageState, apply, balance_change,
};
use heliograph_domain::phone::Recipient;
use heliograph_store::Db;
use heliograph_store::billing::balances;
use heliograph_store::messaging::messages;
use heliograph_store::messaging::parts;
use heliograph_store::messaging::queue;
use heliograph_store::operations::check;
use heliograph_testing::TestDb;

async fn violations(db: &Db) -> Vec<String> {
    check::violations(&mut db.snapshot().await.unwrap()).await.unwrap()
}

/// Stores one message in each status but CANCELLED, the last one of three parts; recipients count
/// from 1.
async fn populate(db: &TestDb) -> Vec<Message> {
    let ann = account(db, "ann@example.com", 10_000).await;
    account(db, "bob@example.com", 0).await;
    let failure = Failure::new(FailureCode::Unreachable);
    let histories = [
        vec![],
        vec![MessageEvent::PartsAccepted(1)],
        vec![MessageEvent::PartsAccepted(1), MessageEvent::PartDelivered],
        vec![MessageEvent::SendFailed(failure)],
        vec![MessageEvent::PartsAccepted(2), MessageEvent::PartDelivered],
    ];
    let mut all = Vec::new();
    for (recipient, history) in (1..).zip(histories) {
        let parts = if recipient == 5 { 3 } else { 1 };
        let recipient = Recipient(recipient);
        let m = Message { recipient, parts, ..message(db, ann) };
        queued(db, std::slice::from_ref(&m)).await;
        let mut tx = db.db.write().await.unwrap();
        balances::reserve(&mut tx, &[(ann, m.price())]).await.unwrap();
        let before = MessageState::accepted(m.parts, m.part_price);
        let after = history.iter().fold(before.clone(), |s, e| apply(&s, at(1), e).unwrap());
        let (available, reserved) = balance_change(&before, &after);
        messages::save_states(&mut tx, &[(ann, m.id, &after)]).await.unwrap();
        balances::adjust(&mut tx, &[(ann, available, reserved)]).await.unwrap();
        if m.parts > 1 {
            parts::record_accepted(&mut tx, &[(ann, m.id, 1), (ann, m.id, 2)]).await.unwrap();
        }
        if (2..=4).contains(&m.recipient.0) {
            let wanted = crate::fixtures::queue_claim(crate::fixtures::HERE, at(0), 9);
            let (found, _) = queue::claim(&mut tx, &wanted).await.unwrap();
            let held = found.iter().filter(|l| l.lease.message == m.id).map(|l| &l.lease);
            queue::settle(&mut tx, &held.collect::<Vec<_>>()).await.unwrap();
        }
        tx.commit().await.unwrap();
        all.push(m);
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_database_has_no_violations() {
    let db = TestDb::new().await;
    assert_eq!(violations(&db.db).await, [""; 0]);
    let all = populate(&db).await;
    assert_eq!(violations(&db.db).await, [""; 0]);
    // 10,000 were credited, 400 captured, and 200 are reserved for messages that are not sent yet.
    assert_eq!(balance(&db.db, all[0].account).await, (9_400, 200));
}

const LEDGER: &str = "the ledger adds up to available, reserved and captured";
const RESERVED: &str = "the amount that an account has reserved is the sum over its messages";
const AGREE: &str = "the amounts and parts of a message agree with its status";
const QUEUED: &str = "a queued message has a queue row";
const STANDS: &str = "a queue row has a message";
const ROWS: &str = "a message of several parts has a row for each part that a carrier accepted";

/// Damage, its repair, and exactly the invariants that it violates.
const DAMAGE: &[(&str, &str, &[&str])] = &[
    (
        "UPDATE accounts SET available = available + 1 WHERE name = 'bob@example.com'",
        "UPDATE accounts SET available = available - 1 WHERE name = 'bob@example.com'",
        &[LEDGER],
    ),
    ("UPDATE ledger SET amount = amount - 1", "UPDATE ledger SET amount = amount + 1", &[LEDGER]),
    (
        "UPDATE accounts SET available = available - 7, reserved = reserved + 7 WHERE reserved > 0",
        "UPDATE accounts SET available = available + 7, reserved = reserved - 7 WHERE reserved > 0",
        &[RESERVED],
    ),
    (
        "UPDATE messages SET captured = captured - 1 WHERE recipient = 2",
        "UPDATE messages SET captured = captured + 1 WHERE recipient = 2",
        &[LEDGER, AGREE],
    ),
    (
        "UPDATE messages SET reserved = reserved + 1 WHERE recipient = 4",
        "UPDATE messages SET reserved = reserved - 1 WHERE recipient = 4",
        &[RESERVED, AGREE],
    ),
    (
        "UPDATE messages SET reserved = reserved - 1 WHERE recipient = 1",
        "UPDATE messages SET reserved = reserved + 1 WHERE recipient = 1",
        &[RESERVED, AGREE],
    ),
    (
        "UPDATE messages SET parts_delivered = 0 WHERE recipient = 3",
        "UPDATE messages SET parts_delivered = 1 WHERE recipient = 3",
        &[AGREE],
    ),
    (
        "UPDATE messages SET parts_delivered = 4 WHERE recipient = 5",
        "UPDATE messages SET parts_delivered = 1 WHERE recipient = 5",
        &[AGREE],
    ),
    (
        "UPDATE messages SET done_at = NULL WHERE recipient = 3",
        "UPDATE messages SET done_at = 5 WHERE recipient = 3",
        &[AGREE],
    ),
    (
        "UPDATE messages SET done_at = 5 WHERE recipient = 2",
        "UPDATE messages SET done_at = NULL WHERE recipient = 2",
        &[AGREE],
    ),
    (
        "UPDATE messages SET failure = NULL WHERE recipient = 4",
        "UPDATE messages SET failure = 2 WHERE recipient = 4",
        &[AGREE],
    ),
    (
        "UPDATE messages SET failure = 2 WHERE recipient = 1",
        "UPDATE messages SET failure = NULL WHERE recipient = 1",
        &[AGREE],
    ),
    (
        "UPDATE messages SET status = 1 WHERE recipient = 5",
        "UPDATE messages SET status = 0 WHERE recipient = 5",
        &[AGREE],
    ),
    (
        "UPDATE messages SET status = 0 WHERE recipient = 2",
        "UPDATE messages SET status = 1 WHERE recipient = 2",
        &[QUEUED],
    ),
    (
        "UPDATE queue SET account = account + 1000
         WHERE id = (SELECT id FROM messages WHERE recipient = 1)",
        "UPDATE queue SET account = account - 1000 WHERE account > 1000",
        &[STANDS],
    ),
    (
        "DELETE FROM queue WHERE id = (SELECT id FROM messages WHERE recipient = 1)",
        "INSERT INTO queue
         SELECT carrier, 0, accepted_at, id, account, expires_at, NULL, NULL, 0, 0, 0
         FROM messages WHERE recipient = 1",
        &[QUEUED],
    ),
    (
        "DELETE FROM parts WHERE part = 2",
        "INSERT INTO parts SELECT account, message, 2, 0 FROM parts WHERE part = 1",
        &[ROWS],
    ),
    (
        "INSERT INTO parts SELECT account, message, 3, 0 FROM parts WHERE part = 1",
        "DELETE FROM parts WHERE part = 3",
        &[ROWS],
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_kind_of_damage_is_found() {
    let db = TestDb::new().await;
    populate(&db).await;
    for (damage, repair, rules) in DAMAGE {
        db.execute_raw(damage).await;
        let found = violations(&db.db).await;
        let broken: Vec<_> = found.iter().map(|f| f.split_once(": ").unwrap().0).collect();
        assert_eq!(broken, *rules, "{damage}\n{found:#?}");
        db.execute_raw(repair).await;
        assert_eq!(violations(&db.db).await, [""; 0], "{repair}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_violation_names_the_message() {
    let db = TestDb::new().await;
    let all = populate(&db).await;
    db.execute_raw(
        "UPDATE messages SET parts_accepted = 2, recipient = 6598234567 WHERE recipient = 2",
    )
    .await;
    let found = violations(&db.db).await;
    let (m, account) = (&all[1], all[1].account);
    let expected = format!(
        "{AGREE}: message {} of account {account}: status 1, 0/2/1 parts, reserved 0, captured 100",
        m.id
    );
    assert_eq!(found, [expected]);
    let moved = messages::get(&mut db.db.read().await.unwrap(), account, m.mode, m.id).await;
    assert_eq!(moved.unwrap().unwrap().0.recipient, BOB);
}
