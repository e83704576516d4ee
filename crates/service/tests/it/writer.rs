//! The writer (group commit): one batch is one transaction, a failing command fails alone, and
//! nothing is lost while the database is unavailable.

use crate::node::{Node, accepted, is_overloaded, outcome, text};
use heliograph_domain::message::MessageStatus;
use heliograph_service::kernel::commands::accept::{Accept, AcceptOutcome};
use heliograph_service::kernel::commands::claim::ClaimMessages;
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::progress::{Progress, RecordProgress};
use heliograph_service::kernel::commands::renew::Renew;
use heliograph_service::messaging::messages;
use heliograph_store::StoreError;
use heliograph_testing::TestDb;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Makes every settlement of this account fail with a negative reservation.
fn poison(account: heliograph_domain::id::AccountId, by: i64) -> String {
    format!("UPDATE accounts SET reserved = reserved - {by} WHERE id = {account}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_command_does_not_fail_its_batch() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    let bob = node.account("bob@example.com", 10_000).await;
    node.open_queue().await;
    let mut all = Vec::new();
    for i in 0..9 {
        let caller = if i == 5 { &bob } else { &ann };
        all.push((caller, node.send(caller, text("Hello")).await));
    }
    let held = node.arrived();
    db.execute_raw(&poison(bob.account, 100)).await;
    let mut batch = Vec::new();
    let mut answers = Vec::new();
    for (i, held) in held.iter().enumerate() {
        let settlements = vec![outcome(held, accepted(&i.to_string()))];
        let (reply, answer) = oneshot::channel();
        let progress = Progress { settlements, ..Progress::default() };
        batch.push(Command::RecordProgress(RecordProgress { progress, reply }));
        answers.push(answer);
    }
    node.write(batch).await;
    for (i, mut answer) in answers.into_iter().enumerate() {
        match answer.try_recv().unwrap() {
            Ok(_) => assert_ne!(i, 5),
            Err((error, progress)) => {
                assert!(i == 5 && matches!(error, StoreError::Db(_)), "{i}: {error}");
                assert_eq!(
                    progress.settlements[0].lease.message, all[5].1,
                    "the progress must be returned unchanged"
                );
                db.execute_raw(&poison(bob.account, -100)).await;
                node.commit_progress(progress).await;
            }
        }
    }
    for (caller, id) in all {
        assert_eq!(node.status(caller, id).await, MessageStatus::Sent);
    }
    node.check().await;
}

/// One command of each kind, as left after bisecting a batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_command_is_isolated_from_a_command_of_another_kind() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    let bob = node.account("bob@example.com", 10_000).await;
    node.open_queue().await;
    node.send(&bob, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    let waiting = node.send_all(&ann, vec![(text("Hello"), None)]).await.pop().unwrap();
    drop(node.arrived());
    db.execute_raw(&poison(bob.account, 100)).await;
    let (id, accepted_at) = node.cx.next_id();
    let id = heliograph_domain::id::MessageId(id);
    let message = (*waiting.unwrap().message).clone();
    let message = heliograph_domain::message::Message { id, accepted_at, ..message };
    let (reply, mut answer) = oneshot::channel();
    let accept = Accept { message: Arc::new(message), idempotency: None, reply };
    let settlements = vec![outcome(&held, accepted("a"))];
    let (reply, mut settled) = oneshot::channel();
    let progress = Progress { settlements, ..Progress::default() };
    let (claimed, mut found) = oneshot::channel();
    let room = node.dispatch_queue.reserve_up_to(9).unwrap();
    let (renewed, mut kept) = oneshot::channel();
    node.write(vec![
        Command::Accept(accept),
        Command::RecordProgress(RecordProgress { progress, reply }),
        Command::ClaimMessages(ClaimMessages { carrier: node.carrier, room, reply: claimed }),
        Command::Renew(Renew { leases: vec![held.leased.lease.clone()], reply: renewed }),
    ])
    .await;
    assert_eq!(answer.try_recv().unwrap().unwrap(), AcceptOutcome::Done);
    assert!(matches!(settled.try_recv().unwrap(), Err((StoreError::Db(_), _))));
    assert!(found.try_recv().unwrap().is_ok());
    kept.try_recv().unwrap().unwrap();
    assert_eq!(node.status(&ann, id).await, MessageStatus::Queued);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unavailable_database_loses_nothing() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open_queue().await;
    let id = node.send(&ann, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    let slots = node.dispatch_queue.free_slots();
    let (reply, answer) = oneshot::channel();
    let settlements = vec![outcome(&held, accepted("a"))];
    let progress = Progress { settlements, ..Progress::default() };
    let (claimed, found) = oneshot::channel();
    let room = node.dispatch_queue.reserve_up_to(9).unwrap();
    let refused = db
        .while_unavailable(async || {
            node.writing(async |writer| {
                let sent = messages::send(&node.cx, &writer, &ann, text("Hello"), None);
                writer
                    .try_send(Command::RecordProgress(RecordProgress { progress, reply }))
                    .unwrap();
                let claim = ClaimMessages { carrier: node.carrier, room, reply: claimed };
                writer.try_send(Command::ClaimMessages(claim)).unwrap();
                tokio::join!(sent, answer, found)
            })
            .await
        })
        .await;
    let (sent, reported, found) = refused;
    assert!(is_overloaded(&sent), "{sent:?}");
    assert!(matches!(found.unwrap(), Err(StoreError::Unavailable(_))));
    let Err((StoreError::Unavailable(_), progress)) = reported.unwrap() else {
        panic!("the progress was not returned")
    };
    assert_eq!(progress.settlements[0].lease.message, id);
    assert_eq!(node.dispatch_queue.free_slots(), slots, "no slot stays occupied");
    // The database is back: the returned progress is still valid, and nothing else was committed.
    assert_eq!(node.balance(&ann).await, (9_900, 100));
    node.commit_progress(progress).await;
    assert_eq!(node.status(&ann, id).await, MessageStatus::Sent);
    node.send(&ann, text("Hello")).await;
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_request_does_not_cancel_its_command() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.writing(async |writer| {
        let send = messages::send(&node.cx, &writer, &ann, text("Hello"), None);
        tokio::select! {
            biased;
            _ = send => panic!("the send returned before the commit"),
            () = std::future::ready(()) => {}
        }
    })
    .await;
    assert_eq!(node.balance(&ann).await, (9_900, 100));
    node.dispatch_queue.set_available(true);
    assert_eq!(node.claim().await.len(), 1);
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_beyond_one_batch_are_written() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000_000).await;
    let all = (0..1_300).map(|_| (text("Hello"), None)).collect();
    let sent = node.send_all(&ann, all).await;
    assert_eq!(sent.iter().filter(|s| s.is_ok()).count(), 1_300);
    assert_eq!(node.balance(&ann).await, (870_000, 130_000));
    node.check().await;
}

/// The writer as other crates use it in their tests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_writer_runs_until_it_is_dropped() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000_000).await;
    let cx = heliograph_testing::context(&db).await;
    let running = heliograph_testing::writer(&cx);
    let writer = running.writer.clone();
    let sent = messages::send(&cx, &writer, &ann, text("Hello"), None).await.unwrap();
    assert_eq!(node.status(&ann, sent.message.id).await, MessageStatus::Queued);
    drop(running);
    // The writer may finish the command at hand before it ends.
    let refused = loop {
        match messages::send(&cx, &writer, &ann, text("Hello"), None).await {
            Ok(_) => {}
            Err(e) => break e,
        }
    };
    assert!(!matches!(refused, heliograph_service::kernel::error::Error::InsufficientBalance));
    node.check().await;
}
