//! The mail outbox: a mail is retried by one node at a time, for at most a day.

use crate::node::Node;
use heliograph_service::identity::mails::{self, MailKind, MailOutcome, NewMail, OutgoingMail};
use heliograph_service::kernel::context::Context;
use heliograph_testing::TestDb;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

const ANN: &str = "ann@example.com";

async fn write(cx: &Context) {
    let mut tx = cx.db.write().await.unwrap();
    let mail = NewMail {
        kind: MailKind::Notice,
        recipient: ANN,
        subject: "A subject",
        body: "What is\nin it",
    };
    mails::send(cx, &mut tx, mail).await.unwrap();
    tx.commit().await.unwrap();
}

/// Claims the only mail, if it is due.
async fn due(cx: &Context) -> Option<OutgoingMail> {
    let mut all = mails::due(cx).await.unwrap();
    assert!(all.len() < 2, "{} mails", all.len());
    all.pop()
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_is_retried_with_back_off_for_a_day() {
    let db = TestDb::new().await;
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
        assert_eq!(mails::subject_and_body(&mail), ("A subject", "What is\nin it"));
        assert!(due(&cx).await.is_none(), "two nodes have the mail");
        let kept = mails::settle(&cx, &mail, MailOutcome::Retry).await.unwrap();
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
    assert!(due(&cx).await.is_none(), "the mail was not given up");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_mail_is_given_up_at_once() {
    let db = TestDb::new().await;
    let cx = Node::start(&db).await.cx;
    for (outcome, well) in [(MailOutcome::Rejected, false), (MailOutcome::Sent, true)] {
        write(&cx).await;
        let mail = due(&cx).await.unwrap();
        assert_eq!(mails::settle(&cx, &mail, outcome).await.unwrap(), well);
        db.clock.advance(seconds(86_400));
        assert!(due(&cx).await.is_none(), "{outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_of_a_crashed_node_is_sent_by_another() {
    let db = TestDb::new().await;
    let cx = Node::start(&db).await.cx;
    write(&cx).await;
    let first = due(&cx).await.unwrap();
    db.clock.advance(seconds(119));
    assert!(due(&cx).await.is_none(), "the lease of the first node is still valid");
    db.clock.advance(seconds(1));
    let second = due(&cx).await.unwrap();
    // The message id lets a mail server detect a duplicate.
    assert_eq!((second.id, second.tries), (first.id, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_mail_is_queued_without_a_mail_server() {
    let db = TestDb::new().await;
    let mut cx = Node::start(&db).await.cx;
    let mut settings = (*cx.settings()).clone();
    settings.sign_up.mail_enabled = false;
    (_, cx.settings) = watch::channel(Arc::new(settings));
    write(&cx).await;
    assert!(due(&cx).await.is_none());
}
