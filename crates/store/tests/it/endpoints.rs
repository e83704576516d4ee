//! Endpoints: who is told, with which secret, and when one is given up.

use crate::rows::{account, at};
use crate::support::{BEGIN, TestDb, on_both_engines};
use crate::webhook_rows::{endpoint, registered, secret};
use heliograph_domain::account::Mode;
use heliograph_domain::event::Kind;
use heliograph_domain::id::{AccountId, EndpointId};
use heliograph_domain::time::Timestamp;
use heliograph_domain::webhook::{Endpoint, Kinds, OffReason};
use heliograph_store::Tx;
use heliograph_store::endpoints::{self, Listener};

on_both_engines!(endpoints:
    an_endpoint_reads_back_as_it_was_registered,
    an_account_sees_its_own_endpoints_in_their_order,
    those_listen_whose_account_is_asked_for_and_whose_time_is_not_over,
    who_is_off_listens_and_is_marked,
    after_a_rotation_both_secrets_are_there,
    the_first_failure_is_remembered_until_a_success,
    who_only_failed_for_too_long_is_given_up,
    who_is_switched_off_keeps_the_first_reason,
    switched_on_again_the_record_is_clean,
    what_is_done_to_nobody_changes_nothing,
);

async fn get(db: &TestDb, id: EndpointId) -> Endpoint {
    let mut conn = db.db.read().await.unwrap();
    endpoints::by_number(&mut conn, id).await.unwrap().unwrap()
}

/// Does something in a transaction of its own.
async fn done<T>(db: &TestDb, work: impl AsyncFnOnce(&mut Tx) -> heliograph_store::Result<T>) -> T {
    let mut tx = db.db.write().await.unwrap();
    let done = work(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    done
}

async fn listening(db: &TestDb, accounts: &[AccountId], now: Timestamp) -> Vec<Listener> {
    let mut conn = db.db.read().await.unwrap();
    let mut all = endpoints::listening(&mut conn, accounts, now).await.unwrap();
    all.sort_by_key(|l| l.id.0);
    all
}

async fn an_endpoint_reads_back_as_it_was_registered(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let all = [
        endpoint(ann),
        Endpoint {
            mode: Mode::Test,
            url: "http://127.0.0.1:3000/ü?a=b".to_owned(),
            kinds: [Kind::MessageReceived].into_iter().collect(),
            secret: secret(9),
            local: true,
            created_at: at(7),
            expires_at: Some(at(77)),
            ..endpoint(ann)
        },
        Endpoint { kinds: Kinds::from_bits(0), ..endpoint(ann) },
    ];
    for wanted in all {
        let id = registered(&db, &wanted).await;
        assert_eq!(get(&db, id).await, Endpoint { id, ..wanted });
    }
}

async fn an_account_sees_its_own_endpoints_in_their_order(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let mut all = Vec::new();
    for owner in [ann, bob, ann] {
        all.push(registered(&db, &endpoint(owner)).await);
    }
    let mut conn = db.db.read().await.unwrap();
    for (owner, expected) in [(ann, vec![all[0], all[2]]), (bob, vec![all[1]])] {
        let found = endpoints::of(&mut conn, owner).await.unwrap();
        assert_eq!(found.iter().map(|e| e.id).collect::<Vec<_>>(), expected);
    }
}

async fn those_listen_whose_account_is_asked_for_and_whose_time_is_not_over(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let bob = account(&db, "bob@example.com", 0).await;
    let zoe = account(&db, "zoe@example.com", 0).await;
    let forever = registered(&db, &endpoint(ann)).await;
    let until = Endpoint { expires_at: Some(at(10)), mode: Mode::Test, ..endpoint(bob) };
    let for_a_while = registered(&db, &until).await;
    registered(&db, &endpoint(zoe)).await;
    for (seconds, expected) in
        [(0, vec![forever, for_a_while]), (9, vec![forever, for_a_while]), (10, vec![forever])]
    {
        let found = listening(&db, &[ann, bob], at(seconds)).await;
        assert_eq!(found.iter().map(|l| l.id).collect::<Vec<_>>(), expected, "{seconds} s");
    }
    let found = listening(&db, &[bob], BEGIN).await.pop().unwrap();
    assert_eq!((found.account, found.mode, found.currency.as_str()), (bob, Mode::Test, "EUR"));
    assert_eq!((found.kinds, found.off), (Kinds::ALL, false));
    let mut conn = db.db.read().await.unwrap();
    assert_eq!(endpoints::expired(&mut conn, at(9)).await.unwrap(), []);
    assert_eq!(endpoints::expired(&mut conn, at(10)).await.unwrap(), [for_a_while]);
    drop(conn);
    assert!(done(&db, async |tx| endpoints::keep(tx, for_a_while, at(20)).await).await);
    assert_eq!(listening(&db, &[bob], at(19)).await.len(), 1);
}

async fn who_is_off_listens_and_is_marked(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let id = registered(&db, &endpoint(ann)).await;
    done(&db, async |tx| endpoints::switch_off(tx, id, OffReason::Owner, at(1)).await).await;
    let off = |found: Vec<Listener>| found.iter().map(|l| l.off).collect::<Vec<_>>();
    assert_eq!(off(listening(&db, &[ann], at(2)).await), [true]);
    done(&db, async |tx| endpoints::switch_on(tx, id).await).await;
    assert_eq!(off(listening(&db, &[ann], at(2)).await), [false]);
}

async fn after_a_rotation_both_secrets_are_there(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let id = registered(&db, &endpoint(ann)).await;
    for (next, until) in [(2, at(10)), (3, at(20))] {
        assert!(done(&db, async |tx| endpoints::rotate(tx, id, &secret(next), until).await).await);
        let now = get(&db, id).await;
        assert_eq!(now.secret, secret(next));
        assert_eq!(now.old_secret, Some((secret(next - 1), until)));
    }
}

async fn the_first_failure_is_remembered_until_a_success(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let id = registered(&db, &endpoint(ann)).await;
    for seconds in [3, 9] {
        done(&db, async |tx| endpoints::failing(tx, id, at(seconds)).await).await;
        assert_eq!(get(&db, id).await.failing_since, Some(at(3)));
    }
    for _ in 0..2 {
        done(&db, async |tx| endpoints::working(tx, id).await).await;
        assert_eq!(get(&db, id).await.failing_since, None);
    }
}

async fn who_only_failed_for_too_long_is_given_up(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let id = registered(&db, &endpoint(ann)).await;
    let give_up = async |limit| {
        done(&db, async |tx| endpoints::give_up(tx, id, at(limit), at(99)).await).await
    };
    assert!(!give_up(50).await, "it never failed");
    done(&db, async |tx| endpoints::failing(tx, id, at(10)).await).await;
    assert!(!give_up(9).await);
    assert_eq!(get(&db, id).await.off, None);
    assert!(give_up(10).await);
    assert_eq!(get(&db, id).await.off, Some((at(99), OffReason::Failing)));
    assert!(!give_up(10).await, "it is off already");
}

async fn who_is_switched_off_keeps_the_first_reason(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let id = registered(&db, &endpoint(ann)).await;
    for (reason, seconds, changes) in
        [(OffReason::Gone, 5, true), (OffReason::Owner, 6, false), (OffReason::Failing, 7, false)]
    {
        let off = async |tx: &mut Tx| endpoints::switch_off(tx, id, reason, at(seconds)).await;
        assert_eq!(done(&db, off).await, changes);
        assert_eq!(get(&db, id).await.off, Some((at(5), OffReason::Gone)));
    }
}

async fn switched_on_again_the_record_is_clean(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let id = registered(&db, &endpoint(ann)).await;
    let before = get(&db, id).await;
    done(&db, async |tx| endpoints::failing(tx, id, at(1)).await).await;
    done(&db, async |tx| endpoints::give_up(tx, id, at(1), at(2)).await).await;
    assert!(done(&db, async |tx| endpoints::switch_on(tx, id).await).await);
    assert_eq!(get(&db, id).await, before);
}

async fn what_is_done_to_nobody_changes_nothing(db: TestDb) {
    let ann = account(&db, "ann@example.com", 0).await;
    let id = registered(&db, &endpoint(ann)).await;
    assert!(done(&db, async |tx| endpoints::remove(tx, id).await).await);
    let mut tx = db.db.write().await.unwrap();
    assert!(!endpoints::remove(&mut tx, id).await.unwrap());
    assert!(!endpoints::rotate(&mut tx, id, &secret(2), at(1)).await.unwrap());
    assert!(!endpoints::switch_off(&mut tx, id, OffReason::Gone, at(1)).await.unwrap());
    assert!(!endpoints::switch_on(&mut tx, id).await.unwrap());
    assert!(!endpoints::keep(&mut tx, id, at(1)).await.unwrap());
    assert_eq!(endpoints::by_number(&mut tx, id).await.unwrap(), None);
}
