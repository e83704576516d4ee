//! Accept: who may send what, once, for money that is there.

use crate::node::{Node, is_overloaded, once, parts, text};
use crate::support::{TestDb, on_both_engines};
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::carrier::Routes;
use heliograph_domain::money::Amount;
use heliograph_service::audit::Actor;
use heliograph_service::caller::Caller;
use heliograph_service::context::{Context, Settings};
use heliograph_service::error::{Error, Result};
use heliograph_service::messages::{self, Sent};
use heliograph_service::writer::{self, Accept, Command};
use heliograph_service::{accounts, api_keys};
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

on_both_engines!(accept:
    what_the_balance_covers_is_taken_one_by_one,
    accounts_do_not_pay_for_each_other,
    a_repeated_request_is_replayed,
    twins_in_one_batch_make_one_message,
    a_key_used_for_something_else_is_refused,
    a_refused_request_frees_its_key_and_its_twin_is_refused_too,
    a_revoked_key_is_noticed_in_the_transaction,
    a_key_without_the_scope_is_noticed_in_the_transaction,
    what_cannot_be_sent_is_refused_before_anything_is_stored,
    too_much_at_once_is_refused,
);

fn told(sent: &Result<Sent>) -> &'static str {
    match sent {
        Ok(sent) if sent.replayed => "replayed",
        Ok(_) => "sent",
        Err(Error::InsufficientBalance) => "no money",
        Err(Error::IdempotencyKeyReused) => "key reused",
        Err(Error::Unauthenticated) => "key invalid",
        Err(e) => panic!("unexpected: {e}"),
    }
}

async fn what_the_balance_covers_is_taken_one_by_one(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 350).await;
    let batch = [1, 3, 1, 2, 1, 1].map(|n| (parts(n), None)).into();
    let sent = node.send_all(&ann, batch).await;
    let told: Vec<_> = sent.iter().map(told).collect();
    assert_eq!(told, ["sent", "no money", "sent", "no money", "sent", "no money"]);
    assert_eq!(node.balance(&ann).await, (50, 300));
    node.desk.set_bound(true);
    assert_eq!(node.claim().await.len(), 3);
    node.check().await;
}

async fn accounts_do_not_pay_for_each_other(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let bob = node.account("bob@example.com", 99).await;
    let sent = node
        .writing(async |writer| {
            let send = |caller| messages::send(&node.cx, &writer, caller, text("Hi"), None);
            let sent = tokio::join!(send(&ann), send(&bob), send(&ann));
            [sent.0, sent.1, sent.2]
        })
        .await;
    assert_eq!(sent.each_ref().map(told), ["sent", "no money", "sent"]);
    assert_eq!(node.balance(&ann).await, (800, 200));
    assert_eq!(node.balance(&bob).await, (99, 0));
    node.check().await;
}

async fn a_repeated_request_is_replayed(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 150).await;
    let mut ids = Vec::new();
    for expected in ["sent", "replayed", "replayed"] {
        let sent = node.send_all(&ann, vec![(text("Hello"), once("k", 1))]).await.pop().unwrap();
        assert_eq!(told(&sent), expected);
        ids.push(sent.unwrap().message.id);
    }
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(node.balance(&ann).await, (50, 100));
    // The same key means something else to another account, and in another mode.
    let bob = node.account("bob@example.com", 150).await;
    let testing = node.key(ann.account, Mode::Test).await;
    for caller in [&bob, &testing] {
        let sent = node.send_all(caller, vec![(text("Hello"), once("k", 2))]).await;
        assert_eq!(told(&sent[0]), "sent");
    }
    node.check().await;
}

async fn twins_in_one_batch_make_one_message(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let batch = ["twin", "other", "twin"].map(|key| (text("Hello"), once(key, 1))).into();
    let sent = node.send_all(&ann, batch).await;
    let mut told: Vec<_> = sent.iter().map(told).collect();
    let ids: Vec<_> = sent.iter().map(|s| s.as_ref().unwrap().message.id).collect();
    assert!(ids[0] == ids[2] && ids[0] != ids[1], "{ids:?}");
    told.sort_unstable();
    assert_eq!(told, ["replayed", "sent", "sent"]);
    assert_eq!(node.balance(&ann).await, (800, 200));
    node.desk.set_bound(true);
    assert_eq!(node.claim().await.len(), 2);
    node.check().await;
}

async fn a_key_used_for_something_else_is_refused(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let batch = vec![(text("Hello"), once("k", 1)), (text("Bye"), once("k", 2))];
    let sent = node.send_all(&ann, batch).await;
    let mut told: Vec<_> = sent.iter().map(told).collect();
    told.sort_unstable();
    assert_eq!(told, ["key reused", "sent"]);
    let sent = node.send_all(&ann, vec![(text("Once more"), once("k", 3))]).await;
    assert!(matches!(sent[0], Err(Error::IdempotencyKeyReused)));
    assert_eq!(node.balance(&ann).await, (900, 100));
    node.check().await;
}

async fn a_refused_request_frees_its_key_and_its_twin_is_refused_too(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 99).await;
    let twins = || [1, 1].map(|body| (text("Hello"), once("k", body))).into();
    let sent = node.send_all(&ann, twins()).await;
    assert_eq!(sent.iter().map(told).collect::<Vec<_>>(), ["no money", "no money"]);
    accounts::credit(&node.cx, ann.account, Amount(1), "").await.unwrap();
    let sent = node.send_all(&ann, twins()).await;
    let mut told: Vec<_> = sent.iter().map(told).collect();
    told.sort_unstable();
    assert_eq!(told, ["replayed", "sent"]);
    assert_eq!(node.balance(&ann).await, (0, 100));
    node.check().await;
}

async fn a_revoked_key_is_noticed_in_the_transaction(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let second = node.key(ann.account, Mode::Live).await;
    api_keys::revoke(&node.cx, &Actor::operator(ann.account), ann.key.unwrap()).await.unwrap();
    // The caller was recognised before; one batch holds both keys.
    let sent = node
        .writing(async |writer| {
            let send = |c, key| messages::send(&node.cx, &writer, c, text("Hi"), once(key, 1));
            let sent = tokio::join!(send(&ann, "k"), send(&second, "other"));
            [sent.0, sent.1]
        })
        .await;
    assert_eq!(sent.each_ref().map(told), ["key invalid", "sent"]);
    assert_eq!(node.balance(&second).await, (900, 100));
    // What was refused has not used up its idempotency key.
    let sent = node.send_all(&second, vec![(text("Hi"), once("k", 1))]).await;
    assert_eq!(told(&sent[0]), "sent");
    node.check().await;
}

async fn a_key_without_the_scope_is_noticed_in_the_transaction(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let reading = [Scope::Read].into_iter().collect();
    let what = (Mode::Live, reading);
    let by = Actor::operator(ann.account);
    let (key, _) = api_keys::create(&node.cx, &by, what, "reader", &[7; 64]).await.unwrap();
    let honest = Caller { key: Some(key), scopes: reading, ..(*ann).clone() };
    let sent = node.send_all(&honest, vec![(text("Hi"), None)]).await;
    assert!(matches!(sent[0], Err(Error::Scope("send"))), "{sent:?}");
    let stale = Caller { key: Some(key), ..(*ann).clone() };
    let sent = node.send_all(&stale, vec![(text("Hi"), None)]).await;
    assert_eq!(told(&sent[0]), "key invalid");
    assert_eq!(node.balance(&ann).await, (1_000, 0));
}

async fn what_cannot_be_sent_is_refused_before_anything_is_stored(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let short = messages::Send { max_parts: Some(1), ..parts(2) };
    let sent = node.send_all(&ann, vec![(short, once("k", 1))]).await;
    assert!(matches!(sent[0], Err(Error::TooManyParts { parts: 2, allowed: 1 })), "{sent:?}");
    let nowhere = Settings { routes: Routes::default(), ..(*node.cx.settings()).clone() };
    let (_, settings) = watch::channel(Arc::new(nowhere));
    let cx = Context { settings, ..node.cx.clone() };
    let sent =
        node.writing(async |w| messages::send(&cx, &w, &ann, text("Hi"), once("k", 1)).await).await;
    assert!(matches!(sent, Err(Error::DestinationNotAllowed)), "{sent:?}");
    let sent = node.send_all(&ann, vec![(text("Hi"), once("k", 9))]).await;
    assert_eq!(told(&sent[0]), "sent");
}

async fn too_much_at_once_is_refused(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let message = node.send_all(&ann, vec![(text("Hi"), None)]).await.pop().unwrap();
    let message = message.unwrap().message;
    let (writer, inbox) = writer::channel();
    let accept = || {
        let reply = oneshot::channel().0;
        Command::Accept(Accept { message: message.clone(), idempotency: None, reply })
    };
    while writer.try_send(accept()).is_ok() {}
    // Nobody writes: a sender is told so at once, and does not wait.
    let sent = messages::send(&node.cx, &writer, &ann, text("Hi"), None).await;
    assert!(is_overloaded(&sent), "{sent:?}");
    drop(inbox);
    let sent = messages::send(&node.cx, &writer, &ann, text("Hi"), None).await;
    assert!(is_overloaded(&sent), "{sent:?}");
    assert_eq!(node.balance(&ann).await, (900, 100));
}
