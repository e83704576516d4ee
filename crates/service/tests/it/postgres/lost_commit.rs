//! A commit with unknown outcome: the writer finds out whether it was applied, and every command is
//! executed exactly once.
//!
//! A proxy between the node and PostgreSQL drops the connection at a COMMIT, either before or after
//! the server executes it.

use crate::endpoint_worker::{EndpointWorker, endpoint, rows};
use crate::inbound;
use crate::node::{Node, accepted, outcome, parts, text};
use heliograph_domain::message::MessageStatus;
use heliograph_service::kernel::error::Error;
use heliograph_store::{Db, Options};
use heliograph_testing::{TestDb, sealing_key};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_postgres::config::Host;

const FORWARD: u8 = 0;
const DROP_BEFORE_COMMIT: u8 = 1;
const DROP_AFTER_COMMIT: u8 = 2;

/// The proxy between the node and the server.
struct Proxy {
    cut: Arc<AtomicU8>,
    url: String,
    _tasks: JoinSet<()>,
}

impl Proxy {
    async fn start(url: &str) -> Self {
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
        let cut = Arc::new(AtomicU8::new(FORWARD));
        let (mut tasks, when) = (JoinSet::new(), cut.clone());
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect((server.0.as_str(), server.1)).await.unwrap();
                connections.spawn(forward(client, server, when.clone()));
            }
        });
        Self { cut, url, _tasks: tasks }
    }
}

/// Forwards data in both directions until one side closes or the connection is dropped.
async fn forward(mut client: TcpStream, mut server: TcpStream, cut: Arc<AtomicU8>) {
    let (mut request, mut reply) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            n = client.read(&mut request) => {
                let Ok(n @ 1..) = n else { return };
                let commits = request[..n].windows(7).any(|w| w == b"COMMIT\0");
                let when = if commits { cut.swap(FORWARD, SeqCst) } else { FORWARD };
                if when == DROP_BEFORE_COMMIT {
                    return;
                }
                server.write_all(&request[..n]).await.unwrap();
                if when == DROP_AFTER_COMMIT {
                    // Statements pipelined before the commit are answered before it.
                    let mut response = Vec::new();
                    while !response.windows(7).any(|w| w == b"COMMIT\0") {
                        assert_ne!(server.read_buf(&mut response).await.unwrap(), 0, "the commit was not executed");
                    }
                    return;
                }
            }
            n = server.read(&mut reply) => {
                let Ok(n @ 1..) = n else { return };
                client.write_all(&reply[..n]).await.unwrap();
            }
        }
    }
}

async fn node(db: &TestDb) -> (Node, Proxy) {
    let proxy = Proxy::start(&db.url).await;
    let options = Options {
        url: proxy.url.clone(),
        connections: 4,
        key: sealing_key(),
        clock: db.clock.clone(),
    };
    let own = Db::open(options).await.unwrap();
    (Node::with(db, own, 1, 32).await, proxy)
}

async fn lost_commit_is_applied_once(when: u8) {
    let db = TestDb::postgres().await;
    let (node, proxy) = node(&db).await;
    let ann = node.account("ann@example.com", 250).await;
    node.open_queue().await;
    // The first command is refused and does not show whether the others were committed.
    proxy.cut.store(when, SeqCst);
    let batch = [3, 1, 1].map(|n| (parts(n), None)).into();
    let sent = node.send_all(&ann, batch).await;
    assert_eq!(proxy.cut.load(SeqCst), FORWARD, "no commit passed the proxy");
    assert!(matches!(sent[0], Err(Error::PriceNotCovered(_))), "{sent:?}");
    let made: Vec<_> = sent[1..].iter().map(|s| s.as_ref().unwrap().message.id).collect();
    let held = node.arrived();
    let ids: Vec<_> = held.iter().map(|h| h.leased.message.id).collect();
    assert_eq!((ids, node.balance(&ann).await), (made.clone(), (50, 200)));
    // Progress can be written twice without effect.
    proxy.cut.store(when, SeqCst);
    let settlements = held.iter().zip(["a", "b"]).map(|(h, id)| outcome(h, accepted(id)));
    node.settle(settlements.collect()).await;
    assert_eq!(proxy.cut.load(SeqCst), FORWARD);
    for id in made {
        assert_eq!(node.status(&ann, id).await, MessageStatus::Sent);
    }
    assert_eq!(node.balance(&ann).await, (50, 0));
    // The same applies to a batch that changes nothing.
    proxy.cut.store(when, SeqCst);
    let sent = node.send_all(&ann, vec![(text("Hello"), None)]).await;
    assert!(matches!(sent[0], Err(Error::PriceNotCovered(_))), "{sent:?}");
    node.check().await;
}

async fn reply_is_stored_once(when: u8) {
    let db = TestDb::postgres().await;
    let (node, proxy) = node(&db).await;
    let ann = node.account("ann@example.com", 250).await;
    inbound::assign_number(&node, "ann@example.com").await;
    let worker = EndpointWorker::start(&node, endpoint(&node, &ann).await).await;
    proxy.cut.store(when, SeqCst);
    let part = |n| inbound::part((7, 2, n), "a");
    inbound::receive(&node, vec![part(1), inbound::incoming("Hello"), part(2)]).await;
    assert_eq!(proxy.cut.load(SeqCst), FORWARD, "no commit passed the proxy");
    let texts = inbound::texts(&node, &ann).await;
    assert_eq!(texts, [("Hello", true), ("aa", true)].map(|(t, all)| (t.to_owned(), all)));
    assert_eq!((worker.arrived().len(), rows(&db, "deliveries").await), (2, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reply_is_written_again_after_a_commit_that_was_not_applied() {
    reply_is_stored_once(DROP_BEFORE_COMMIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reply_is_not_written_again_after_a_commit_that_was_applied() {
    reply_is_stored_once(DROP_AFTER_COMMIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batch_is_written_again_after_a_commit_that_was_not_applied() {
    lost_commit_is_applied_once(DROP_BEFORE_COMMIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batch_is_not_written_again_after_a_commit_that_was_applied() {
    lost_commit_is_applied_once(DROP_AFTER_COMMIT).await;
}
