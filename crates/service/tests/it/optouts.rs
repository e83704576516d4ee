//! Opt-outs: STOP takes effect at once for all messages that enforce its list, and START ends it.

use crate::endpoint_worker::rows;
use crate::inbound::{
    NUMBER, assign_number, inbound_progress, inbox, incoming, load_number_owners, receive,
    set_keyword_replies,
};
use crate::node::{ANN, Node, accepted, is_overloaded, parts, text};
use heliograph_domain::account::Mode;
use heliograph_domain::fields::Note;
use heliograph_domain::id::{Ids, MessageId, OptoutListId};
use heliograph_domain::inbound::{IncomingSms, Keyword};
use heliograph_domain::message::{FailureCode, Message, MessageStatus};
use heliograph_domain::optout::{Optout, OptoutSource};
use heliograph_domain::submission::SubmitOutcome;
use heliograph_service::audience::optouts::{self, NewOptout, OptoutImport, OptoutListRef};
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::commands::accept::{Accept, AcceptOutcome};
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::commands::progress::RecordProgress;
use heliograph_service::kernel::error::Error;
use heliograph_service::kernel::idempotency::{IdempotentOutcome, IdempotentRequest, OPTOUT_LISTS};
use heliograph_service::messaging::conversations;
use heliograph_service::messaging::dispatch::evaluate_outcomes;
use heliograph_service::messaging::inbound;
use heliograph_service::messaging::messages::{self, SendRequest};
use heliograph_service::operations::maintenance;
use heliograph_service::operations::numbers;
use heliograph_store::idempotency::{SEND_SMS, ScopedKey};
use heliograph_testing::TestDb;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

async fn start(db: &TestDb) -> (Node, Arc<Caller>) {
    let mut node = Node::start(db).await;
    set_keyword_replies(&mut node);
    let ann = node.account("ann@example.com", 1_000).await;
    assign_number(&node, "ann@example.com").await;
    (node, ann)
}

/// Returns a request without an idempotency key.
fn without_key<'a, T>(
    caller: &Caller,
    keep: &'a (dyn Fn(&T) -> String + std::marker::Send + Sync),
) -> IdempotentRequest<'a, T> {
    IdempotentRequest::new(caller, OPTOUT_LISTS, "", None, keep)
}

fn now<T: std::fmt::Debug>(
    done: heliograph_service::kernel::error::Result<IdempotentOutcome<T>>,
) -> T {
    match done {
        Ok(IdempotentOutcome::Fresh(done)) => done,
        other => panic!("{other:?}"),
    }
}

async fn make(node: &Node, caller: &Caller, name: &str) -> OptoutListId {
    let request = without_key(caller, &|_| String::new());
    now(optouts::create_list(&node.cx, caller, name.parse().unwrap(), request).await).id
}

/// Puts Ann on a list.
async fn add(
    node: &Node,
    caller: &Caller,
    list: OptoutListRef,
    note: Option<Note>,
) -> (Optout, bool) {
    let request = without_key(caller, &|_| String::new());
    now(optouts::add(&node.cx, caller, list, NewOptout { number: ANN, note }, request).await)
}

async fn listed(node: &Node, caller: &Caller, which: OptoutListRef) -> Option<Optout> {
    optouts::number(&node.cx, caller, which, ANN).await.ok()
}

/// Returns a message to Ann that enforces a list, ready for the writer.
async fn accept(node: &Node, caller: &Caller, list: Option<OptoutListId>) -> Message {
    let open =
        SendRequest { block_optout: false, originator: NUMBER.parse().unwrap(), ..text("Hello") };
    let sent = node.send_all(caller, vec![(open, None)]).await.pop().unwrap();
    let (id, accepted_at) = node.cx.next_id();
    let (id, optout_list) = (MessageId(id), list.map(|l| l.0));
    Message { id, accepted_at, optout_list, ..(*sent.unwrap().message).clone() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_is_stored_with_its_evidence_and_confirmed_once() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    let all = receive(&node, vec![incoming("Stop!"), incoming("STOP")]).await;
    let confirmations: Vec<_> =
        all.iter().map(|c| (c.text.as_str(), c.from.as_str(), c.to)).collect();
    assert_eq!(confirmations, [("Bye", NUMBER, ANN)]);
    assert_eq!(receive(&node, vec![incoming("stop")]).await, [], "nothing changed");
    let first = inbox(&node, &ann).await.remove(0);
    let kept = listed(&node, &ann, OptoutListRef::Default).await.unwrap();
    assert_eq!(
        (kept.source, kept.message, kept.at),
        (OptoutSource::Reply, Some(first.id), first.received_at)
    );
    assert_eq!(kept.originator.as_deref(), Some(NUMBER));
    assert_eq!(first.keyword, Some(Keyword::Stop));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_rejects_later_sends() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    receive(&node, vec![incoming("STOP")]).await;
    let all =
        vec![(text("Hello"), None), (SendRequest { block_optout: false, ..text("Hello") }, None)];
    let sent = node.send_all(&ann, all).await;
    assert!(matches!(sent[0], Err(Error::RecipientOptedOut)), "{:?}", sent[0]);
    assert!(sent[1].is_ok() && !is_overloaded(&sent[1]));
    assert_eq!(node.balance(&ann).await, (900, 100));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_in_the_same_batch_rejects_a_send() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    let message = accept(&node, &ann, Some(ann.optout_list)).await;
    let key =
        ScopedKey { account: ann.account, mode: Mode::Live, route: SEND_SMS, key: "k".to_owned() };
    for round in 0..2 {
        let message =
            Message { id: MessageId(db.ids.next(message.accepted_at)), ..message.clone() };
        let id = message.id;
        let (reply, mut outcome) = oneshot::channel();
        let idempotency = Some((key.clone(), [1; 32]));
        let accept = Accept { message: Arc::new(message), idempotency, reply };
        // The keyword comes before or after the send.
        let mut batch = vec![Command::Accept(accept)];
        let progress = inbound_progress(&node, vec![incoming("STOP")]);
        batch.insert(
            round,
            Command::RecordProgress(RecordProgress { progress, reply: oneshot::channel().0 }),
        );
        node.write(batch).await;
        assert_eq!(outcome.try_recv().unwrap().unwrap(), AcceptOutcome::OptedOut);
        assert_eq!(rows(&db, "idempotency").await, 0, "the idempotency key is free again");
        assert!(heliograph_service::messaging::messages::get(&node.cx, &ann, id).await.is_err());
        assert_eq!(node.balance(&ann).await, (900, 100));
        receive(&node, vec![incoming("START")]).await;
    }
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_applies_to_queued_messages() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    let held = node.send(&ann, parts(3)).await;
    let free = node.send(&ann, SendRequest { block_optout: false, ..text("Your code") }).await;
    assert_eq!(node.balance(&ann).await, (600, 400));
    receive(&node, vec![incoming("STOP")]).await;
    node.dispatch_queue.set_available(true);
    let claimed = node.claim().await;
    assert_eq!(claimed.iter().map(|h| h.leased.message.id).collect::<Vec<_>>(), [free]);
    let state = node.state(&ann, held).await;
    let failure = state.failure.map(|f| f.code);
    assert_eq!((state.status, failure), (MessageStatus::Failed, Some(FailureCode::OptedOut)));
    assert_eq!(node.balance(&ann).await, (900, 100));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partly_sent_message_is_completed_despite_stop() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    node.open_queue().await;
    let id = node.send(&ann, parts(2)).await;
    let held = node.arrived().pop().unwrap();
    node.settle(vec![evaluate_outcomes(
        &held.leased,
        vec![(1, accepted("a")), (2, SubmitOutcome::Throttled)],
    )])
    .await;
    receive(&node, vec![incoming("STOP")]).await;
    db.clock.advance(Duration::from_secs(2));
    let again = node.claim().await.pop().unwrap();
    assert_eq!((again.leased.message.id, &again.leased.accepted_parts[..]), (id, &[1][..]));
    node.settle(vec![evaluate_outcomes(&again.leased, vec![(2, accepted("b"))])]).await;
    assert_eq!(
        (node.status(&ann, id).await, node.balance(&ann).await),
        (MessageStatus::Sent, (800, 0))
    );
    node.check().await;
}

async fn enforcing(node: &Node, ann: &Caller, list: OptoutListId) -> AcceptOutcome {
    let message = Arc::new(accept(node, ann, Some(list)).await);
    let (reply, mut outcome) = oneshot::channel();
    node.write(vec![Command::Accept(Accept { message, idempotency: None, reply })]).await;
    outcome.try_recv().unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_adds_to_the_list_of_the_answered_message() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    let shoes = make(&node, &ann, "Shoes").await;
    let hats = make(&node, &ann, "Hats").await;
    assert_eq!(enforcing(&node, &ann, shoes).await, AcceptOutcome::Done);
    assert_eq!(receive(&node, vec![incoming("STOP")]).await.len(), 1);
    let which = [OptoutListRef::Default, OptoutListRef::Id(shoes), OptoutListRef::Id(hats)];
    for (which, expected) in which.into_iter().zip([true, true, false]) {
        assert_eq!(listed(&node, &ann, which).await.is_some(), expected, "{which:?}");
    }
    assert_eq!(enforcing(&node, &ann, shoes).await, AcceptOutcome::OptedOut);
    // The last message from the number enforces no list, so START removes only from the default
    // list.
    assert_eq!(receive(&node, vec![incoming("START")]).await.len(), 1);
    let left = [
        listed(&node, &ann, OptoutListRef::Default).await,
        listed(&node, &ann, OptoutListRef::Id(shoes)).await,
    ];
    assert_eq!(left.map(|l| l.is_some()), [false, true]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_for_a_deleted_list_is_stored_only_in_the_default_list() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    let shoes = make(&node, &ann, "Shoes").await;
    assert_eq!(enforcing(&node, &ann, shoes).await, AcceptOutcome::Done);
    optouts::remove_list(&node.cx, &ann, OptoutListRef::Id(shoes), None).await.unwrap();
    receive(&node, vec![incoming("STOP")]).await;
    assert_eq!(rows(&db, "optouts").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn start_ends_a_stop() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    let all =
        receive(&node, ["START", "STOP", "START", "START", "HELP"].map(incoming).into()).await;
    let confirmations: Vec<_> = all.iter().map(|c| c.text.as_str()).collect();
    assert_eq!(confirmations, ["Bye", "Hi", "Ask us"]);
    assert_eq!(listed(&node, &ann, OptoutListRef::Default).await, None);
    node.send(&ann, text("Hello")).await;
    assert_eq!(inbox(&node, &ann).await.len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_keyword_is_answered_once_per_person_and_hour() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    let answers = async |words: &[&str]| {
        let all = receive(&node, words.iter().map(|word| incoming(word)).collect()).await;
        all.into_iter().map(|c| c.text.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(answers(&["HELP", "STOP", "HELP", "START"]).await, ["Ask us", "Bye", "Hi"]);
    assert_eq!(answers(&["HELP", "STOP"]).await, [""; 0]);
    assert!(listed(&node, &ann, OptoutListRef::Default).await.is_some(), "STOP takes effect");
    let bob = IncomingSms { from: "447700900124".to_owned(), ..incoming("HELP") };
    assert_eq!(receive(&node, vec![bob]).await.len(), 1, "another person");
    db.clock.advance(Duration::from_secs(1_800));
    assert_eq!(answers(&["START", "HELP"]).await, [""; 0]);
    // The hour begins with the answer, not with the last keyword.
    db.clock.advance(Duration::from_secs(1_801));
    assert_eq!(answers(&["HELP", "STOP", "START"]).await, ["Ask us", "Bye", "Hi"]);
    db.clock.advance(Duration::from_secs(7_200));
    maintenance::delete_outdated(&node.cx).await.unwrap();
    assert_eq!(rows(&db, "keyword_replies").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_assigned_number_is_an_originator_of_its_account_only() {
    let db = TestDb::new().await;
    let (mut node, ann) = start(&db).await;
    load_number_owners(&mut node).await;
    let bob = node.account("bob@example.com", 1_000).await;
    let test = node.key(bob.account, Mode::Test).await;
    let from =
        |originator: &str| SendRequest { originator: originator.parse().unwrap(), ..text("Hello") };
    for caller in [&bob, &test] {
        for number in [NUMBER, "+44 7700 900000"] {
            let sent = node.send_all(caller, vec![(from(number), None)]).await.pop().unwrap();
            assert!(matches!(sent, Err(Error::SenderNotAllowed)), "{sent:?}");
            let quote = messages::dry_run(&node.cx, caller, &from(number)).await;
            assert!(matches!(quote, Err(Error::SenderNotAllowed)), "{quote:?}");
        }
        node.send(caller, from("447700900001")).await;
    }
    node.send(&ann, from(NUMBER)).await;
}

/// A short code may begin with zeros, and a long number need not be possible in its country.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusual_numbers_answer_and_are_originators_of_replies() {
    let db = TestDb::new().await;
    let (mut node, ann) = start(&db).await;
    for number in ["0123", "123456789"] {
        numbers::assign(&node.cx, number, ann.account).await.unwrap();
        load_number_owners(&mut node).await;
        let help = IncomingSms { to: number.to_owned(), ..incoming("HELP") };
        let answer = receive(&node, vec![help]).await.pop().unwrap();
        node.writing(async |w| messages::send_keyword_reply(&node.cx, &w, answer).await)
            .await
            .unwrap();
        let from = conversations::reply_originator(&node.cx, &ann, ANN).await.unwrap().unwrap();
        assert_eq!(from.as_str(), number);
        node.send(&ann, SendRequest { originator: from, ..text("Hello") }).await;
    }
}

/// Bob sent from the number before it was assigned to Ann, and from one that nobody has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_counts_for_the_account_whose_message_it_answers() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    let bob = node.account("bob@example.com", 1_000).await;
    const UNASSIGNED: &str = "447700900009";
    for number in [NUMBER, UNASSIGNED] {
        let send = SendRequest { originator: number.parse().unwrap(), ..text("Hello") };
        node.send(&bob, send).await;
        let to = |word| IncomingSms { to: number.to_owned(), ..incoming(word) };
        receive(&node, vec![to("STOP")]).await;
        let kept = listed(&node, &bob, OptoutListRef::Default).await.unwrap();
        assert_eq!(kept.originator.as_deref(), Some(number));
        let owned = number == NUMBER;
        // Bob cannot read a message that belongs to Ann.
        assert_eq!(kept.message.is_none(), owned);
        assert_eq!(listed(&node, &ann, OptoutListRef::Default).await.is_some(), owned);
        receive(&node, vec![to("HELP"), to("START")]).await;
        for caller in [&ann, &bob] {
            assert_eq!(listed(&node, caller, OptoutListRef::Default).await, None);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_single_word_is_a_keyword() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    let named = IncomingSms { from: "Bank".to_owned(), ..incoming("STOP") };
    let elsewhere = IncomingSms { to: "12345".to_owned(), ..incoming("STOP") };
    let all = vec![incoming("Don't stop"), incoming("STOP it"), named, elsewhere];
    assert_eq!(receive(&node, all).await, []);
    assert_eq!(rows(&db, "optouts").await, 0);
    node.send(&ann, text("Hello")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_in_test_mode_does_not_change_live_lists() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    let test = node.key(ann.account, Mode::Test).await;
    let label = Some(inbound::label(ann.account, Mode::Test));
    let all = receive(&node, vec![IncomingSms { label, ..incoming("STOP") }]).await;
    assert_eq!(all.iter().map(|c| c.mode).collect::<Vec<_>>(), [Mode::Test]);
    assert_eq!(listed(&node, &ann, OptoutListRef::Default).await, None);
    assert!(listed(&node, &test, OptoutListRef::Default).await.is_some());
    let sent = node.send_all(&test, vec![(text("Hello"), None)]).await.pop().unwrap();
    assert!(matches!(sent, Err(Error::RecipientOptedOut)), "{sent:?}");
    node.send(&ann, text("Hello")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_created_filled_and_deleted() {
    let db = TestDb::new().await;
    let (node, ann) = start(&db).await;
    let bob = node.account("bob@example.com", 0).await;
    let shoes = OptoutListRef::Id(make(&node, &ann, "Shoes").await);
    let note = |n: &str| n.parse().ok();
    let (first, new) = add(&node, &ann, shoes, note("one")).await;
    assert_eq!((first.source, new), (OptoutSource::Api, true));
    let again = add(&node, &ann, shoes, note("two")).await;
    assert_eq!(again, (first, false));
    let numbers =
        (0..2_500).map(|i| (heliograph_domain::phone::Recipient(ANN.0 + i), None)).collect();
    let file = OptoutImport { numbers, by: None };
    assert_eq!(
        now(optouts::import(&node.cx, &ann, shoes, file, without_key(&ann, &|_| String::new()))
            .await),
        2_499
    );
    for strange in [
        optouts::number(&node.cx, &bob, shoes, ANN).await.map(drop),
        optouts::remove(&node.cx, &bob, shoes, ANN, None).await,
        optouts::remove_list(&node.cx, &bob, shoes, None).await,
    ] {
        assert!(matches!(strange, Err(Error::NotFound)), "{strange:?}");
    }
    let always = optouts::remove_list(&node.cx, &ann, OptoutListRef::Default, None).await;
    assert!(matches!(always, Err(Error::Conflict(_))), "{always:?}");
    optouts::remove_list(&node.cx, &ann, shoes, None).await.unwrap();
    assert_eq!(rows(&db, "optouts").await, 0);
}
