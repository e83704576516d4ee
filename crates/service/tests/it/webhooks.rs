//! Webhooks: what happens is told to those who listen, in the transaction in which it happens.

use crate::courier::{Courier, OK, choosy, ended, endpoint, events, rows, secret, waiting, wish};
use crate::node::{Node, accepted, delivered, outcome, parts, text};
use crate::support::{TestDb, on_both_engines};
use heliograph_domain::account::Mode;
use heliograph_domain::event::{Content, Kind};
use heliograph_domain::message::{Failure, FailureCode, Status};
use heliograph_domain::submission::Outcome;
use heliograph_domain::webhook::OffReason;
use heliograph_service::audit::Actor;
use heliograph_service::error::Error;
use heliograph_service::janitor;
use heliograph_service::webhooks::{self, Wish};
use heliograph_service::writer::{Command, Progress};
use std::time::Duration;
use tokio::sync::oneshot;

on_both_engines!(webhooks:
    an_end_is_told_to_who_listens,
    what_is_undone_was_never_told,
    what_nobody_takes_in_waits_in_the_table,
    a_doubled_receipt_makes_one_event,
    endpoints_share_one_event,
    everybody_is_told_only_what_they_chose,
    who_is_off_gets_events_and_no_deliveries,
    an_endpoint_whose_time_is_over_is_swept_away,
    what_is_removed_leaves_nothing_behind,
    what_waits_longer_than_its_event_is_kept_is_swept_away,
    a_url_that_leads_inside_is_refused,
    a_url_on_this_machine_is_for_listen_alone,
);

async fn an_end_is_told_to_who_listens(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let courier = Courier::open(&node, endpoint(&node, &ann).await).await;
    let id = ended(&node, &ann).await;
    let parcels = courier.arrived();
    assert_eq!((parcels.len(), rows(&db, "events").await), (1, 1));
    let (lease, event) = (&parcels[0].lease, parcels[0].event.clone());
    assert_eq!((lease.owner, lease.attempt, lease.tries), (node.cx.node, 1, 0));
    assert!(parcels[0].primary);
    let Content::Message(told) = &event.content else { panic!("{event:?}") };
    assert_eq!((told.message.id, told.state.status), (id, Status::Delivered));
    assert_eq!(&*told.currency, "EUR");
    assert_eq!((courier.desk.places(), waiting(&node, courier.id).await), (31, 1));
    assert_eq!(courier.collect(&node).await.len(), 0, "it is leased already");
    courier.answer(&node, parcels, OK).await;
    assert_eq!((courier.desk.places(), waiting(&node, courier.id).await), (32, 0));
    let outcome = webhooks::outcome(&node.cx, ann.account, event.id).await.unwrap();
    assert_eq!(outcome.first.map(|f| (f.outcome, f.duration)), Some((200, 7)));
    assert_eq!(outcome.attempts, []);
}

/// The money could not be moved: nothing at all has happened.
async fn what_is_undone_was_never_told(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let courier = Courier::open(&node, endpoint(&node, &ann).await).await;
    let id = node.send(&ann, text("Hello")).await;
    let held = node.arrived().pop().unwrap();
    let refused = Outcome::Refused(Failure::plain(FailureCode::RejectedContent));
    let settlements = vec![outcome(&held, refused)];
    db.behind("UPDATE accounts SET reserved = reserved - 100").await;
    let (reply, mut answer) = oneshot::channel();
    let news = Progress { settlements, ..Progress::default() };
    node.write(vec![Command::Progress(news, reply)]).await;
    let (_, news) = answer.try_recv().unwrap().unwrap_err();
    assert_eq!((rows(&db, "events").await, waiting(&node, courier.id).await), (0, 0));
    assert_eq!((courier.arrived().len(), courier.desk.places()), (0, 32));
    db.behind("UPDATE accounts SET reserved = reserved + 100").await;
    node.tell(news).await;
    assert_eq!((rows(&db, "events").await, waiting(&node, courier.id).await), (1, 1));
    let Content::Message(told) = courier.arrived().pop().unwrap().event.content.clone() else {
        panic!("it tells something else")
    };
    assert_eq!((told.message.id, told.state.status), (id, Status::Failed));
    node.check().await;
}

async fn what_nobody_takes_in_waits_in_the_table(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let id = endpoint(&node, &ann).await;
    ended(&node, &ann).await;
    let courier = Courier::idle(&node, id);
    ended(&node, &ann).await;
    assert_eq!(courier.arrived().len(), 0);
    courier.desk.set_bound(true);
    ended(&node, &ann).await;
    assert_eq!(courier.arrived().len(), 0, "nobody has looked yet what waits");
    let parcels = courier.collect(&node).await;
    assert_eq!((parcels.len(), waiting(&node, id).await), (3, 3));
    let last = ended(&node, &ann).await;
    let handed = courier.arrived();
    assert_eq!(handed.len(), 1, "nothing older waits");
    let Content::Message(told) = &handed[0].event.content else { panic!("{handed:?}") };
    assert_eq!(told.message.id, last);
    // What was claimed tells the same as what was handed over.
    drop(handed);
    db.clock.advance(Duration::from_secs(61));
    let again = courier.collect(&node).await;
    let Content::Message(found) = &again.last().unwrap().event.content else { panic!() };
    assert_eq!(again.len(), 4);
    assert_eq!(found.message.id, last);
    assert_eq!(parcels[0].event.render(), again[0].event.render(), "the same bytes each time");
}

async fn a_doubled_receipt_makes_one_event(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let courier = Courier::open(&node, endpoint(&node, &ann).await).await;
    node.send(&ann, parts(2)).await;
    let held = node.arrived().pop().unwrap();
    let taken = vec![(1, accepted("a")), (2, accepted("b"))];
    node.settle(vec![heliograph_service::dispatch::judge(&held.leased, taken)]).await;
    node.hear(vec![delivered("a"), delivered("a")]).await;
    assert_eq!(courier.arrived().len(), 0, "one part is missing");
    node.hear(vec![delivered("b"), delivered("a"), delivered("b")]).await;
    node.hear(vec![delivered("b"), delivered("a")]).await;
    assert_eq!((courier.arrived().len(), rows(&db, "events").await), (1, 1));
}

async fn endpoints_share_one_event(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let one = Courier::open(&node, endpoint(&node, &ann).await).await;
    let two = Courier::open(&node, endpoint(&node, &ann).await).await;
    ended(&node, &ann).await;
    let (ones, twos) = (one.arrived(), two.arrived());
    assert_eq!((events(&ones), ones.len()), (events(&twos), 1));
    assert!(ones[0].primary && !twos[0].primary);
    let id = ones[0].event.id;
    one.answer(&node, ones, OK).await;
    assert_eq!((waiting(&node, one.id).await, waiting(&node, two.id).await), (0, 1));
    two.answer(&node, twos, OK).await;
    let outcome = webhooks::outcome(&node.cx, ann.account, id).await.unwrap();
    assert_eq!(outcome.first.map(|f| f.outcome), Some(200));
    assert_eq!(outcome.attempts.iter().map(|a| a.endpoint).collect::<Vec<_>>(), [two.id]);
}

async fn everybody_is_told_only_what_they_chose(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    let bob = node.account("bob@example.com", 1_000).await;
    node.open().await;
    let others = [
        choosy(&node, &ann, Mode::Live, Kind::MessageFailed).await,
        choosy(&node, &ann, Mode::Test, Kind::MessageDelivered).await,
        endpoint(&node, &bob).await,
    ];
    ended(&node, &ann).await;
    assert_eq!(rows(&db, "events").await, 0, "nobody wants to know");
    let hers = choosy(&node, &ann, Mode::Live, Kind::MessageDelivered).await;
    ended(&node, &ann).await;
    assert_eq!((rows(&db, "events").await, waiting(&node, hers).await), (1, 1));
    for id in others {
        assert_eq!(waiting(&node, id).await, 0);
    }
}

async fn who_is_off_gets_events_and_no_deliveries(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let courier = Courier::open(&node, endpoint(&node, &ann).await).await;
    ended(&node, &ann).await;
    webhooks::switch_off(&node.cx, &courier.owner(&node).await, courier.id).await.unwrap();
    assert_eq!(waiting(&node, courier.id).await, 0, "what waited is dropped");
    ended(&node, &ann).await;
    assert_eq!((rows(&db, "events").await, waiting(&node, courier.id).await), (2, 0));
    assert_eq!(courier.endpoint(&node).await.off.map(|o| o.1), Some(OffReason::Owner));
    // What the courier still says of what it held harms nobody.
    let parcels = courier.arrived();
    courier.answer(&node, parcels, OK).await;
    webhooks::switch_on(&node.cx, &courier.owner(&node).await, courier.id).await.unwrap();
    ended(&node, &ann).await;
    assert_eq!((rows(&db, "events").await, waiting(&node, courier.id).await), (3, 1));
}

async fn an_endpoint_whose_time_is_over_is_swept_away(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let until = node.cx.db.now().after(Duration::from_secs(60));
    let wish = Wish { listening_until: Some(until), ..wish(&ann, "http://127.0.0.1:3000/") };
    let id =
        webhooks::add(&node.cx, &Actor::operator(ann.account), wish, secret()).await.unwrap().id;
    ended(&node, &ann).await;
    assert_eq!(waiting(&node, id).await, 1);
    db.clock.advance(Duration::from_secs(60));
    ended(&node, &ann).await;
    assert_eq!(waiting(&node, id).await, 1, "its time is over");
    janitor::sweep(&node.cx).await.unwrap();
    assert_eq!((rows(&db, "endpoints").await, rows(&db, "deliveries").await), (0, 0));
}

async fn what_is_removed_leaves_nothing_behind(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let courier = Courier::open(&node, endpoint(&node, &ann).await).await;
    ended(&node, &ann).await;
    let owner = courier.owner(&node).await;
    webhooks::remove(&node.cx, &owner, courier.id).await.unwrap();
    assert_eq!(rows(&db, "deliveries").await, 0);
    let again = webhooks::remove(&node.cx, &owner, courier.id).await;
    assert!(matches!(again, Err(Error::NotFound)), "{again:?}");
    // Another node, which did not know yet, lined something up after that.
    db.behind("INSERT INTO deliveries SELECT 77, 0, id, account, NULL, NULL, 0, 0 FROM events")
        .await;
    janitor::sweep(&node.cx).await.unwrap();
    assert_eq!((rows(&db, "deliveries").await, rows(&db, "events").await), (0, 1));
}

/// An old event was replayed to an endpoint that did not answer until the event was too old to be kept.
async fn what_waits_longer_than_its_event_is_kept_is_swept_away(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 1_000).await;
    node.open().await;
    let id = endpoint(&node, &ann).await;
    ended(&node, &ann).await;
    db.clock.advance(Duration::from_secs(30 * 86_400));
    ended(&node, &ann).await;
    janitor::sweep(&node.cx).await.unwrap();
    assert_eq!((rows(&db, "events").await, waiting(&node, id).await), (2, 2), "just so old");
    db.clock.advance(Duration::from_millis(1));
    janitor::sweep(&node.cx).await.unwrap();
    assert_eq!((rows(&db, "events").await, waiting(&node, id).await), (1, 1));
}

async fn a_url_that_leads_inside_is_refused(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 0).await;
    for (url, taken) in [
        ("https://example.com/hook", true),
        ("https://93.184.216.34:8443/", true),
        ("http://example.com/hook", false),
        ("https://inside.example.com/", false),
        ("https://both.example.com/", false),
        ("https://nowhere.example.com/", false),
        ("https://127.0.0.1/", false),
        ("https://0x7f000001/", false),
        ("https://[::1]/", false),
        ("https://[::ffff:10.0.0.1]/", false),
        ("https://169.254.169.254/latest/meta-data", false),
        ("ftp://example.com/", false),
        ("https://ann:secret@example.com/", false),
        ("example.com", false),
    ] {
        let done =
            webhooks::add(&node.cx, &Actor::operator(ann.account), wish(&ann, url), secret()).await;
        assert_eq!(done.is_ok(), taken, "{url}: {done:?}");
        assert!(taken || matches!(done, Err(Error::BadTarget(_))), "{url}: {done:?}");
    }
    assert_eq!(webhooks::list(&node.cx, ann.account).await.unwrap().len(), 2);
}

async fn a_url_on_this_machine_is_for_listen_alone(db: TestDb) {
    let node = Node::start(&db).await;
    let ann = node.account("ann@example.com", 0).await;
    let until = Some(node.cx.db.now().after(Duration::from_secs(60)));
    for (url, taken) in [
        ("http://127.0.0.1:3000/", true),
        ("http://[::1]:3000/", true),
        ("https://inside.example.com/", false),
        ("http://10.0.0.1/", false),
    ] {
        let wish = Wish { listening_until: until, ..wish(&ann, url) };
        let done = webhooks::add(&node.cx, &Actor::operator(ann.account), wish, secret()).await;
        assert_eq!(done.is_ok(), taken, "{url}: {done:?}");
    }
    assert!(webhooks::list(&node.cx, ann.account).await.unwrap().iter().all(|e| e.local));
}
