//! Carriers as an operator sees them: who serves them, and what waits.

use crate::node::{Node, text};
use crate::support::{TestDb, on_both_engines};
use heliograph_domain::carrier::BindStatus;
use heliograph_service::carriers::{self, Carrier, Line};
use heliograph_service::janitor;
use std::time::Duration;

on_both_engines!(carriers:
    a_node_that_went_without_a_word_is_shown_for_a_day,
    a_node_that_leaves_takes_its_lines_away,
    what_waits_is_counted_by_carrier,
);

fn status(node: &Node) -> BindStatus {
    let last_error = Some(("bind lost: the SMSC unbound".to_owned(), node.cx.db.now()));
    let carrier = node.carrier;
    let (binds, bound, window, unanswered) = (1, 1, 10, 3);
    BindStatus { carrier, binds, bound, window, unanswered, throttled: true, last_error }
}

/// The lines to the one carrier that the tests have.
async fn lines(node: &Node) -> Vec<Line> {
    let all = carriers::all(&node.cx).await.unwrap();
    let names: Vec<_> = all.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["acme", "simulated"]);
    let Carrier { id, lines, .. } = all.into_iter().next().unwrap();
    assert_eq!(id, node.carrier);
    lines
}

async fn a_node_that_went_without_a_word_is_shown_for_a_day(db: TestDb) {
    let node = Node::start(&db).await;
    assert_eq!(lines(&node).await, []);
    let status = status(&node);
    carriers::report(&node.cx, std::slice::from_ref(&status)).await.unwrap();
    let seen = lines(&node).await.pop().unwrap();
    assert_eq!((seen.node, seen.status, seen.gone), (node.cx.node, status.clone(), false));
    db.clock.advance(Duration::from_secs(61));
    assert!(lines(&node).await[0].gone);
    let again = BindStatus { bound: 0, throttled: false, last_error: None, ..status };
    carriers::report(&node.cx, std::slice::from_ref(&again)).await.unwrap();
    let seen = lines(&node).await.pop().unwrap();
    assert_eq!((seen.status, seen.gone), (again, false));
    for (hours, left) in [(23, 1), (2, 0)] {
        db.clock.advance(Duration::from_secs(hours * 3_600));
        janitor::sweep(&node.cx).await.unwrap();
        assert_eq!(lines(&node).await.len(), left);
    }
}

async fn a_node_that_leaves_takes_its_lines_away(db: TestDb) {
    let node = Node::start(&db).await;
    let other = Node::with(&db, db.db.clone(), (2, 32)).await;
    for node in [&node, &other] {
        carriers::report(&node.cx, &[status(node)]).await.unwrap();
    }
    assert_eq!(lines(&node).await.len(), 2);
    carriers::leave(&other.cx).await.unwrap();
    assert_eq!(lines(&node).await.iter().map(|l| l.node).collect::<Vec<_>>(), [node.cx.node]);
}

async fn what_waits_is_counted_by_carrier(db: TestDb) {
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
    let few = heliograph_store::queue::waiting(&mut conn, wanted, now, 2).await.unwrap();
    assert_eq!((few.due, few.oldest), (2, named("acme").oldest), "no more than asked for");
}
