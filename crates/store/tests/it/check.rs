//! The check: silent about a healthy database, and it names every kind of damage.

use crate::rows::{BOB, account, at, balance, message, queued};
use crate::support::{TestDb, on_both_engines};
use heliograph_domain::message::{Event, Failure, FailureCode, Message, State, apply, money};
use heliograph_domain::phone::Recipient;
use heliograph_store::{Db, accounts, check, messages, parts, queue};

on_both_engines!(check:
    a_healthy_database_has_no_violations,
    each_kind_of_damage_is_found,
    what_is_found_names_the_message,
);

async fn violations(db: &Db) -> Vec<String> {
    check::violations(&mut db.snapshot().await.unwrap()).await.unwrap()
}

/// One message in each status but CANCELLED, the last one of three parts; recipients from 1 on.
async fn populate(db: &TestDb) -> Vec<Message> {
    let ann = account(db, "ann@example.com", 10_000).await;
    account(db, "bob@example.com", 0).await;
    let failure = Failure::plain(FailureCode::Unreachable);
    let roads = [
        vec![],
        vec![Event::PartsAccepted(1)],
        vec![Event::PartsAccepted(1), Event::PartDelivered],
        vec![Event::SendFailed(failure)],
        vec![Event::PartsAccepted(2), Event::PartDelivered],
    ];
    let mut all = Vec::new();
    for (recipient, road) in (1..).zip(roads) {
        let parts = if recipient == 5 { 3 } else { 1 };
        let recipient = Recipient(recipient);
        let m = Message { recipient, parts, ..message(db, ann) };
        queued(db, std::slice::from_ref(&m)).await;
        let mut tx = db.db.write().await.unwrap();
        accounts::reserve(&mut tx, &[(ann, m.price())]).await.unwrap();
        let before = State::accepted(m.parts, m.part_price);
        let after = road.iter().fold(before.clone(), |s, e| apply(&s, at(1), e).unwrap());
        let (available, reserved) = money(&before, &after);
        messages::save_states(&mut tx, &[(ann, m.id, &after)]).await.unwrap();
        accounts::move_money(&mut tx, &[(ann, available, reserved)]).await.unwrap();
        if m.parts > 1 {
            parts::taken(&mut tx, &[(ann, m.id, 1), (ann, m.id, 2)]).await.unwrap();
        }
        if (2..=4).contains(&m.recipient.0) {
            let wish = crate::rows::wish(crate::rows::HERE, at(0), 9);
            let (found, _) = queue::claim(&mut tx, &wish).await.unwrap();
            let held = found.iter().filter(|l| l.lease.message == m.id).map(|l| &l.lease);
            queue::settle(&mut tx, &held.collect::<Vec<_>>()).await.unwrap();
        }
        tx.commit().await.unwrap();
        all.push(m);
    }
    all
}

async fn a_healthy_database_has_no_violations(db: TestDb) {
    assert_eq!(violations(&db.db).await, [""; 0]);
    let all = populate(&db).await;
    assert_eq!(violations(&db.db).await, [""; 0]);
    // 10,000 came in; 400 were captured, and 200 are reserved for what is still to be sent.
    assert_eq!(balance(&db.db, all[0].account).await, (9_400, 200));
}

const LEDGER: &str = "the ledger's sum is what is available, reserved and captured";
const RESERVED: &str = "what an account has reserved is what its messages have";
const AGREE: &str = "a message's money and parts agree with its status";
const QUEUED: &str = "a queued message stands in the queue";
const STANDS: &str = "what stands in the queue is a message";
const ROWS: &str = "a message of several parts has a row for each part that a carrier took";

/// Damage | its repair | the rules that must complain, and no others.
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
        "UPDATE messages SET parts_delivered = 3 WHERE recipient = 5",
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

async fn each_kind_of_damage_is_found(db: TestDb) {
    populate(&db).await;
    for (damage, repair, rules) in DAMAGE {
        db.behind(damage).await;
        let found = violations(&db.db).await;
        let broken: Vec<_> = found.iter().map(|f| f.split_once(": ").unwrap().0).collect();
        assert_eq!(broken, *rules, "{damage}\n{found:#?}");
        db.behind(repair).await;
        assert_eq!(violations(&db.db).await, [""; 0], "{repair}");
    }
}

async fn what_is_found_names_the_message(db: TestDb) {
    let all = populate(&db).await;
    db.behind("UPDATE messages SET parts_accepted = 2, recipient = 6598234567 WHERE recipient = 2")
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
