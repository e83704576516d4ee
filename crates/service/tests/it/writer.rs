//! The writer: one batch is one transaction, a fault is one command's own, and a database that is
//! away loses nothing.

use crate::node::{Node, accepted, is_overloaded, outcome, text};
use crate::support::{TestDb, on_both_engines};
use heliograph_domain::message::Status;
use heliograph_service::messages;
use heliograph_service::writer::{Accept, Accepted, Claim, Command, Progress};
use heliograph_store::Error;
use std::sync::Arc;
use tokio::sync::oneshot;

on_both_engines!(writer:
    a_poisoned_command_fails_alone,
    a_poisoned_command_and_one_of_another_kind_are_told_apart,
    a_database_that_is_away_loses_nothing,
    a_caller_that_goes_away_cancels_nothing,
    more_than_one_batch_is_written,
);

/// Makes every settlement of this account fail: it would bring what is reserved below zero.
fn poison(account: heliograph_domain::id::AccountId, by: i64) -> String {
    format!("UPDATE accounts SET reserved = reserved - {by} WHERE id = {account}")
}

async fn a_poisoned_command_fails_alone(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    let bob = node.account("bob@example.com", 10_000).await;
    node.open().await;
    let mut all = Vec::new();
    for i in 0..9 {
        let caller = if i == 5 { &bob } else { &ann };
        all.push((caller, node.send(caller, text("Hello")).await));
    }
    let held = node.arrived();
    db.behind(&poison(bob.account, 100)).await;
    let mut batch = Vec::new();
    let mut answers = Vec::new();
    for (i, held) in held.iter().enumerate() {
        let settlements = vec![outcome(held, accepted(&i.to_string()))];
        let (reply, answer) = oneshot::channel();
        let news = Progress { settlements, ..Progress::default() };
        batch.push(Command::Progress(news, reply));
        answers.push(answer);
    }
    node.write(batch).await;
    for (i, mut answer) in answers.into_iter().enumerate() {
        match answer.try_recv().unwrap() {
            Ok(_) => assert_ne!(i, 5),
            Err((error, news)) => {
                assert!(i == 5 && matches!(error, Error::Db(_)), "{i}: {error}");
                assert_eq!(news.settlements[0].lease.message, all[5].1, "handed back as it was");
                db.behind(&poison(bob.account, -100)).await;
                node.tell(news).await;
            }
        }
    }
    for (caller, id) in all {
        assert_eq!(node.status(caller, id).await, Status::Sent);
    }
    node.check().await;
}

/// One of each kind: what is left when a batch has been cut in two often enough.
async fn a_poisoned_command_and_one_of_another_kind_are_told_apart(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    let bob = node.account("bob@example.com", 10_000).await;
    node.open().await;
    node.send(&bob, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    let waiting = node.send_all(&ann, vec![(text("Hello"), None)]).await.pop().unwrap();
    drop(node.arrived());
    db.behind(&poison(bob.account, 100)).await;
    let (id, accepted_at) = node.cx.next_id();
    let id = heliograph_domain::id::MessageId(id);
    let message = (*waiting.unwrap().message).clone();
    let message = heliograph_domain::message::Message { id, accepted_at, ..message };
    let (reply, mut verdict) = oneshot::channel();
    let accept = Accept { message: Arc::new(message), idempotency: None, reply };
    let settlements = vec![outcome(&held, accepted("a"))];
    let (reply, mut settled) = oneshot::channel();
    let news = Progress { settlements, ..Progress::default() };
    let (claimed, mut found) = oneshot::channel();
    let room = node.desk.free_room(9).unwrap();
    let (renewed, mut kept) = oneshot::channel();
    node.write(vec![
        Command::Accept(accept),
        Command::Progress(news, reply),
        Command::Claim(Claim { carrier: node.carrier, room, reply: claimed }),
        Command::Renew(vec![held.leased.lease.clone()], renewed),
    ])
    .await;
    assert_eq!(verdict.try_recv().unwrap().unwrap(), Accepted::Done);
    assert!(matches!(settled.try_recv().unwrap(), Err((Error::Db(_), _))));
    assert!(found.try_recv().unwrap().is_ok());
    kept.try_recv().unwrap().unwrap();
    assert_eq!(node.status(&ann, id).await, Status::Queued);
}

async fn a_database_that_is_away_loses_nothing(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open().await;
    let id = node.send(&ann, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    let places = node.desk.places();
    let (reply, answer) = oneshot::channel();
    let settlements = vec![outcome(&held, accepted("a"))];
    let news = Progress { settlements, ..Progress::default() };
    let (claimed, found) = oneshot::channel();
    let room = node.desk.free_room(9).unwrap();
    let refused = db
        .away(async || {
            node.writing(async |writer| {
                let sent = messages::send(&node.cx, &writer, &ann, text("Hello"), None);
                writer.try_send(Command::Progress(news, reply)).unwrap();
                let claim = Claim { carrier: node.carrier, room, reply: claimed };
                writer.try_send(Command::Claim(claim)).unwrap();
                tokio::join!(sent, answer, found)
            })
            .await
        })
        .await;
    let (sent, told, found) = refused;
    assert!(is_overloaded(&sent), "{sent:?}");
    assert!(matches!(found.unwrap(), Err(Error::Unavailable(_))));
    let Err((Error::Unavailable(_), news)) = told.unwrap() else { panic!("it was not refused") };
    assert_eq!(news.settlements[0].lease.message, id);
    assert_eq!(node.desk.places(), places, "nobody sits at a place for nothing");
    // The database is back: what was handed back is still true, and nothing else had happened.
    assert_eq!(node.balance(&ann).await, (9_900, 100));
    node.tell(news).await;
    assert_eq!(node.status(&ann, id).await, Status::Sent);
    node.send(&ann, text("Hello")).await;
    node.check().await;
}

async fn a_caller_that_goes_away_cancels_nothing(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.writing(async |writer| {
        let send = messages::send(&node.cx, &writer, &ann, text("Hello"), None);
        tokio::select! {
            biased;
            _ = send => panic!("nobody has written yet"),
            () = std::future::ready(()) => {}
        }
    })
    .await;
    assert_eq!(node.balance(&ann).await, (9_900, 100));
    node.desk.set_bound(true);
    assert_eq!(node.claim().await.len(), 1);
    node.check().await;
}

async fn more_than_one_batch_is_written(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000_000).await;
    let all = (0..1_300).map(|_| (text("Hello"), None)).collect();
    let sent = node.send_all(&ann, all).await;
    assert_eq!(sent.iter().filter(|s| s.is_ok()).count(), 1_300);
    assert_eq!(node.balance(&ann).await, (870_000, 130_000));
    node.check().await;
}
