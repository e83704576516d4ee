//! The operator's view of carriers: link status by node, and queued messages.

use crate::node::{Node, text};
use heliograph_domain::carrier::BindStatus;
use heliograph_service::operations::carriers::{self, CarrierLink, CarrierStatus};
use heliograph_service::operations::maintenance;
use heliograph_testing::TestDb;
use std::time::Duration;

fn status(node: &Node) -> BindStatus {
    let last_error = Some(("bind lost: the SMSC unbound".to_owned(), node.cx.db.now()));
    let carrier = node.carrier;
    let (binds, bound, window, unanswered) = (1, 1, 10, 3);
    BindStatus { carrier, binds, bound, window, unanswered, throttled: true, last_error }
}

/// Returns the links to the only carrier of the tests.
async fn links(node: &Node) -> Vec<CarrierLink> {
    let all = carriers::all(&node.cx).await.unwrap();
    let names: Vec<_> = all.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["acme", "simulated"]);
    let CarrierStatus { id, links, .. } = all.into_iter().next().unwrap();
    assert_eq!(id, node.carrier);
    links
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashed_node_is_shown_for_a_day() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    assert_eq!(links(&node).await, []);
    let status = status(&node);
    carriers::save_status(&node.cx, std::slice::from_ref(&status)).await.unwrap();
    let seen = links(&node).await.pop().unwrap();
    assert_eq!((seen.node, seen.status, seen.stale), (node.cx.node, status.clone(), false));
    db.clock.advance(Duration::from_secs(61));
    assert!(links(&node).await[0].stale);
    let again = BindStatus { bound: 0, throttled: false, last_error: None, ..status };
    carriers::save_status(&node.cx, std::slice::from_ref(&again)).await.unwrap();
    let seen = links(&node).await.pop().unwrap();
    assert_eq!((seen.status, seen.stale), (again, false));
    for (hours, left) in [(23, 1), (2, 0)] {
        db.clock.advance(Duration::from_secs(hours * 3_600));
        maintenance::delete_outdated(&node.cx).await.unwrap();
        assert_eq!(links(&node).await.len(), left);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_node_removes_its_link_status() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let other = Node::with(&db, db.db.clone(), 2, 32).await;
    for node in [&node, &other] {
        carriers::save_status(&node.cx, &[status(node)]).await.unwrap();
    }
    assert_eq!(links(&node).await.len(), 2);
    carriers::clear_status(&other.cx).await.unwrap();
    assert_eq!(links(&node).await.iter().map(|l| l.node).collect::<Vec<_>>(), [node.cx.node]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_messages_are_counted_by_carrier() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let since = node.cx.db.now();
    for _ in 0..3 {
        node.send(&ann, text("Hello")).await;
    }
    let queues = carriers::queues(&node.cx).await.unwrap();
    let named = |name: &str| queues.iter().find(|(n, ..)| n == name).unwrap().2;
    assert_eq!((named("acme").due, named("acme").later), (3, 0));
    assert!(named("acme").oldest.unwrap() >= since);
    assert_eq!((named("simulated").due, named("simulated").oldest), (0, None));
    let (lane, now) = (heliograph_domain::lease::Lane::SINGLE, node.cx.db.now());
    let mut conn = node.cx.db.read().await.unwrap();
    let wanted = (node.carrier, lane);
    let few = heliograph_store::messaging::queue::backlog(&mut conn, wanted, now, 2).await.unwrap();
    assert_eq!((few.due, few.oldest), (2, named("acme").oldest), "the count stops at the limit");
}
