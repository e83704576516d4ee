//! A commit whose answer is lost: it is looked for, and whatever became of it, everything happens
//! once.
//!
//! A tap between the node and PostgreSQL cuts the line at a COMMIT, either before the server has
//! heard it or after.

use crate::courier::{Courier, endpoint, rows};
use crate::node::{Node, accepted, outcome, parts, text};
use crate::people;
use crate::support::{TestDb, key, on_postgres};
use heliograph_domain::message::Status;
use heliograph_service::error::Error;
use heliograph_store::{Db, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_postgres::config::Host;

const LET_PASS: u8 = 0;
const BEFORE_IT_IS_HEARD: u8 = 1;
const AFTER_IT_IS_DONE: u8 = 2;

/// The line between the node and the server.
struct Line {
    cut: Arc<AtomicU8>,
    url: String,
    _tasks: JoinSet<()>,
}

impl Line {
    async fn tap(url: &str) -> Self {
        let config: tokio_postgres::Config = url.parse().unwrap();
        let Host::Tcp(host) = config.get_hosts()[0].clone() else {
            panic!("HELIOGRAPH_TEST_POSTGRES must name a server by host and port")
        };
        let server = (host, config.get_ports()[0]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!(
            "postgres://{}:{}@127.0.0.1:{}/{}",
            config.get_user().unwrap(),
            config.get_password().map_or("".into(), String::from_utf8_lossy),
            listener.local_addr().unwrap().port(),
            config.get_dbname().unwrap(),
        );
        let cut = Arc::new(AtomicU8::new(LET_PASS));
        let (mut tasks, when) = (JoinSet::new(), cut.clone());
        tasks.spawn(async move {
            let mut lines = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect((server.0.as_str(), server.1)).await.unwrap();
                lines.spawn(carry(client, server, when.clone()));
            }
        });
        Self { cut, url, _tasks: tasks }
    }
}

/// Carries what both sides say until one hangs up, or the line is cut.
async fn carry(mut client: TcpStream, mut server: TcpStream, cut: Arc<AtomicU8>) {
    let (mut asked, mut said) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            n = client.read(&mut asked) => {
                let Ok(n @ 1..) = n else { return };
                let commits = asked[..n].windows(7).any(|w| w == b"COMMIT\0");
                let when = if commits { cut.swap(LET_PASS, SeqCst) } else { LET_PASS };
                if when == BEFORE_IT_IS_HEARD {
                    return;
                }
                server.write_all(&asked[..n]).await.unwrap();
                if when == AFTER_IT_IS_DONE {
                    // What travels ahead of the commit is answered before it.
                    let mut heard = Vec::new();
                    while !heard.windows(7).any(|w| w == b"COMMIT\0") {
                        assert_ne!(server.read_buf(&mut heard).await.unwrap(), 0, "it was not done");
                    }
                    return;
                }
            }
            n = server.read(&mut said) => {
                let Ok(n @ 1..) = n else { return };
                client.write_all(&said[..n]).await.unwrap();
            }
        }
    }
}

async fn node(db: &TestDb) -> (Node, Line) {
    let line = Line::tap(&db.url).await;
    let options =
        Options { url: line.url.clone(), connections: 4, key: key(), clock: db.clock.clone() };
    let own = Db::open(options).await.unwrap();
    (Node::with(db, own, (1, 32)).await, line)
}

async fn everything_happens_once(db: TestDb, when: u8) {
    let (node, line) = node(&db).await;
    let ann = node.account("ann@example.com", 250).await;
    node.open().await;
    // The first one is refused, and says nothing about what became of the others.
    line.cut.store(when, SeqCst);
    let batch = [3, 1, 1].map(|n| (parts(n), None)).into();
    let sent = node.send_all(&ann, batch).await;
    assert_eq!(line.cut.load(SeqCst), LET_PASS, "no commit went over the line");
    assert!(matches!(sent[0], Err(Error::InsufficientBalance)), "{sent:?}");
    let made: Vec<_> = sent[1..].iter().map(|s| s.as_ref().unwrap().message.id).collect();
    let held = node.arrived();
    let ids: Vec<_> = held.iter().map(|h| h.leased.message.id).collect();
    assert_eq!((ids, node.balance(&ann).await), (made.clone(), (50, 200)));
    // News can be written twice without harm.
    line.cut.store(when, SeqCst);
    let settlements = held.iter().zip(["a", "b"]).map(|(h, id)| outcome(h, accepted(id)));
    node.settle(settlements.collect()).await;
    assert_eq!(line.cut.load(SeqCst), LET_PASS);
    for id in made {
        assert_eq!(node.status(&ann, id).await, Status::Sent);
    }
    assert_eq!(node.balance(&ann).await, (50, 0));
    // So can a batch that makes nothing at all.
    line.cut.store(when, SeqCst);
    let sent = node.send_all(&ann, vec![(text("Hello"), None)]).await;
    assert!(matches!(sent[0], Err(Error::InsufficientBalance)), "{sent:?}");
    node.check().await;
}

async fn a_reply_is_taken_in_once(db: TestDb, when: u8) {
    let (node, line) = node(&db).await;
    let ann = node.account("ann@example.com", 250).await;
    people::has_number(&node, "ann@example.com").await;
    let courier = Courier::open(&node, endpoint(&node, &ann).await).await;
    line.cut.store(when, SeqCst);
    let part = |n| people::part((7, 2, n), "a");
    people::hear(&node, vec![part(1), people::says("Hello"), part(2)]).await;
    assert_eq!(line.cut.load(SeqCst), LET_PASS, "no commit went over the line");
    let texts = people::texts(&node, &ann).await;
    assert_eq!(texts, [("Hello", true), ("aa", true)].map(|(t, all)| (t.to_owned(), all)));
    assert_eq!((courier.arrived().len(), rows(&db, "deliveries").await), (2, 2));
}

#[test]
fn a_reply_whose_commit_was_not_heard_is_written_again() {
    on_postgres(async |db| a_reply_is_taken_in_once(db, BEFORE_IT_IS_HEARD).await);
}

#[test]
fn a_reply_whose_commit_was_done_is_not_written_again() {
    on_postgres(async |db| a_reply_is_taken_in_once(db, AFTER_IT_IS_DONE).await);
}

#[test]
fn a_commit_that_was_not_heard_is_written_again() {
    on_postgres(async |db| everything_happens_once(db, BEFORE_IT_IS_HEARD).await);
}

#[test]
fn a_commit_that_was_done_is_not_written_again() {
    on_postgres(async |db| everything_happens_once(db, AFTER_IT_IS_DONE).await);
}
