//! Opt-outs: a STOP holds at once, for everything that enforces its list, and a START ends it.

use crate::courier::rows;
use crate::node::{ANN, Node, accepted, is_overloaded, parts, text};
use crate::people::{NUMBER, answers, has_number, hear, inbox, news, says};
use crate::support::{TestDb, on_both_engines};
use heliograph_domain::account::Mode;
use heliograph_domain::id::{Ids, MessageId, OptoutListId};
use heliograph_domain::inbound::{Incoming, Keyword};
use heliograph_domain::message::{FailureCode, Message, Status};
use heliograph_domain::optout::{Optout, Source};
use heliograph_domain::submission::Outcome;
use heliograph_service::caller::Caller;
use heliograph_service::dispatch::judge;
use heliograph_service::error::Error;
use heliograph_service::messages::Send;
use heliograph_service::once::{Answer, Asked, OPTOUT_LISTS};
use heliograph_service::optouts::{self, Which};
use heliograph_service::replies;
use heliograph_service::writer::{Accept, Accepted, Command};
use heliograph_store::idempotency::{Key, SEND_SMS};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

on_both_engines!(optouts:
    a_stop_is_kept_with_its_evidence_and_answered_once,
    a_stop_holds_back_what_is_sent_after_it,
    a_stop_in_the_same_batch_holds_a_send_back,
    a_stop_reaches_what_was_queued_before_it,
    what_is_half_sent_goes_on,
    a_stop_goes_on_the_list_of_the_message_answered,
    a_list_that_is_gone_takes_nobody_in,
    a_start_ends_a_stop,
    only_the_word_alone_stops,
    a_stop_in_a_test_touches_no_live_list,
    lists_are_made_filled_and_removed,
);

async fn start(db: &TestDb) -> (Node, Arc<Caller>) {
    let mut node = Node::start(db).await;
    answers(&mut node);
    let ann = node.account("ann@example.com", 1_000).await;
    has_number(&node, "ann@example.com").await;
    (node, ann)
}

/// A request without an idempotency key.
fn unasked<'a, T>(
    caller: &Caller,
    keep: &'a (dyn Fn(&T) -> String + std::marker::Send + Sync),
) -> Asked<'a, T> {
    Asked::new(caller, (OPTOUT_LISTS, ""), None, keep)
}

fn now<T: std::fmt::Debug>(done: heliograph_service::error::Result<Answer<T>>) -> T {
    match done {
        Ok(Answer::Now(done)) => done,
        other => panic!("{other:?}"),
    }
}

async fn make(node: &Node, caller: &Caller, name: &str) -> OptoutListId {
    let asked = unasked(caller, &|_| String::new());
    now(optouts::make(&node.cx, caller, name.to_owned(), asked).await).id
}

/// Puts Ann on a list.
async fn add(node: &Node, caller: &Caller, list: Which, note: Option<String>) -> (Optout, bool) {
    let asked = unasked(caller, &|_| String::new());
    now(optouts::add_one(&node.cx, caller, list, (ANN, note), asked).await)
}

async fn listed(node: &Node, caller: &Caller, which: Which) -> Option<Optout> {
    optouts::number(&node.cx, caller, which, ANN).await.ok()
}

/// A message to Ann that enforces a list, on its way to the writer.
async fn accept(node: &Node, caller: &Caller, list: Option<OptoutListId>) -> Message {
    let open = Send { block_optout: false, originator: NUMBER.parse().unwrap(), ..text("Hello") };
    let sent = node.send_all(caller, vec![(open, None)]).await.pop().unwrap();
    let (id, accepted_at) = node.cx.next_id();
    let (id, optout_list) = (MessageId(id), list.map(|l| l.0));
    Message { id, accepted_at, optout_list, ..(*sent.unwrap().message).clone() }
}

async fn a_stop_is_kept_with_its_evidence_and_answered_once(db: TestDb) {
    let (node, ann) = start(&db).await;
    let all = hear(&node, vec![says("Stop!"), says("STOP")]).await;
    let told: Vec<_> = all.iter().map(|c| (c.text.as_str(), c.from.as_str(), c.to)).collect();
    assert_eq!(told, [("Bye", NUMBER, ANN)]);
    assert_eq!(hear(&node, vec![says("stop")]).await, [], "nothing changed");
    let first = inbox(&node, &ann).await.remove(0);
    let kept = listed(&node, &ann, Which::Standard).await.unwrap();
    assert_eq!(
        (kept.source, kept.message, kept.at),
        (Source::Reply, Some(first.id), first.received_at)
    );
    assert_eq!(kept.originator.as_deref(), Some(NUMBER));
    assert_eq!(first.keyword, Some(Keyword::Stop));
}

async fn a_stop_holds_back_what_is_sent_after_it(db: TestDb) {
    let (node, ann) = start(&db).await;
    hear(&node, vec![says("STOP")]).await;
    let all = vec![(text("Hello"), None), (Send { block_optout: false, ..text("Hello") }, None)];
    let sent = node.send_all(&ann, all).await;
    assert!(matches!(sent[0], Err(Error::RecipientOptedOut)), "{:?}", sent[0]);
    assert!(sent[1].is_ok() && !is_overloaded(&sent[1]));
    assert_eq!(node.balance(&ann).await, (900, 100));
    node.check().await;
}

async fn a_stop_in_the_same_batch_holds_a_send_back(db: TestDb) {
    let (node, ann) = start(&db).await;
    let message = accept(&node, &ann, Some(ann.optout_list)).await;
    let key = Key { account: ann.account, mode: Mode::Live, route: SEND_SMS, key: "k".to_owned() };
    for round in 0..2 {
        let message =
            Message { id: MessageId(db.ids.next(message.accepted_at)), ..message.clone() };
        let id = message.id;
        let (reply, mut verdict) = oneshot::channel();
        let idempotency = Some((key.clone(), [1; 32]));
        let accept = Accept { message: Arc::new(message), idempotency, reply };
        // The word may come before it or after it.
        let mut batch = vec![Command::Accept(accept)];
        let said = news(&node, vec![says("STOP")]);
        batch.insert(round, Command::Progress(said, oneshot::channel().0));
        node.write(batch).await;
        assert_eq!(verdict.try_recv().unwrap().unwrap(), Accepted::OptedOut);
        assert_eq!(rows(&db, "idempotency").await, 0, "it can be asked again");
        assert!(heliograph_service::messages::get(&node.cx, &ann, id).await.is_err());
        assert_eq!(node.balance(&ann).await, (900, 100));
        hear(&node, vec![says("START")]).await;
    }
    node.check().await;
}

async fn a_stop_reaches_what_was_queued_before_it(db: TestDb) {
    let (node, ann) = start(&db).await;
    let held = node.send(&ann, parts(3)).await;
    let free = node.send(&ann, Send { block_optout: false, ..text("Your code") }).await;
    assert_eq!(node.balance(&ann).await, (600, 400));
    hear(&node, vec![says("STOP")]).await;
    node.desk.set_bound(true);
    let claimed = node.claim().await;
    assert_eq!(claimed.iter().map(|h| h.leased.message.id).collect::<Vec<_>>(), [free]);
    let state = node.state(&ann, held).await;
    let failure = state.failure.map(|f| f.code);
    assert_eq!((state.status, failure), (Status::Failed, Some(FailureCode::OptedOut)));
    assert_eq!(node.balance(&ann).await, (900, 100));
    node.check().await;
}

async fn what_is_half_sent_goes_on(db: TestDb) {
    let (node, ann) = start(&db).await;
    node.open().await;
    let id = node.send(&ann, parts(2)).await;
    let held = node.arrived().pop().unwrap();
    node.settle(vec![judge(&held.leased, vec![(1, accepted("a")), (2, Outcome::Throttled)])]).await;
    hear(&node, vec![says("STOP")]).await;
    db.clock.advance(Duration::from_secs(2));
    let again = node.claim().await.pop().unwrap();
    assert_eq!((again.leased.message.id, &again.leased.parts_taken[..]), (id, &[1][..]));
    node.settle(vec![judge(&again.leased, vec![(2, accepted("b"))])]).await;
    assert_eq!((node.status(&ann, id).await, node.balance(&ann).await), (Status::Sent, (800, 0)));
    node.check().await;
}

async fn enforcing(node: &Node, ann: &Caller, list: OptoutListId) -> Accepted {
    let message = Arc::new(accept(node, ann, Some(list)).await);
    let (reply, mut verdict) = oneshot::channel();
    node.write(vec![Command::Accept(Accept { message, idempotency: None, reply })]).await;
    verdict.try_recv().unwrap().unwrap()
}

async fn a_stop_goes_on_the_list_of_the_message_answered(db: TestDb) {
    let (node, ann) = start(&db).await;
    let shoes = make(&node, &ann, "Shoes").await;
    let hats = make(&node, &ann, "Hats").await;
    assert_eq!(enforcing(&node, &ann, shoes).await, Accepted::Done);
    assert_eq!(hear(&node, vec![says("STOP")]).await.len(), 1);
    let which = [Which::Standard, Which::Id(shoes), Which::Id(hats)];
    for (which, expected) in which.into_iter().zip([true, true, false]) {
        assert_eq!(listed(&node, &ann, which).await.is_some(), expected, "{which:?}");
    }
    assert_eq!(enforcing(&node, &ann, shoes).await, Accepted::OptedOut);
    // The last message from the number enforces none: of that one the default list alone is left.
    assert_eq!(hear(&node, vec![says("START")]).await.len(), 1);
    let left =
        [listed(&node, &ann, Which::Standard).await, listed(&node, &ann, Which::Id(shoes)).await];
    assert_eq!(left.map(|l| l.is_some()), [false, true]);
}

async fn a_list_that_is_gone_takes_nobody_in(db: TestDb) {
    let (node, ann) = start(&db).await;
    let shoes = make(&node, &ann, "Shoes").await;
    assert_eq!(enforcing(&node, &ann, shoes).await, Accepted::Done);
    optouts::remove_list(&node.cx, &ann, Which::Id(shoes), None).await.unwrap();
    hear(&node, vec![says("STOP")]).await;
    assert_eq!(rows(&db, "optouts").await, 1);
}

async fn a_start_ends_a_stop(db: TestDb) {
    let (node, ann) = start(&db).await;
    let all = hear(&node, ["START", "STOP", "START", "START", "HELP"].map(says).into()).await;
    let told: Vec<_> = all.iter().map(|c| c.text.as_str()).collect();
    assert_eq!(told, ["Bye", "Hi", "Ask us"]);
    assert_eq!(listed(&node, &ann, Which::Standard).await, None);
    node.send(&ann, text("Hello")).await;
    assert_eq!(inbox(&node, &ann).await.len(), 5);
}

async fn only_the_word_alone_stops(db: TestDb) {
    let (node, ann) = start(&db).await;
    let named = Incoming { from: "Bank".to_owned(), ..says("STOP") };
    let elsewhere = Incoming { to: "12345".to_owned(), ..says("STOP") };
    let all = vec![says("Don't stop"), says("STOP it"), named, elsewhere];
    assert_eq!(hear(&node, all).await, []);
    assert_eq!(rows(&db, "optouts").await, 0);
    node.send(&ann, text("Hello")).await;
}

async fn a_stop_in_a_test_touches_no_live_list(db: TestDb) {
    let (node, ann) = start(&db).await;
    let test = node.key(ann.account, Mode::Test).await;
    let label = Some(replies::label(ann.account, Mode::Test));
    let all = hear(&node, vec![Incoming { label, ..says("STOP") }]).await;
    assert_eq!(all.iter().map(|c| c.mode).collect::<Vec<_>>(), [Mode::Test]);
    assert_eq!(listed(&node, &ann, Which::Standard).await, None);
    assert!(listed(&node, &test, Which::Standard).await.is_some());
    let sent = node.send_all(&test, vec![(text("Hello"), None)]).await.pop().unwrap();
    assert!(matches!(sent, Err(Error::RecipientOptedOut)), "{sent:?}");
    node.send(&ann, text("Hello")).await;
}

async fn lists_are_made_filled_and_removed(db: TestDb) {
    let (node, ann) = start(&db).await;
    let bob = node.account("bob@example.com", 0).await;
    let shoes = Which::Id(make(&node, &ann, "Shoes").await);
    let note = |n: &str| Some(n.to_owned());
    let (first, new) = add(&node, &ann, shoes, note("one")).await;
    assert_eq!((first.source, new), (Source::Api, true));
    let again = add(&node, &ann, shoes, note("two")).await;
    assert_eq!(again, (first, false));
    let file = (0..2_500).map(|i| (heliograph_domain::phone::Recipient(ANN.0 + i), None)).collect();
    assert_eq!(
        now(optouts::import(&node.cx, &ann, shoes, file, unasked(&ann, &|_| String::new())).await),
        2_499
    );
    for strange in [
        optouts::number(&node.cx, &bob, shoes, ANN).await.map(drop),
        optouts::remove(&node.cx, &bob, shoes, ANN, None).await,
        optouts::remove_list(&node.cx, &bob, shoes, None).await,
    ] {
        assert!(matches!(strange, Err(Error::NotFound)), "{strange:?}");
    }
    let always = optouts::remove_list(&node.cx, &ann, Which::Standard, None).await;
    assert!(matches!(always, Err(Error::Conflict(_))), "{always:?}");
    optouts::remove_list(&node.cx, &ann, shoes, None).await.unwrap();
    assert_eq!(rows(&db, "optouts").await, 0);
}
