//! Inbound messages: joined from parts, assigned to an account, and delivered as events.

use crate::endpoint_worker::{EndpointWorker, OK, endpoint, events, rows};
use crate::inbound::{
    NUMBER, assign_number, inbound_progress, inbox, incoming, part, receive, texts,
};
use crate::node::{ANN, Node, text};
use heliograph_domain::account::Mode;
use heliograph_domain::event::EventContent;
use heliograph_domain::inbound::{IncomingSms, Keyword};
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::progress::RecordProgress;
use heliograph_service::kernel::error::{ConflictReason, Error};
use heliograph_service::messaging::inbound;
use heliograph_service::messaging::messages::SendRequest;
use heliograph_service::operations::maintenance;
use heliograph_service::operations::numbers;
use heliograph_testing::TestDb;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

const DAY: Duration = Duration::from_secs(24 * 3_600);

async fn start(db: &TestDb) -> (Node, Arc<Caller>, EndpointWorker) {
    let node = Node::start(db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    assign_number(&node, "ann@example.com").await;
    let worker = EndpointWorker::start(&node, endpoint(&node, &ann).await).await;
    (node, ann, worker)
}

fn expected_texts(all: &[(&str, bool)]) -> Vec<(String, bool)> {
    all.iter().map(|(text, complete)| ((*text).to_owned(), *complete)).collect()
}

async fn finish(node: &Node) {
    node.writing(async |writer| maintenance::finish_inbound(&node.cx, &writer).await)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reply_is_stored_and_triggers_an_event() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    assert_eq!(receive(&node, vec![incoming("Grüße 👋")]).await, []);
    let kept = inbox(&node, &ann).await.pop().unwrap();
    assert_eq!((kept.from, kept.to.as_str()), (ANN.to_string(), NUMBER));
    assert_eq!((kept.text.as_str(), kept.keyword, kept.complete), ("Grüße 👋", None, true));
    assert_eq!((kept.received_at, kept.in_reply_to), (node.cx.db.now(), None));
    let deliveries = worker.arrived();
    let EventContent::Received(received) = &deliveries[0].event.content else {
        panic!("{deliveries:?}")
    };
    assert_eq!(received.id, kept.id);
    // A delivery that is claimed later has the same content.
    let body = deliveries[0].event.render();
    drop(deliveries);
    db.clock.advance(Duration::from_secs(61));
    let again = worker.claim(&node).await;
    assert_eq!((again.len(), again[0].event.render()), (1, body));
    worker.answer(&node, again, OK).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reordered_and_repeated_parts_are_joined() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    for (n, text) in [(3, "c"), (1, "a"), (3, "c"), (1, "a")] {
        receive(&node, vec![part((7, 3, n), text)]).await;
        assert_eq!(texts(&node, &ann).await, []);
    }
    for _ in 0..2 {
        receive(&node, vec![part((7, 3, 2), "b")]).await;
        receive(&node, vec![part((7, 3, 1), "a")]).await;
        assert_eq!(texts(&node, &ann).await, expected_texts(&[("abc", true)]));
    }
    assert_eq!((worker.arrived().len(), rows(&db, "events").await), (1, 1));
    finish(&node).await;
    assert_eq!(texts(&node, &ann).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_in_one_batch_are_joined() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    let one = [2, 1, 2].map(|n| part((7, 2, n), &n.to_string()));
    let two = [1, 2].map(|n| part((8, 2, n), &(n + 4).to_string()));
    receive(&node, one.into_iter().chain(two).chain([incoming("x")]).collect()).await;
    let mut all = texts(&node, &ann).await;
    all.sort();
    assert_eq!(all, expected_texts(&[("12", true), ("56", true), ("x", true)]));
    assert_eq!(worker.arrived().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn incomplete_message_is_stored_after_a_day() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    receive(&node, vec![part((7, 3, 3), "c"), part((7, 3, 1), "a")]).await;
    db.clock.advance(DAY);
    finish(&node).await;
    assert_eq!(texts(&node, &ann).await, [], "exactly at the limit");
    db.clock.advance(Duration::from_millis(1));
    for _ in 0..2 {
        finish(&node).await;
        assert_eq!(texts(&node, &ann).await, expected_texts(&[("ac", false)]));
    }
    assert_eq!(events(&worker.arrived()).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_parts_trigger_one_event() {
    let db = TestDb::new().await;
    let (node, ann, _) = start(&db).await;
    receive(&node, vec![part((7, 2, 1), "a")]).await;
    db.clock.advance(DAY + Duration::from_millis(1));
    finish(&node).await;
    for _ in 0..2 {
        receive(&node, vec![part((7, 2, 2), "b")]).await;
        finish(&node).await;
        assert_eq!(texts(&node, &ann).await, expected_texts(&[("a", false), ("b", false)]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reused_reference_starts_another_message() {
    let db = TestDb::new().await;
    let (node, ann, _) = start(&db).await;
    for text in ["ab", "cd", "ef"] {
        for (n, text) in [(1, &text[..1]), (2, &text[1..])] {
            receive(&node, vec![part((7, 2, n), text)]).await;
        }
    }
    let expected = expected_texts(&[("ab", true), ("cd", true), ("ef", true)]);
    assert_eq!(texts(&node, &ann).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reused_reference_ends_an_incomplete_message() {
    let db = TestDb::new().await;
    let (node, ann, _) = start(&db).await;
    receive(&node, vec![part((7, 3, 1), "a"), part((7, 3, 2), "b")]).await;
    receive(&node, vec![part((7, 3, 1), "x")]).await;
    assert_eq!(texts(&node, &ann).await, expected_texts(&[("ab", false)]));
    receive(&node, vec![part((7, 3, 2), "y"), part((7, 3, 3), "z")]).await;
    assert_eq!(texts(&node, &ann).await, expected_texts(&[("ab", false), ("xyz", true)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reply_refers_to_the_answered_message() {
    let db = TestDb::new().await;
    let (node, ann, _) = start(&db).await;
    let from = |text_: &str| SendRequest { originator: NUMBER.parse().unwrap(), ..text(text_) };
    node.send(&ann, from("first")).await;
    let last = node.send(&ann, from("last")).await;
    node.send(&ann, text("from a name")).await;
    let test = node.key(ann.account, Mode::Test).await;
    node.send(&test, from("not real")).await;
    receive(&node, vec![incoming("Why?")]).await;
    let strange = IncomingSms { from: "6598234567".to_owned(), ..incoming("Who?") };
    let named = IncomingSms { from: "Bank".to_owned(), ..incoming("We") };
    receive(&node, vec![strange, named]).await;
    let answered: Vec<_> = inbox(&node, &ann).await.into_iter().map(|m| m.in_reply_to).collect();
    assert_eq!(answered, [Some(last), None, None]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_to_an_unassigned_number_is_kept_for_its_next_owner() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    receive(
        &node,
        vec![incoming("Hello?"), IncomingSms { to: "12345".to_owned(), ..incoming("Hi") }],
    )
    .await;
    assert_eq!(texts(&node, &ann).await, []);
    assign_number(&node, "ann@example.com").await;
    assert_eq!(texts(&node, &ann).await, expected_texts(&[("Hello?", true)]));
    // Another node had looked up the owner before the assignment.
    db.execute_raw("UPDATE inbound_messages SET account = 0").await;
    assign_number(&node, "ann@example.com").await;
    assert_eq!(texts(&node, &ann).await, expected_texts(&[("Hello?", true)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn number_is_moved_only_on_request() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let bob = node.account("bob@example.com", 1_000).await;
    assign_number(&node, "ann@example.com").await;
    receive(&node, vec![incoming("Hello?")]).await;
    let Err(Error::Conflict(reason)) = numbers::assign(&node.cx, NUMBER, bob.account).await else {
        panic!("the number was moved");
    };
    assert_eq!(reason, ConflictReason::NumberAssigned(ann.account));
    assert_eq!(numbers::reassign(&node.cx, NUMBER, bob.account).await.unwrap(), ann.account);
    receive(&node, vec![incoming("Hello again?")]).await;
    assert_eq!(texts(&node, &ann).await, expected_texts(&[("Hello?", true)]));
    assert_eq!(texts(&node, &bob).await, expected_texts(&[("Hello again?", true)]));
    let unknown = numbers::reassign(&node.cx, "12345", bob.account).await;
    assert!(matches!(unknown, Err(Error::NotFound)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn label_selects_the_test_account() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    let bob = node.account("bob@example.com", 1_000).await;
    let label = Some(inbound::label(bob.account, Mode::Test));
    let labelled = |n, text| IncomingSms { label, ..part((7, 2, n), text) };
    receive(&node, vec![IncomingSms { label, ..incoming("STOP") }]).await;
    receive(&node, vec![labelled(2, "b"), labelled(1, "a")]).await;
    let test = node.key(bob.account, Mode::Test).await;
    let all = inbox(&node, &test).await;
    assert_eq!(all.iter().map(|m| m.text.as_str()).collect::<Vec<_>>(), ["STOP", "ab"]);
    assert_eq!(all[0].keyword, Some(Keyword::Stop));
    assert_eq!((texts(&node, &ann).await, texts(&node, &bob).await), (vec![], vec![]));
    assert_eq!(worker.arrived().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolled_back_messages_leave_no_trace() {
    let db = TestDb::new().await;
    let (node, ann, worker) = start(&db).await;
    db.execute_raw("ALTER TABLE inbound_messages RENAME TO elsewhere").await;
    let (reply, mut answer) = oneshot::channel();
    let progress =
        inbound_progress(&node, vec![part((7, 2, 1), "a"), part((7, 2, 2), "b"), incoming("STOP")]);
    node.write(vec![Command::RecordProgress(RecordProgress { progress, reply })]).await;
    let (_, progress) = answer.try_recv().unwrap().unwrap_err();
    db.execute_raw("ALTER TABLE elsewhere RENAME TO inbound_messages").await;
    for table in ["inbound_parts", "inbound_messages", "events", "deliveries", "optouts"] {
        assert_eq!(rows(&db, table).await, 0, "{table}");
    }
    assert_eq!(worker.arrived().len(), 0);
    node.commit_progress(progress).await;
    assert_eq!(texts(&node, &ann).await, expected_texts(&[("ab", true), ("STOP", true)]));
    assert_eq!((worker.arrived().len(), rows(&db, "optouts").await), (2, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_parts_are_deleted() {
    let db = TestDb::new().await;
    let (node, _, _) = start(&db).await;
    receive(&node, vec![part((7, 2, 1), "a"), part((7, 2, 2), "b"), part((8, 2, 1), "a")]).await;
    for (later, left) in [(DAY, 3), (Duration::from_millis(1), 1)] {
        db.clock.advance(later);
        maintenance::delete_outdated(&node.cx).await.unwrap();
        assert_eq!(rows(&db, "inbound_parts").await, left);
    }
    finish(&node).await;
    maintenance::delete_outdated(&node.cx).await.unwrap();
    assert_eq!(rows(&db, "inbound_parts").await, 0);
}
