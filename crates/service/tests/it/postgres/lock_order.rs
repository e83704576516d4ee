//! Lock order: batches of two nodes on one PostgreSQL lock the same rows without a deadlock.

use crate::endpoint_worker::{
    EndpointWorker, GONE, endpoint, http_result, rows, send_delivered, waiting,
};
use crate::inbound;
use crate::node::{Node, accepted, outcome, text};
use heliograph_domain::id::MessageId;
use heliograph_domain::message::Message;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::commands::accept::Accept;
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::progress::{Progress, RecordProgress};
use heliograph_service::kernel::commands::report_deliveries::ReportDeliveries;
use heliograph_service::operations::maintenance;
use heliograph_testing::TestDb;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_postgres::{Client, NoTls};

/// The backends of this database that wait for a lock; its other backends; its deadlocks.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'";
const OTHERS: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()";
const DEADLOCKS: &str = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";

async fn until(client: &Client, question: &str, answer: i64) {
    while client.query_one(question, &[]).await.unwrap().get::<_, i64>(0) != answer {}
}

/// Makes two nodes write at the same time: holds locks on all the rows in `wanted` until both wait.
async fn write_concurrently(
    db: &TestDb,
    wanted: &str,
    one: (&Node, Vec<Command>),
    two: (&Node, Vec<Command>),
) {
    let (holder, held) = tokio_postgres::connect(&db.url, NoTls).await.unwrap();
    let (onlooker, seen) = tokio_postgres::connect(&db.url, NoTls).await.unwrap();
    let start = async {
        holder.batch_execute(&format!("BEGIN; SELECT 1 FROM {wanted} FOR UPDATE")).await.unwrap();
        let release = async {
            until(&onlooker, WAITING, 2).await;
            holder.batch_execute("COMMIT").await.unwrap();
            drop(holder);
        };
        tokio::join!(release, one.0.write(one.1), two.0.write(two.1));
        drop(onlooker);
    };
    let (_, _, ()) = tokio::join!(held, seen, start);
}

/// Asserts that no deadlock was counted. A backend reports its counters at the latest when it ends.
async fn no_deadlock(db: TestDb, nodes: [Node; 2]) {
    let (onlooker, seen) = tokio_postgres::connect(&db.url, NoTls).await.unwrap();
    drop((nodes, db.db));
    let look = async {
        until(&onlooker, OTHERS, 0).await;
        let counted = onlooker.query_one(DEADLOCKS, &[]).await.unwrap();
        assert_eq!(counted.get::<_, i64>(0), 0);
        drop(onlooker);
    };
    let (_, ()) = tokio::join!(seen, look);
}

/// Each node delivers one event and gets 410 Gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_disable_the_same_endpoint_do_not_deadlock() {
    let db = TestDb::postgres().await;
    let here = Node::with(&db, db.reopen().await, 1, 32).await;
    let there = Node::with(&db, db.reopen().await, 2, 32).await;
    let ann = here.account("ann@example.com", 1_000).await;
    let id = endpoint(&here, &ann).await;
    let mut batches = Vec::new();
    for node in [&here, &there] {
        node.open_queue().await;
        let worker = EndpointWorker::idle(node, id);
        send_delivered(node, &ann).await;
        let deliveries = worker.claim(node).await;
        let all: Vec<_> = deliveries.into_iter().map(|p| (http_result(&p, GONE), p)).collect();
        assert_eq!(all.len(), 1);
        let report = worker.delivery_report(node, &all);
        batches.push(vec![Command::ReportDeliveries(ReportDeliveries {
            report,
            reply: oneshot::channel().0,
        })]);
    }
    let (two, one) = (batches.pop().unwrap(), batches.pop().unwrap());
    write_concurrently(&db, "endpoints", (&here, one), (&there, two)).await;
    assert_eq!((waiting(&here, id).await, rows(&db, "attempts").await), (0, 2));
    no_deadlock(db, [here, there]).await;
}

/// Neither node sees the part of the other. The maintenance of both finds the complete message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_arriving_at_two_nodes_are_joined_once() {
    let db = TestDb::postgres().await;
    let here = Node::with(&db, db.reopen().await, 1, 32).await;
    let there = Node::with(&db, db.reopen().await, 2, 32).await;
    let ann = here.account("ann@example.com", 1_000).await;
    let bob = here.account("bob@example.com", 1_000).await;
    inbound::assign_number(&here, "ann@example.com").await;
    let mut one = capture_and_reserve(&here, &ann, &bob).await;
    let mut two = capture_and_reserve(&there, &bob, &ann).await;
    for (n, (batch, text)) in (1..).zip([(&mut one, "a"), (&mut two, "b")]) {
        let came = inbound::inbound_progress(&here, vec![inbound::part((7, 2, n), text)]);
        batch.push(Command::RecordProgress(RecordProgress {
            progress: came,
            reply: oneshot::channel().0,
        }));
    }
    write_concurrently(&db, "accounts", (&here, one), (&there, two)).await;
    assert_eq!(inbound::texts(&here, &ann).await, []);
    let finish = async |node: &Node| {
        node.writing(async |writer| maintenance::finish_inbound(&node.cx, &writer).await).await
    };
    let (one, two) = tokio::join!(finish(&here), finish(&there));
    assert!(one.is_ok() && two.is_ok());
    assert_eq!(inbound::texts(&here, &ann).await, [("ab".to_owned(), true)]);
    inbound::receive(&there, vec![inbound::part((7, 2, 1), "a")]).await;
    assert_eq!(inbound::texts(&here, &ann).await.len(), 1);
    no_deadlock(db, [here, there]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_lock_two_accounts_do_not_deadlock() {
    let db = TestDb::postgres().await;
    let here = Node::with(&db, db.reopen().await, 1, 32).await;
    let there = Node::with(&db, db.reopen().await, 2, 32).await;
    let ann = here.account("ann@example.com", 1_000).await;
    let bob = here.account("bob@example.com", 1_000).await;
    let batches = (
        capture_and_reserve(&here, &ann, &bob).await,
        capture_and_reserve(&there, &bob, &ann).await,
    );
    write_concurrently(&db, "accounts", (&here, batches.0), (&there, batches.1)).await;
    assert_eq!(here.balance(&ann).await, (800, 100));
    assert_eq!(here.balance(&bob).await, (800, 100));
    here.check().await;
    no_deadlock(db, [here, there]).await;
}

/// Returns a batch that captures money of one account and reserves money of another.
async fn capture_and_reserve(node: &Node, paying: &Caller, reserving: &Caller) -> Vec<Command> {
    node.open_queue().await;
    node.send(paying, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    let (id, accepted_at) = node.cx.next_id();
    let message = Message {
        id: MessageId(id),
        accepted_at,
        account: reserving.account,
        api_key: reserving.key,
        ..(*held.leased.message).clone()
    };
    let accept =
        Accept { message: Arc::new(message), idempotency: None, reply: oneshot::channel().0 };
    let settlements = vec![outcome(&held, accepted(&id.to_string()))];
    let progress = Progress { settlements, ..Progress::default() };
    vec![
        Command::Accept(accept),
        Command::RecordProgress(RecordProgress { progress, reply: oneshot::channel().0 }),
    ]
}
