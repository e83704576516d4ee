//! The outbox: a mail is tried until it has gone or a day is over, by one node at a time.

use crate::node::Node;
use crate::support::{TestDb, on_both_engines};
use heliograph_service::context::Context;
use heliograph_service::mails::{self, Mail, Outcome};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

on_both_engines!(mails:
    a_mail_is_tried_again_ever_more_rarely_for_a_day,
    what_nobody_will_take_is_given_up_at_once,
    a_mail_whose_node_died_is_taken_by_another,
    without_a_mail_server_nothing_is_queued,
);

const ANN: &str = "ann@example.com";

async fn write(cx: &Context) {
    let mut tx = cx.db.write().await.unwrap();
    mails::send(cx, &mut tx, ANN, ("A subject", "What is\nin it")).await.unwrap();
    tx.commit().await.unwrap();
}

/// The one mail that is due, if it is.
async fn due(cx: &Context) -> Option<Mail> {
    let mut all = mails::due(cx).await.unwrap();
    assert!(all.len() < 2, "{} mails", all.len());
    all.pop()
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

async fn a_mail_is_tried_again_ever_more_rarely_for_a_day(db: TestDb) {
    let cx = Node::start(&db).await.cx;
    write(&cx).await;
    let begun = cx.db.now();
    let mut mail = due(&cx).await.unwrap();
    let mut gaps = Vec::new();
    loop {
        assert_eq!(
            (mail.recipient.as_str(), usize::try_from(mail.tries)),
            (ANN, Ok(gaps.len() + 1))
        );
        assert_eq!(mails::parts(&mail), ("A subject", "What is\nin it"));
        assert!(due(&cx).await.is_none(), "two nodes have it");
        let kept = mails::settle(&cx, &mail, Outcome::Later).await.unwrap();
        let age = cx.db.now().millis() - begun.millis();
        assert_eq!(kept, age < 86_400_000, "after {age} ms");
        if !kept {
            break;
        }
        gaps.push(0);
        mail = loop {
            db.clock.advance(seconds(10));
            *gaps.last_mut().unwrap() += 10;
            if let Some(mail) = due(&cx).await {
                break mail;
            }
        };
    }
    assert_eq!(gaps[..9], [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560]);
    assert!(gaps[9..].iter().all(|gap| *gap == 3_600), "{gaps:?}");
    db.clock.advance(seconds(86_400));
    assert!(due(&cx).await.is_none(), "it was given up");
}

async fn what_nobody_will_take_is_given_up_at_once(db: TestDb) {
    let cx = Node::start(&db).await.cx;
    for (outcome, well) in [(Outcome::Refused, false), (Outcome::Sent, true)] {
        write(&cx).await;
        let mail = due(&cx).await.unwrap();
        assert_eq!(mails::settle(&cx, &mail, outcome).await.unwrap(), well);
        db.clock.advance(seconds(86_400));
        assert!(due(&cx).await.is_none(), "{outcome:?}");
    }
}

async fn a_mail_whose_node_died_is_taken_by_another(db: TestDb) {
    let cx = Node::start(&db).await.cx;
    write(&cx).await;
    let first = due(&cx).await.unwrap();
    db.clock.advance(seconds(119));
    assert!(due(&cx).await.is_none(), "the first may be at it still");
    db.clock.advance(seconds(1));
    let second = due(&cx).await.unwrap();
    // By the id a mail server can tell that it has it already.
    assert_eq!((second.id, second.tries), (first.id, 2));
}

async fn without_a_mail_server_nothing_is_queued(db: TestDb) {
    let mut cx = Node::start(&db).await.cx;
    let mut settings = (*cx.settings()).clone();
    settings.entrance.mail = false;
    (_, cx.settings) = watch::channel(Arc::new(settings));
    write(&cx).await;
    assert!(due(&cx).await.is_none());
}
