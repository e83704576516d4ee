//! Two nodes on one PostgreSQL whose batches want the same rows: they wait in a line, never in a
//! circle.

use crate::node::{Node, accepted, outcome, text};
use crate::support::{TestDb, on_postgres};
use heliograph_domain::id::MessageId;
use heliograph_domain::message::Message;
use heliograph_service::caller::Caller;
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

#[test]
fn nodes_that_pay_for_one_account_and_reserve_for_another_wait_in_a_line() {
    on_postgres(async |db: TestDb| {
        let here = Node::with(&db, db.again().await, (1, 32)).await;
        let there = Node::with(&db, db.again().await, (2, 32)).await;
        let ann = here.account("ann@example.com", 1_000).await;
        let bob = here.account("bob@example.com", 1_000).await;
        let batches = (crossing(&here, &ann, &bob).await, crossing(&there, &bob, &ann).await);
        let (holder, held) = tokio_postgres::connect(&db.url, NoTls).await.unwrap();
        let (onlooker, seen) = tokio_postgres::connect(&db.url, NoTls).await.unwrap();
        // Both begin at the same instant: when somebody lets go of all the rows that they want.
        let start = async {
            holder.batch_execute("BEGIN; SELECT 1 FROM accounts FOR UPDATE").await.unwrap();
            let release = async {
                until(&onlooker, WAITING, 2).await;
                holder.batch_execute("COMMIT").await.unwrap();
                drop(holder);
            };
            tokio::join!(release, here.write(batches.0), there.write(batches.1));
            assert_eq!(here.balance(&ann).await, (800, 100));
            assert_eq!(here.balance(&bob).await, (800, 100));
            here.check().await;
            // A backend has told all that it counted when it is gone.
            drop((here, there, db));
            until(&onlooker, OTHERS, 0).await;
            let counted = onlooker.query_one(DEADLOCKS, &[]).await.unwrap();
            assert_eq!(counted.get::<_, i64>(0), 0);
            drop(onlooker);
        };
        let (_, _, ()) = tokio::join!(held, seen, start);
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
        api_key: Some(reserving.key),
        ..(*held.leased.message).clone()
    };
    let accept =
        Accept { message: Arc::new(message), idempotency: None, reply: oneshot::channel().0 };
    let settlements = vec![outcome(&held, accepted(&id.to_string()))];
    let news = Progress { settlements, ..Progress::default() };
    vec![Command::Accept(accept), Command::Progress(news, oneshot::channel().0)]
}
