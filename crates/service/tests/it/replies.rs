//! Replies: what people send is put together, finds its account, and is told.

use crate::courier::{Courier, OK, endpoint, events, rows};
use crate::node::{ANN, Node, text};
use crate::people::{NUMBER, has_number, hear, inbox, news, part, says, texts};
use crate::support::{TestDb, on_both_engines};
use heliograph_domain::account::Mode;
use heliograph_domain::event::Content;
use heliograph_domain::inbound::{Incoming, Keyword};
use heliograph_service::caller::Caller;
use heliograph_service::messages::Send;
use heliograph_service::writer::Command;
use heliograph_service::{janitor, nodes, replies};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

on_both_engines!(replies:
    a_reply_finds_its_account_and_is_told,
    parts_may_come_in_any_order_and_twice,
    parts_of_one_batch_are_put_together,
    a_part_that_is_missing_for_a_day_is_not_waited_for,
    parts_that_come_after_all_are_told_once,
    a_reference_that_is_used_again_names_another_message,
    a_reference_that_is_used_again_ends_what_never_became_whole,
    a_reply_names_the_message_that_it_answers,
    what_nobody_has_is_kept_for_who_gets_the_number,
    a_label_leads_to_a_test_account,
    what_is_undone_was_never_heard,
    parts_are_forgotten_in_the_end,
);

const DAY: Duration = Duration::from_secs(24 * 3_600);

async fn start(db: &TestDb) -> (Node, Arc<Caller>, Courier) {
    let node = Node::start(db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    has_number(&node, "ann@example.com").await;
    let courier = Courier::open(&node, endpoint(&node, &ann).await).await;
    (node, ann, courier)
}

fn whole(all: &[(&str, bool)]) -> Vec<(String, bool)> {
    all.iter().map(|(text, complete)| ((*text).to_owned(), *complete)).collect()
}

async fn finish(node: &Node) {
    node.writing(async |writer| janitor::finish_inbound(&node.cx, &writer).await).await.unwrap();
}

async fn a_reply_finds_its_account_and_is_told(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    assert_eq!(hear(&node, vec![says("Grüße 👋")]).await, []);
    let kept = inbox(&node, &ann).await.pop().unwrap();
    assert_eq!((kept.from, kept.to.as_str()), (ANN.to_string(), NUMBER));
    assert_eq!((kept.text.as_str(), kept.keyword, kept.complete), ("Grüße 👋", None, true));
    assert_eq!((kept.received_at, kept.in_reply_to), (node.cx.db.now(), None));
    let parcels = courier.arrived();
    let Content::Received(told) = &parcels[0].event.content else { panic!("{parcels:?}") };
    assert_eq!(told.id, kept.id);
    // What is claimed later tells the same.
    let body = parcels[0].event.render();
    drop(parcels);
    db.clock.advance(Duration::from_secs(61));
    let again = courier.collect(&node).await;
    assert_eq!((again.len(), again[0].event.render()), (1, body));
    courier.answer(&node, again, OK).await;
}

async fn parts_may_come_in_any_order_and_twice(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    for (n, text) in [(3, "c"), (1, "a"), (3, "c"), (1, "a")] {
        hear(&node, vec![part((7, 3, n), text)]).await;
        assert_eq!(texts(&node, &ann).await, []);
    }
    for _ in 0..2 {
        hear(&node, vec![part((7, 3, 2), "b")]).await;
        hear(&node, vec![part((7, 3, 1), "a")]).await;
        assert_eq!(texts(&node, &ann).await, whole(&[("abc", true)]));
    }
    assert_eq!((courier.arrived().len(), rows(&db, "events").await), (1, 1));
    finish(&node).await;
    assert_eq!(texts(&node, &ann).await.len(), 1);
}

async fn parts_of_one_batch_are_put_together(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    let one = [2, 1, 2].map(|n| part((7, 2, n), &n.to_string()));
    let two = [1, 2].map(|n| part((8, 2, n), &(n + 4).to_string()));
    hear(&node, one.into_iter().chain(two).chain([says("x")]).collect()).await;
    let mut all = texts(&node, &ann).await;
    all.sort();
    assert_eq!(all, whole(&[("12", true), ("56", true), ("x", true)]));
    assert_eq!(courier.arrived().len(), 3);
}

async fn a_part_that_is_missing_for_a_day_is_not_waited_for(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    hear(&node, vec![part((7, 3, 3), "c"), part((7, 3, 1), "a")]).await;
    db.clock.advance(DAY);
    finish(&node).await;
    assert_eq!(texts(&node, &ann).await, [], "just so old");
    db.clock.advance(Duration::from_millis(1));
    for _ in 0..2 {
        finish(&node).await;
        assert_eq!(texts(&node, &ann).await, whole(&[("ac", false)]));
    }
    assert_eq!(events(&courier.arrived()).len(), 1);
}

async fn parts_that_come_after_all_are_told_once(db: TestDb) {
    let (node, ann, _) = start(&db).await;
    hear(&node, vec![part((7, 2, 1), "a")]).await;
    db.clock.advance(DAY + Duration::from_millis(1));
    finish(&node).await;
    for _ in 0..2 {
        hear(&node, vec![part((7, 2, 2), "b")]).await;
        finish(&node).await;
        assert_eq!(texts(&node, &ann).await, whole(&[("a", false), ("b", false)]));
    }
}

async fn a_reference_that_is_used_again_names_another_message(db: TestDb) {
    let (node, ann, _) = start(&db).await;
    for text in ["ab", "cd", "ef"] {
        for (n, text) in [(1, &text[..1]), (2, &text[1..])] {
            hear(&node, vec![part((7, 2, n), text)]).await;
        }
    }
    let expected = whole(&[("ab", true), ("cd", true), ("ef", true)]);
    assert_eq!(texts(&node, &ann).await, expected);
}

async fn a_reference_that_is_used_again_ends_what_never_became_whole(db: TestDb) {
    let (node, ann, _) = start(&db).await;
    hear(&node, vec![part((7, 3, 1), "a"), part((7, 3, 2), "b")]).await;
    hear(&node, vec![part((7, 3, 1), "x")]).await;
    assert_eq!(texts(&node, &ann).await, whole(&[("ab", false)]));
    hear(&node, vec![part((7, 3, 2), "y"), part((7, 3, 3), "z")]).await;
    assert_eq!(texts(&node, &ann).await, whole(&[("ab", false), ("xyz", true)]));
}

async fn a_reply_names_the_message_that_it_answers(db: TestDb) {
    let (node, ann, _) = start(&db).await;
    let from = |text_: &str| Send { originator: NUMBER.parse().unwrap(), ..text(text_) };
    node.send(&ann, from("first")).await;
    let last = node.send(&ann, from("last")).await;
    node.send(&ann, text("from a name")).await;
    let test = node.key(ann.account, Mode::Test).await;
    node.send(&test, from("not real")).await;
    hear(&node, vec![says("Why?")]).await;
    let strange = Incoming { from: "6598234567".to_owned(), ..says("Who?") };
    let named = Incoming { from: "Bank".to_owned(), ..says("We") };
    hear(&node, vec![strange, named]).await;
    let answered: Vec<_> = inbox(&node, &ann).await.into_iter().map(|m| m.in_reply_to).collect();
    assert_eq!(answered, [Some(last), None, None]);
}

async fn what_nobody_has_is_kept_for_who_gets_the_number(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    hear(&node, vec![says("Hello?"), Incoming { to: "12345".to_owned(), ..says("Hi") }]).await;
    assert_eq!(texts(&node, &ann).await, []);
    has_number(&node, "ann@example.com").await;
    assert_eq!(texts(&node, &ann).await, whole(&[("Hello?", true)]));
    // Another node had looked for the owner before it was there.
    db.behind("UPDATE inbound_messages SET account = 0").await;
    has_number(&node, "ann@example.com").await;
    assert_eq!(texts(&node, &ann).await, whole(&[("Hello?", true)]));
    let nobody = [(NUMBER.to_owned(), "nobody@example.com".to_owned())];
    assert!(nodes::assign_numbers(&node.cx, &nobody).await.is_err());
}

async fn a_label_leads_to_a_test_account(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    let bob = node.account("bob@example.com", 1_000).await;
    let label = Some(replies::label(bob.account, Mode::Test));
    let labelled = |n, text| Incoming { label, ..part((7, 2, n), text) };
    hear(&node, vec![Incoming { label, ..says("STOP") }]).await;
    hear(&node, vec![labelled(2, "b"), labelled(1, "a")]).await;
    let test = node.key(bob.account, Mode::Test).await;
    let all = inbox(&node, &test).await;
    assert_eq!(all.iter().map(|m| m.text.as_str()).collect::<Vec<_>>(), ["STOP", "ab"]);
    assert_eq!(all[0].keyword, Some(Keyword::Stop));
    assert_eq!((texts(&node, &ann).await, texts(&node, &bob).await), (vec![], vec![]));
    assert_eq!(courier.arrived().len(), 0);
}

async fn what_is_undone_was_never_heard(db: TestDb) {
    let (node, ann, courier) = start(&db).await;
    db.behind("ALTER TABLE inbound_messages RENAME TO elsewhere").await;
    let (reply, mut answer) = oneshot::channel();
    let told = news(&node, vec![part((7, 2, 1), "a"), part((7, 2, 2), "b"), says("STOP")]);
    node.write(vec![Command::Progress(told, reply)]).await;
    let (_, told) = answer.try_recv().unwrap().unwrap_err();
    db.behind("ALTER TABLE elsewhere RENAME TO inbound_messages").await;
    for table in ["inbound_parts", "inbound_messages", "events", "deliveries", "optouts"] {
        assert_eq!(rows(&db, table).await, 0, "{table}");
    }
    assert_eq!(courier.arrived().len(), 0);
    node.tell(told).await;
    assert_eq!(texts(&node, &ann).await, whole(&[("ab", true), ("STOP", true)]));
    assert_eq!((courier.arrived().len(), rows(&db, "optouts").await), (2, 1));
}

async fn parts_are_forgotten_in_the_end(db: TestDb) {
    let (node, _, _) = start(&db).await;
    hear(&node, vec![part((7, 2, 1), "a"), part((7, 2, 2), "b"), part((8, 2, 1), "a")]).await;
    for (later, left) in [(DAY, 3), (Duration::from_millis(1), 1)] {
        db.clock.advance(later);
        janitor::sweep(&node.cx).await.unwrap();
        assert_eq!(rows(&db, "inbound_parts").await, left);
    }
    finish(&node).await;
    janitor::sweep(&node.cx).await.unwrap();
    assert_eq!(rows(&db, "inbound_parts").await, 0);
}
