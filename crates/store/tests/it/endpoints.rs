//! Tests of endpoints: subscriptions, secrets and when an endpoint is disabled.

use crate::fixtures::{account, at};
use crate::webhook_fixtures::{endpoint, register, secret};
use heliograph_domain::account::Mode;
use heliograph_domain::endpoint_error::DisabledReason;
use heliograph_domain::event::EventKind;
use heliograph_domain::id::{AccountId, EndpointId};
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::{EventKinds, WebhookEndpoint};
use heliograph_store::Tx;
use heliograph_store::webhooks::endpoints::{self, SubscribedEndpoint};
use heliograph_testing::{START, TestDb};

async fn get(db: &TestDb, id: EndpointId) -> WebhookEndpoint {
    let mut conn = db.db.read().await.unwrap();
    endpoints::by_id(&mut conn, id).await.unwrap().unwrap()
}

/// Runs `work` in its own transaction.
async fn done<T>(
    db: &TestDb,
    work: impl AsyncFnOnce(&mut Tx) -> heliograph_store::StoreResult<T>,
) -> T {
    let mut tx = db.db.write().await.unwrap();
    let done = work(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    done
}

async fn listening(db: &TestDb, accounts: &[AccountId], now: Timestamp) -> Vec<SubscribedEndpoint> {
    let mut conn = db.db.read().await.unwrap();
    let mut all = endpoints::subscribed(&mut conn, accounts, now).await.unwrap();
    all.sort_by_key(|l| l.id.0);
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_reads_back_as_it_was_registered() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let all = [
        endpoint(ann),
        WebhookEndpoint {
            mode: Mode::Test,
            url: "http://127.0.0.1:3000/ü?a=b".to_owned(),
            kinds: [EventKind::MessageReceived].into_iter().collect(),
            secret: secret(9),
            local: true,
            created_at: at(7),
            expires_at: Some(at(77)),
            ..endpoint(ann)
        },
        WebhookEndpoint { kinds: EventKinds::from_bits(0), ..endpoint(ann) },
    ];
    for wanted in all {
        let id = register(&db, &wanted).await;
        assert_eq!(get(&db, id).await, WebhookEndpoint { id, ..wanted });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_sees_its_own_endpoints_in_their_order() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let mut all = Vec::new();
    for owner in [ann, bob, ann] {
        all.push(register(&db, &endpoint(owner)).await);
    }
    let mut conn = db.db.read().await.unwrap();
    for (owner, expected) in [(ann, vec![all[0], all[2]]), (bob, vec![all[1]])] {
        let found = endpoints::list(&mut conn, owner).await.unwrap();
        assert_eq!(found.iter().map(|e| e.id).collect::<Vec<_>>(), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_unexpired_endpoints_of_the_accounts_are_subscribed() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let zoe = account(&db, "zoe@example.com", 0).await;
    let forever = register(&db, &endpoint(ann)).await;
    let until = WebhookEndpoint { expires_at: Some(at(10)), mode: Mode::Test, ..endpoint(bob) };
    let for_a_while = register(&db, &until).await;
    register(&db, &endpoint(zoe)).await;
    for (seconds, expected) in
        [(0, vec![forever, for_a_while]), (9, vec![forever, for_a_while]), (10, vec![forever])]
    {
        let found = listening(&db, &[ann, bob], at(seconds)).await;
        assert_eq!(found.iter().map(|l| l.id).collect::<Vec<_>>(), expected, "{seconds} s");
    }
    let found = listening(&db, &[bob], START).await.pop().unwrap();
    assert_eq!((found.account, found.mode, found.currency.as_str()), (bob, Mode::Test, "EUR"));
    assert_eq!((found.kinds, found.off), (EventKinds::ALL, false));
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(endpoints::expired(&mut conn, at(9)).await.unwrap(), []);
    assert_eq!(endpoints::expired(&mut conn, at(10)).await.unwrap(), [for_a_while]);
    drop(conn);
    assert!(done(&db, async |tx| endpoints::extend(tx, for_a_while, at(20)).await).await);
    assert_eq!(listening(&db, &[bob], at(19)).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disabled_endpoint_is_subscribed_and_marked() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let id = register(&db, &endpoint(ann)).await;
    done(&db, async |tx| endpoints::disable(tx, id, DisabledReason::Manual, at(1)).await).await;
    let off = |found: Vec<SubscribedEndpoint>| found.iter().map(|l| l.off).collect::<Vec<_>>();
    assert_eq!(off(listening(&db, &[ann], at(2)).await), [true]);
    done(&db, async |tx| endpoints::enable(tx, id).await).await;
    assert_eq!(off(listening(&db, &[ann], at(2)).await), [false]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_keeps_both_secrets() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let id = register(&db, &endpoint(ann)).await;
    for (next, until) in [(2, at(10)), (3, at(20))] {
        assert!(
            done(&db, async |tx| endpoints::rotate_secret(tx, id, &secret(next), until).await)
                .await
        );
        let now = get(&db, id).await;
        assert_eq!(now.secret, secret(next));
        assert_eq!(now.old_secret, Some((secret(next - 1), until)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_failure_is_kept_until_a_success() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let id = register(&db, &endpoint(ann)).await;
    for seconds in [3, 9] {
        done(&db, async |tx| endpoints::mark_failing(tx, id, at(seconds)).await).await;
        assert_eq!(get(&db, id).await.failing_since, Some(at(3)));
    }
    for _ in 0..2 {
        done(&db, async |tx| endpoints::mark_working(tx, id).await).await;
        assert_eq!(get(&db, id).await.failing_since, None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_that_failed_for_too_long_is_disabled() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let id = register(&db, &endpoint(ann)).await;
    let give_up = async |limit| {
        done(&db, async |tx| endpoints::disable_if_failing(tx, id, at(limit), at(99)).await).await
    };
    assert!(!give_up(50).await, "the endpoint never failed");
    done(&db, async |tx| endpoints::mark_failing(tx, id, at(10)).await).await;
    assert!(!give_up(9).await);
    assert_eq!(get(&db, id).await.off, None);
    assert!(give_up(10).await);
    assert_eq!(get(&db, id).await.off, Some((at(99), DisabledReason::Failing)));
    assert!(!give_up(10).await, "the endpoint is disabled already");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disabled_endpoint_keeps_the_first_reason() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let id = register(&db, &endpoint(ann)).await;
    for (reason, seconds, changes) in [
        (DisabledReason::Gone, 5, true),
        (DisabledReason::Manual, 6, false),
        (DisabledReason::Failing, 7, false),
    ] {
        let off = async |tx: &mut Tx| endpoints::disable(tx, id, reason, at(seconds)).await;
        assert_eq!(done(&db, off).await, changes);
        assert_eq!(get(&db, id).await.off, Some((at(5), DisabledReason::Gone)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn enabling_clears_the_failures() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let id = register(&db, &endpoint(ann)).await;
    let before = get(&db, id).await;
    done(&db, async |tx| endpoints::mark_failing(tx, id, at(1)).await).await;
    done(&db, async |tx| endpoints::disable_if_failing(tx, id, at(1), at(2)).await).await;
    assert!(done(&db, async |tx| endpoints::enable(tx, id).await).await);
    assert_eq!(get(&db, id).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_to_unknown_endpoints_do_nothing() {
    let db = TestDb::new().await;
    let ann = account(&db, "ann@example.com", 0).await;
    let id = register(&db, &endpoint(ann)).await;
    assert!(done(&db, async |tx| endpoints::delete(tx, id).await).await);
    let mut tx = db.db.write().await.unwrap();
    assert!(!endpoints::delete(&mut tx, id).await.unwrap());
    assert!(!endpoints::rotate_secret(&mut tx, id, &secret(2), at(1)).await.unwrap());
    assert!(!endpoints::disable(&mut tx, id, DisabledReason::Gone, at(1)).await.unwrap());
    assert!(!endpoints::enable(&mut tx, id).await.unwrap());
    assert!(!endpoints::extend(&mut tx, id, at(1)).await.unwrap());
    assert_eq!(endpoints::by_id(&mut tx, id).await.unwrap(), None);
}
