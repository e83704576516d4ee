//! Retention of messages: old ones are deleted in steps, and the books still balance.

use crate::endpoint_worker::rows;
use crate::node::{Node, accepted, delivered, outcome, parts, text};
use heliograph_domain::account::Mode;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::context::Settings;
use heliograph_service::operations::check;
use heliograph_service::operations::retention::{self, RetentionCursor};
use heliograph_testing::TestDb;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

const DAY: Duration = Duration::from_secs(86_400);

async fn delete_old(node: &Node) -> usize {
    let (mut cursor, mut steps) = (Some(RetentionCursor::start()), 0);
    while let Some(place) = cursor {
        cursor = retention::delete_messages(&node.cx, place).await.unwrap();
        steps += 1;
    }
    steps
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_messages_that_have_ended_are_deleted() {
    let db = TestDb::new().await;
    let mut node = Node::start(&db).await;
    let settings = Settings {
        test_message_retention: Some(35 * DAY),
        live_message_retention: Some(70 * DAY),
        ..(*node.cx.settings()).clone()
    };
    node.cx.settings = watch::channel(Arc::new(settings)).1;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open_queue().await;
    node.send(&ann, parts(2)).await;
    let sent = node.arrived().pop().unwrap();
    let both = vec![(1, accepted("1")), (2, accepted("2"))];
    let settled = heliograph_service::messaging::dispatch::evaluate_outcomes(&sent.leased, both);
    node.settle(vec![settled]).await;
    node.commit_receipts(vec![delivered("1"), delivered("2")]).await;
    node.send(&ann, text("Still on its way")).await;
    node.settle(vec![outcome(&node.arrived()[0], accepted("3"))]).await;
    let test = Caller { mode: Mode::Test, ..(*ann).clone() };
    node.send(&test, text("Test")).await;
    db.execute_raw("UPDATE messages SET status = 4, done_at = 1 WHERE mode = 1").await;
    db.execute_raw("DELETE FROM queue WHERE id IN (SELECT id FROM messages WHERE mode = 1)").await;
    delete_old(&node).await;
    assert_eq!(rows(&db, "messages").await, 3);
    db.clock.advance(36 * DAY);
    delete_old(&node).await;
    assert_eq!(rows(&db, "messages").await, 2, "live messages are kept longer");
    db.clock.advance(36 * DAY);
    delete_old(&node).await;
    assert_eq!((rows(&db, "messages").await, rows(&db, "parts").await), (1, 0));
    assert_eq!(check::violations(&node.cx).await.unwrap(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_messages_are_deleted_in_steps() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 0).await;
    node.account("bob@example.com", 0).await;
    let test = Caller { mode: Mode::Test, ..(*ann).clone() };
    let all = (0..600).map(|_| (text("Test"), None)).collect();
    assert!(node.send_all(&test, all).await.iter().all(Result::is_ok));
    db.execute_raw("UPDATE messages SET status = 4, done_at = 1").await;
    db.clock.advance(36 * DAY);
    assert_eq!(delete_old(&node).await, 5, "three for Ann, one for Bob, and the end");
    assert_eq!(rows(&db, "messages").await, 0);
}
