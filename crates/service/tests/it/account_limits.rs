//! The limits of accounts: defaults, overrides, and what happens when they are reached.

use crate::endpoint_worker::{new_endpoint, secret};
use crate::node::{Node, text};
use heliograph_domain::account::Mode;
use heliograph_domain::account_limit::{AccountLimit, AccountLimits};
use heliograph_domain::endpoint_error::InvalidEndpoint;
use heliograph_domain::id::AccountId;
use heliograph_service::audience::optouts::{self, OptoutImport, OptoutListRef};
use heliograph_service::identity::account_limits::{self, LimitUse};
use heliograph_service::kernel::account_limits as table;
use heliograph_service::kernel::audit::{self, Actor};
use heliograph_service::kernel::caller::Caller;
use heliograph_service::kernel::error::{Error, Result};
use heliograph_service::kernel::idempotency::{IdempotentOutcome, IdempotentRequest, OPTOUT_LISTS};
use heliograph_service::webhooks::endpoints::{self, NewEndpoint};
use heliograph_store::identity::accounts;
use heliograph_testing::TestDb;
use std::time::Duration;
use uuid::Uuid;

async fn set(node: &Node, account: AccountId, limit: AccountLimit, value: Option<u32>) {
    let by = Actor::operator(account);
    account_limits::change(&node.cx, &by, &[(limit, value)]).await.unwrap();
}

async fn shown(node: &Node, account: AccountId, limit: AccountLimit) -> LimitUse {
    let all = account_limits::list(&node.cx, account).await.unwrap();
    all.into_iter().find(|one| one.limit == limit).unwrap()
}

fn is_reached<T>(result: &Result<T>, expected: AccountLimit, value: u32) -> bool {
    matches!(result, Err(Error::LimitReached { limit, max }) if (*limit, *max) == (expected, value))
}

async fn self_registered(node: &Node, email: &str) -> Caller {
    let caller = node.account(email, 1_000).await;
    let mut tx = node.cx.db.write().await.unwrap();
    accounts::mark_self_registered(&mut tx, caller.account).await.unwrap();
    tx.commit().await.unwrap();
    Caller { mode: Mode::Test, ..(*caller).clone() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operator_overrides_limits_of_one_account() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 0).await.account;
    let bob = node.account("bob@example.com", 0).await.account;
    let limit = AccountLimit::EventStreams;
    set(&node, ann, limit, Some(7)).await;
    let max = |account| node.cx.limits.max(account, limit);
    assert_eq!((max(ann), max(bob)), (Some(7), Some(AccountLimits::default().get(limit))));
    assert!(
        shown(&node, ann, limit).await.overridden && !shown(&node, bob, limit).await.overridden
    );
    // Another node reads the change.
    let other = Node::with(&db, db.reopen().await, 2, 32).await;
    table::refresh(&other.cx.db, &other.cx.limits).await.unwrap();
    assert_eq!(other.cx.limits.max(ann, limit), Some(7));
    set(&node, ann, limit, Some(0)).await;
    assert_eq!(max(ann), None, "0 means no limit");
    set(&node, ann, limit, None).await;
    set(&node, ann, limit, None).await;
    assert_eq!(max(ann), max(bob));
    let newest = heliograph_domain::id::AuditId(Uuid::max());
    let log = audit::list(&node.cx, ann, newest, 3).await.unwrap();
    let details: Vec<_> = log.iter().map(|(entry, _)| entry.detail.as_str()).collect();
    assert_eq!(details, ["event_streams = default", "event_streams = 0", "event_streams = 7"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_has_few_endpoints_in_each_mode_and_no_url_twice() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 0).await;
    let limit = AccountLimit::WebhookEndpoints;
    set(&node, ann.account, limit, Some(2)).await;
    let add = async |mode: Mode, url: &str| {
        let new = NewEndpoint { mode, ..new_endpoint(&ann, url) };
        endpoints::add(&node.cx, &Actor::operator(ann.account), new, secret()).await
    };
    let first = add(Mode::Live, "https://example.com/a").await.unwrap().id;
    let again = add(Mode::Live, "https://EXAMPLE.com:443/a").await;
    assert!(
        matches!(&again, Err(Error::InvalidEndpoint(InvalidEndpoint::Duplicate(id))) if *id == first),
        "{again:?}"
    );
    add(Mode::Live, "https://example.com/b").await.unwrap();
    let third = add(Mode::Live, "https://example.com/c").await;
    assert!(is_reached(&third, limit, 2), "{third:?}");
    add(Mode::Test, "https://example.com/a").await.unwrap();
    assert_eq!(shown(&node, ann.account, limit).await.used, Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_messages_of_self_registered_accounts_are_limited_by_default() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = self_registered(&node, "ann@example.com").await;
    let limit = AccountLimit::TestMessagesPerDay;
    let value = AccountLimits::default().get(limit);
    assert_eq!(shown(&node, ann.account, limit).await.max, Some(value));
    let bob = node.account("bob@example.com", 0).await;
    assert_eq!(shown(&node, bob.account, limit).await.max, None, "the operator created it");
    set(&node, ann.account, limit, Some(2)).await;
    let three = vec![(text("Hello"), None), (text("Hello"), None), (text("Hello"), None)];
    let sent = node.send_all(&ann, three).await;
    assert!(sent[0].is_ok() && sent[1].is_ok() && is_reached(&sent[2], limit, 2), "{sent:?}");
    assert_eq!(shown(&node, ann.account, limit).await.used, Some(2));
    // Another node, and this one after a minute, count from what is stored.
    let other = Node::with(&db, db.reopen().await, 2, 32).await;
    table::refresh(&other.cx.db, &other.cx.limits).await.unwrap();
    let sent = other.send_all(&ann, vec![(text("Hello"), None)]).await;
    assert!(is_reached(&sent[0], limit, 2), "{sent:?}");
    db.clock.advance(Duration::from_secs(61));
    let sent = node.send_all(&ann, vec![(text("Hello"), None)]).await;
    assert!(is_reached(&sent[0], limit, 2), "{sent:?}");
    db.clock.advance(Duration::from_secs(86_400));
    node.send(&ann, text("Hello")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_rows_are_limited() {
    let db = TestDb::new().await;
    let node = Node::start(&db).await;
    let ann = self_registered(&node, "ann@example.com").await;
    let limit = AccountLimit::StoredRows;
    set(&node, ann.account, limit, Some(3)).await;
    let import = async |numbers: &[u64]| {
        let numbers = numbers.iter().map(|n| (format!("+4477009001{n:02}").parse().unwrap(), None));
        let keep = |_: &usize| String::new();
        let asked = IdempotentRequest::new(&ann, OPTOUT_LISTS, "", None, &keep);
        let import = OptoutImport { numbers: numbers.collect(), by: None };
        let done = optouts::import(&node.cx, &ann, OptoutListRef::Default, import, asked).await;
        done.map(|done| matches!(done, IdempotentOutcome::Fresh(_)))
    };
    import(&[1, 2]).await.unwrap();
    let more = import(&[3, 4]).await;
    assert!(is_reached(&more, limit, 3), "{more:?}");
    node.send(&ann, text("Hello")).await;
    let sent = node.send_all(&ann, vec![(text("Hello"), None)]).await;
    assert!(is_reached(&sent[0], limit, 3), "{sent:?}");
    assert_eq!(shown(&node, ann.account, limit).await.used, Some(3));
    let live = Caller { mode: Mode::Live, ..ann.clone() };
    node.send(&live, text("Paid messages are not limited")).await;
}
