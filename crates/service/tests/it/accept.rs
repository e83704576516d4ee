//! Accepting messages: permissions, idempotency and balance.

use crate::node::{Node, idempotency_key, is_overloaded, parts, text};
use heliograph_domain::account::{Mode, Scope};
use heliograph_domain::carrier::RoutingTable;
use heliograph_domain::fields::{CreditNote, MaxParts};
use heliograph_domain::money::Amount;
use heliograph_domain::rate::Rates;
use heliograph_service::identity::accounts;
use heliograph_service::identity::api_keys::{self, KeySpec};
use heliograph_service::kernel::audit::Actor;
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::commands::accept::Accept;
use heliograph_service::kernel::commands::command::Command;
use heliograph_service::kernel::context::{Context, Settings};
use heliograph_service::kernel::error::{DestinationReason, Error, Result};
use heliograph_service::kernel::writer;
use heliograph_service::messaging::messages::{self, SendResult};
use heliograph_testing::TestDb;
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

fn summary(sent: &Result<SendResult>) -> &'static str {
    match sent {
        Ok(sent) if sent.replayed => "replayed",
        Ok(_) => "sent",
        Err(Error::PriceNotCovered(_)) => "no money",
        Err(Error::IdempotencyKeyReused) => "key reused",
        Err(Error::Unauthenticated) => "key invalid",
        Err(e) => panic!("unexpected: {e}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sends_are_accepted_until_the_balance_is_used_up() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 350).await;
    let batch = [1, 3, 1, 2, 1, 1].map(|n| (parts(n), None)).into();
    let sent = node.send_all(&ann, batch).await;
    let summary: Vec<_> = sent.iter().map(summary).collect();
    assert_eq!(summary, ["sent", "no money", "sent", "no money", "sent", "no money"]);
    assert_eq!(node.balance(&ann).await, (50, 300));
    node.dispatch_queue.set_available(true);
    assert_eq!(node.claim().await.len(), 3);
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn balances_of_accounts_are_separate() {
    let db = TestDb::new().await;
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
    assert_eq!(sent.each_ref().map(summary), ["sent", "no money", "sent"]);
    assert_eq!(node.balance(&ann).await, (800, 200));
    assert_eq!(node.balance(&bob).await, (99, 0));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_request_is_replayed() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 150).await;
    let mut ids = Vec::new();
    for expected in ["sent", "replayed", "replayed"] {
        let sent = node
            .send_all(&ann, vec![(text("Hello"), idempotency_key("k", 1))])
            .await
            .pop()
            .unwrap();
        assert_eq!(summary(&sent), expected);
        ids.push(sent.unwrap().message.id);
    }
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(node.balance(&ann).await, (50, 100));
    // Idempotency keys are separate for each account and mode.
    let bob = node.account("bob@example.com", 150).await;
    let testing = node.key(ann.account, Mode::Test).await;
    for caller in [&bob, &testing] {
        let sent = node.send_all(caller, vec![(text("Hello"), idempotency_key("k", 2))]).await;
        assert_eq!(summary(&sent[0]), "sent");
    }
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicates_in_one_batch_create_one_message() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let batch =
        ["twin", "other", "twin"].map(|key| (text("Hello"), idempotency_key(key, 1))).into();
    let sent = node.send_all(&ann, batch).await;
    let mut summary: Vec<_> = sent.iter().map(summary).collect();
    let ids: Vec<_> = sent.iter().map(|s| s.as_ref().unwrap().message.id).collect();
    assert!(ids[0] == ids[2] && ids[0] != ids[1], "{ids:?}");
    summary.sort_unstable();
    assert_eq!(summary, ["replayed", "sent", "sent"]);
    assert_eq!(node.balance(&ann).await, (800, 200));
    node.dispatch_queue.set_available(true);
    assert_eq!(node.claim().await.len(), 2);
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idempotency_key_reused_for_another_request_is_refused() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let batch =
        vec![(text("Hello"), idempotency_key("k", 1)), (text("Bye"), idempotency_key("k", 2))];
    let sent = node.send_all(&ann, batch).await;
    let mut summary: Vec<_> = sent.iter().map(summary).collect();
    summary.sort_unstable();
    assert_eq!(summary, ["key reused", "sent"]);
    let sent = node.send_all(&ann, vec![(text("Once more"), idempotency_key("k", 3))]).await;
    assert!(matches!(sent[0], Err(Error::IdempotencyKeyReused)));
    assert_eq!(node.balance(&ann).await, (900, 100));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_request_frees_its_idempotency_key() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 99).await;
    let twins = || [1, 1].map(|body| (text("Hello"), idempotency_key("k", body))).into();
    let sent = node.send_all(&ann, twins()).await;
    assert_eq!(sent.iter().map(summary).collect::<Vec<_>>(), ["no money", "no money"]);
    accounts::credit(&node.cx, &Actor::operator(ann.account), Amount(1), &CreditNote::default())
        .await
        .unwrap();
    let sent = node.send_all(&ann, twins()).await;
    let mut summary: Vec<_> = sent.iter().map(summary).collect();
    summary.sort_unstable();
    assert_eq!(summary, ["replayed", "sent"]);
    assert_eq!(node.balance(&ann).await, (0, 100));
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoked_api_key_is_checked_in_the_transaction() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let second = node.key(ann.account, Mode::Live).await;
    api_keys::revoke(&node.cx, &Actor::operator(ann.account), ann.key.unwrap()).await.unwrap();
    // The caller was authenticated before; one batch contains sends with both keys.
    let sent = node
        .writing(async |writer| {
            let send =
                |c, key| messages::send(&node.cx, &writer, c, text("Hi"), idempotency_key(key, 1));
            let sent = tokio::join!(send(&ann, "k"), send(&second, "other"));
            [sent.0, sent.1]
        })
        .await;
    assert_eq!(sent.each_ref().map(summary), ["key invalid", "sent"]);
    assert_eq!(node.balance(&second).await, (900, 100));
    // A refused request does not use up its idempotency key.
    let sent = node.send_all(&second, vec![(text("Hi"), idempotency_key("k", 1))]).await;
    assert_eq!(summary(&sent[0]), "sent");
    node.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scope_is_checked_in_the_transaction() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let reading = [Scope::Read].into_iter().collect();
    let name = "reader".parse().unwrap();
    let spec = KeySpec { mode: Mode::Live, scopes: reading, name: &name };
    let by = Actor::operator(ann.account);
    let (key, _) = api_keys::create(&node.cx, &by, spec, &[7; 64]).await.unwrap();
    let honest = Caller { key: Some(key), scopes: reading, ..(*ann).clone() };
    let sent = node.send_all(&honest, vec![(text("Hi"), None)]).await;
    assert!(matches!(sent[0], Err(Error::Scope("send"))), "{sent:?}");
    let stale = Caller { key: Some(key), ..(*ann).clone() };
    let sent = node.send_all(&stale, vec![(text("Hi"), None)]).await;
    assert_eq!(summary(&sent[0]), "key invalid");
    assert_eq!(node.balance(&ann).await, (1_000, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_sends_are_refused_before_anything_is_stored() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let short = messages::SendRequest { max_parts: MaxParts::try_from(1).ok(), ..parts(2) };
    let sent = node.send_all(&ann, vec![(short, idempotency_key("k", 1))]).await;
    assert!(matches!(sent[0], Err(Error::TooManyParts { parts: 2, allowed: 1 })), "{sent:?}");
    let settings = node.cx.settings();
    let no_route = Settings { routes: RoutingTable::default(), ..(*settings).clone() };
    let no_price = Settings { rates: Rates::default(), ..(*settings).clone() };
    for (settings, reason) in
        [(no_route, DestinationReason::NoRoute), (no_price, DestinationReason::NoPrice)]
    {
        let (_, settings) = watch::channel(Arc::new(settings));
        let cx = Context { settings, ..node.cx.clone() };
        let key = || idempotency_key("k", 1);
        let sent =
            node.writing(async |w| messages::send(&cx, &w, &ann, text("Hi"), key()).await).await;
        let refused = matches!(&sent, Err(Error::DestinationNotAllowed(r)) if *r == reason);
        assert!(refused, "{reason:?}: {sent:?}");
    }
    let sent = node.send_all(&ann, vec![(text("Hi"), idempotency_key("k", 9))]).await;
    assert_eq!(summary(&sent[0]), "sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sends_beyond_the_queue_limit_are_refused() {
    let db = TestDb::new().await;
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
    // No writer runs: a send fails at once and does not wait.
    let sent = messages::send(&node.cx, &writer, &ann, text("Hi"), None).await;
    assert!(is_overloaded(&sent), "{sent:?}");
    drop(inbox);
    let sent = messages::send(&node.cx, &writer, &ann, text("Hi"), None).await;
    assert!(is_overloaded(&sent), "{sent:?}");
    assert_eq!(node.balance(&ann).await, (900, 100));
}
