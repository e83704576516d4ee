//! Two nodes on one PostgreSQL whose batches want the same rows: they wait in a line, never in a
//! circle.

use crate::courier::{Courier, GONE, ended, endpoint, rows, says, waiting};
use crate::node::{Node, accepted, outcome, text};
use crate::people;
use crate::support::{TestDb, on_postgres};
use heliograph_domain::id::MessageId;
use heliograph_domain::message::Message;
use heliograph_service::caller::Caller;
use heliograph_service::janitor;
use heliograph_service::writer::{Accept, Command, Progress};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_postgres::{Client, NoTls};

/// Backends of this database that wait for a lock; its backends but the one that asks; deadlocks.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'";
const OTHERS: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()";
const DEADLOCKS: &str = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";

async fn until(client: &Client, question: &str, answer: i64) {
    while client.query_one(question, &[]).await.unwrap().get::<_, i64>(0) != answer {}
}

/// Lets two nodes write at the same instant: when somebody lets go of all the rows that they want. Nobody waited
/// in a circle.
async fn at_once(
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

/// A backend has told all that it counted when it is gone.
async fn no_deadlock(db: TestDb, nodes: [Node; 2]) {
    let (onlooker, seen) = tokio_postgres::connect(&db.url, NoTls).await.unwrap();
    drop((nodes, db));
    let look = async {
        until(&onlooker, OTHERS, 0).await;
        let counted = onlooker.query_one(DEADLOCKS, &[]).await.unwrap();
        assert_eq!(counted.get::<_, i64>(0), 0);
        drop(onlooker);
    };
    let (_, ()) = tokio::join!(seen, look);
}

/// Each has told a part of what happened, and hears that the endpoint is gone.
#[test]
fn nodes_that_switch_off_the_same_endpoint_wait_in_a_line() {
    on_postgres(async |db: TestDb| {
        let here = Node::with(&db, db.again().await, (1, 32)).await;
        let there = Node::with(&db, db.again().await, (2, 32)).await;
        let ann = here.account("ann@example.com", 1_000).await;
        let id = endpoint(&here, &ann).await;
        let mut batches = Vec::new();
        for node in [&here, &there] {
            node.open().await;
            let courier = Courier::idle(node, id);
            ended(node, &ann).await;
            let parcels = courier.collect(node).await;
            let all: Vec<_> = parcels.into_iter().map(|p| (says(&p, GONE), p)).collect();
            assert_eq!(all.len(), 1);
            let report = courier.told(node, &all);
            batches.push(vec![Command::Report(report, oneshot::channel().0)]);
        }
        let (two, one) = (batches.pop().unwrap(), batches.pop().unwrap());
        at_once(&db, "endpoints", (&here, one), (&there, two)).await;
        assert_eq!((waiting(&here, id).await, rows(&db, "attempts").await), (0, 2));
        no_deadlock(db, [here, there]).await;
    });
}

/// Neither sees the part that the other one brings. The janitors of both find that all have come.
#[test]
fn parts_that_come_over_two_nodes_at_once_are_put_together_once() {
    on_postgres(async |db: TestDb| {
        let here = Node::with(&db, db.again().await, (1, 32)).await;
        let there = Node::with(&db, db.again().await, (2, 32)).await;
        let ann = here.account("ann@example.com", 1_000).await;
        let bob = here.account("bob@example.com", 1_000).await;
        people::has_number(&here, "ann@example.com").await;
        let mut one = crossing(&here, &ann, &bob).await;
        let mut two = crossing(&there, &bob, &ann).await;
        for (n, (batch, text)) in (1..).zip([(&mut one, "a"), (&mut two, "b")]) {
            let came = people::news(&here, vec![people::part((7, 2, n), text)]);
            batch.push(Command::Progress(came, oneshot::channel().0));
        }
        at_once(&db, "accounts", (&here, one), (&there, two)).await;
        assert_eq!(people::texts(&here, &ann).await, []);
        let finish = async |node: &Node| {
            node.writing(async |writer| janitor::finish_inbound(&node.cx, &writer).await).await
        };
        let (one, two) = tokio::join!(finish(&here), finish(&there));
        assert!(one.is_ok() && two.is_ok());
        assert_eq!(people::texts(&here, &ann).await, [("ab".to_owned(), true)]);
        people::hear(&there, vec![people::part((7, 2, 1), "a")]).await;
        assert_eq!(people::texts(&here, &ann).await.len(), 1);
        no_deadlock(db, [here, there]).await;
    });
}

#[test]
fn nodes_that_pay_for_one_account_and_reserve_for_another_wait_in_a_line() {
    on_postgres(async |db: TestDb| {
        let here = Node::with(&db, db.again().await, (1, 32)).await;
        let there = Node::with(&db, db.again().await, (2, 32)).await;
        let ann = here.account("ann@example.com", 1_000).await;
        let bob = here.account("bob@example.com", 1_000).await;
        let batches = (crossing(&here, &ann, &bob).await, crossing(&there, &bob, &ann).await);
        at_once(&db, "accounts", (&here, batches.0), (&there, batches.1)).await;
        assert_eq!(here.balance(&ann).await, (800, 100));
        assert_eq!(here.balance(&bob).await, (800, 100));
        here.check().await;
        no_deadlock(db, [here, there]).await;
    });
}

/// A batch that moves the money of one account and then reserves some of another.
async fn crossing(node: &Node, paying: &Caller, reserving: &Caller) -> Vec<Command> {
    node.open().await;
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
    let news = Progress { settlements, ..Progress::default() };
    vec![Command::Accept(accept), Command::Progress(news, oneshot::channel().0)]
}
