//! Figures: each thing that happens is counted once, in the transaction that made it so.

use crate::courier::{endpoint, rows};
use crate::node::{Node, PRICE, accepted, delivered, once, outcome, parts, receipt, text};
use crate::people::{has_number, hear, says};
use crate::support::{TestDb, on_both_engines};
use heliograph_domain::account::Mode;
use heliograph_domain::message::{Failure, FailureCode};
use heliograph_domain::money::Amount;
use heliograph_domain::receipt::Verdict;
use heliograph_domain::stats::{begin, hour};
use heliograph_service::caller::Caller;
use heliograph_service::stats::{Figures, Overview, Range, overview};
use heliograph_service::{accounts, janitor, messages};
use std::collections::BTreeMap;
use std::time::Duration;

on_both_engines!(stats:
    what_happens_is_counted_once,
    a_batch_adds_a_handful_of_rows,
    each_account_and_mode_has_its_own,
    the_hours_of_a_day_become_one_slot,
    what_people_send_is_counted,
    days_are_put_together_when_nobody_looks_at_their_hours,
    figures_are_kept_for_a_year_and_a_month,
    first_steps_tick_themselves,
);

async fn look(node: &Node, caller: &Caller) -> Overview {
    overview(&node.cx, caller, Range::Hours24).await.unwrap()
}

fn minutes(n: u64) -> Duration {
    Duration::from_secs(60 * n)
}

async fn what_happens_is_counted_once(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 450).await;
    assert_eq!(look(&node, &ann).await.total, Figures::default());
    node.open().await;
    let called_back = [(parts(2), once("a", 1)), (parts(2), once("a", 1)), (parts(3), None)];
    let done = node.send_all(&ann, called_back.into()).await;
    assert!(done[2].is_err(), "the balance does not cover it");
    let held = node.arrived();
    let outcomes = vec![(1, accepted("1")), (2, accepted("2"))];
    node.settle(vec![heliograph_service::dispatch::judge(&held[0].leased, outcomes)]).await;
    db.clock.advance(Duration::from_secs(9));
    for _ in 0..2 {
        node.hear(vec![delivered("1"), delivered("2")]).await;
    }
    node.send(&ann, text("Hello")).await;
    node.settle(vec![outcome(&node.arrived()[0], accepted("3"))]).await;
    let unreachable = Verdict::Failed(Failure::plain(FailureCode::Unreachable));
    node.hear(vec![receipt("3", &unreachable)]).await;
    node.desk.set_bound(false);
    let waiting = node.send(&ann, text("Never mind")).await;
    node.writing(async |writer| messages::cancel(&node.cx, &writer, &ann, waiting).await)
        .await
        .unwrap();
    let seen = look(&node, &ann).await;
    let expected = Figures {
        accepted: 3,
        sent: 2,
        delivered: 1,
        failed: 1,
        cancelled: 1,
        spent: Amount(3 * PRICE),
        ..Figures::default()
    };
    assert_eq!(seen.total, expected);
    assert_eq!(seen.failures, [(FailureCode::Unreachable, 1)]);
    assert_eq!(seen.total.delivery_rate(), Some(0.5));
    let median = seen.median.unwrap().as_millis();
    assert!((5_120..=10_240).contains(&median), "{median}");
}

async fn a_batch_adds_a_handful_of_rows(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    node.open().await;
    // Should the hour change in between, there is a row of each hour.
    let rows = async || rows(&db, "(SELECT DISTINCT measure FROM stats) AS each").await;
    let all = (0..32).map(|_| (text("Hello"), None)).collect();
    node.send_all(&ann, all).await;
    assert_eq!(rows().await, 1, "accepted");
    let held = node.arrived();
    let settled = (0..).zip(&held).map(|(n, h)| outcome(h, accepted(&format!("{n}"))));
    node.settle(settled.collect()).await;
    assert_eq!(rows().await, 3, "and sent and spent");
    node.hear((0..32).map(|n| delivered(&format!("{n}"))).collect()).await;
    assert_eq!(rows().await, 5, "and delivered, with the time that it took");
    assert_eq!(look(&node, &ann).await.total.delivered, 32);
}

async fn each_account_and_mode_has_its_own(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let bob = node.account("bob@example.com", 1_000).await;
    let testing = node.key(ann.account, Mode::Test).await;
    node.send(&ann, text("Hello")).await;
    node.send(&testing, parts(2)).await;
    node.send(&testing, parts(2)).await;
    for (caller, count) in [(&ann, 1), (&bob, 0), (&testing, 2)] {
        assert_eq!(look(&node, caller).await.total.accepted, count);
    }
}

async fn the_hours_of_a_day_become_one_slot(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    let (mut hours, mut days) = (BTreeMap::new(), BTreeMap::new());
    for pause in [0, 60, 5, 22 * 60] {
        db.clock.advance(minutes(pause));
        node.send(&ann, text("Hello")).await;
        let hour = hour(node.cx.db.now());
        *hours.entry(begin(hour)).or_default() += 1;
        *days.entry(begin(hour - hour % 24)).or_default() += 1;
    }
    for (range, count, expected) in
        [(Range::Hours24, 24, hours), (Range::Days7, 7, days.clone()), (Range::Days90, 90, days)]
    {
        let seen = overview(&node.cx, &ann, range).await.unwrap();
        assert_eq!((seen.slots.len(), seen.total.accepted), (count, 4));
        let some = seen.slots.into_iter().filter(|slot| slot.figures.accepted > 0);
        assert_eq!(
            some.map(|s| (s.begin, s.figures.accepted)).collect::<BTreeMap<_, _>>(),
            expected
        );
    }
    db.clock.advance(minutes(24 * 60));
    assert_eq!(look(&node, &ann).await.total.accepted, 0);
}

async fn what_people_send_is_counted(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 0).await;
    hear(&node, vec![says("To nobody")]).await;
    assert_eq!(rows(&db, "stats").await, 0);
    has_number(&node, "ann@example.com").await;
    hear(&node, vec![says("Hello"), says("STOP"), says("stop")]).await;
    let seen = look(&node, &ann).await.total;
    assert_eq!((seen.inbound, seen.opted_out), (3, 1));
}

async fn days_are_put_together_when_nobody_looks_at_their_hours(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 10_000).await;
    for n in 1..=5 {
        for _ in 0..n {
            node.send(&ann, text("Hello")).await;
        }
        db.clock.advance(minutes(7 * 60));
    }
    let days = async || {
        let seen = overview(&node.cx, &ann, Range::Days7).await.unwrap().slots;
        seen.into_iter().map(|s| (s.begin, s.figures.accepted)).filter(|(_, n)| *n > 0).collect()
    };
    let before: Vec<_> = days().await;
    assert_eq!(rows(&db, "stats").await, 5);
    for _ in 0..2 {
        janitor::sweep(&node.cx).await.unwrap();
        assert_eq!(look(&node, &ann).await.total.accepted, 3 + 4 + 5, "the last day's hours stay");
        assert_eq!(days().await, before);
    }
    db.clock.advance(minutes(2 * 24 * 60));
    for _ in 0..2 {
        janitor::sweep(&node.cx).await.unwrap();
        assert_eq!(rows(&db, "stats").await, before.len() as i64);
        assert_eq!(days().await, before);
    }
}

async fn figures_are_kept_for_a_year_and_a_month(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.send(&ann, text("Hello")).await;
    db.clock.advance(minutes(400 * 24 * 60 - 1));
    janitor::sweep(&node.cx).await.unwrap();
    assert_eq!(rows(&db, "stats").await, 1);
    db.clock.advance(minutes(62));
    janitor::sweep(&node.cx).await.unwrap();
    assert_eq!(rows(&db, "stats").await, 0);
}

async fn first_steps_tick_themselves(db: TestDb) {
    let node = Node::start(&db).await;
    let bob = node.account("bob@example.com", 1_000).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let steps = async || {
        let steps = accounts::first_steps(&node.cx, &ann).await.unwrap();
        (steps.key, steps.message, steps.webhook)
    };
    node.send(&bob, parts(1)).await;
    assert_eq!(steps().await, (true, false, false));
    node.send(&ann, text("Hello")).await;
    assert_eq!(steps().await, (true, true, false));
    endpoint(&node, &ann).await;
    assert_eq!(steps().await, (true, true, true));
}
