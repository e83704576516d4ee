//! A database of its own for each test, on both engines, with a clock that is set by hand and ids
//! that repeat.
//!
//! The tests of service take this file in by its path.

use heliograph_domain::id::Ids;
use heliograph_domain::time::{Clock, Timestamp};
use heliograph_store::{Db, KEY_BYTES, Options, SealingKey};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use uuid::{Builder, Uuid};

/// What the clock says when a test begins.
pub(crate) const BEGIN: Timestamp = Timestamp(1_795_165_200_000);

/// Makes of each function of a module a test on SQLite and, with the feature `test-postgres`, one
/// on PostgreSQL. A function that is left out is dead code, which the compiler tells.
macro_rules! on_both_engines {
    ($module:ident: $($test:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test] fn $test() { crate::support::on_sqlite(crate::$module::$test) })+
        }
        #[cfg(feature = "test-postgres")]
        mod postgres {
            $(#[test] fn $test() { crate::support::on_postgres(crate::$module::$test) })+
        }
    };
}
pub(crate) use on_both_engines;

/// An empty database, for one test alone.
pub(crate) struct TestDb {
    pub(crate) db: Db,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) ids: Arc<TestIds>,
    pub(crate) url: String,
}

impl TestDb {
    async fn open(url: String) -> Self {
        let clock = Arc::new(TestClock(AtomicI64::new(BEGIN.0)));
        let db = open(&url, clock.clone()).await;
        Self { db, clock, ids: Arc::default(), url }
    }

    /// Opens the same database once more, as another node or another process would.
    pub(crate) async fn again(&self) -> Db {
        open(&self.url, self.clock.clone()).await
    }

    /// Runs statements behind the store's back.
    pub(crate) async fn behind(&self, sql: &str) {
        match self.url.strip_prefix("sqlite:") {
            Some(path) => rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap(),
            None => postgres(&self.url, sql).await,
        }
    }

    /// Keeps the store from writing while `work` goes on: another process holds the lock of the
    /// file for too long, or the server takes nobody in.
    pub(crate) async fn away<T>(&self, work: impl AsyncFnOnce() -> T) -> T {
        if let Some(path) = self.url.strip_prefix("sqlite:") {
            let other = rusqlite::Connection::open(path).unwrap();
            other.execute_batch("BEGIN IMMEDIATE").unwrap();
            return work().await;
        }
        let (server, name) = self.url.rsplit_once("dbname=").unwrap();
        let doors = |open| format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {open}");
        postgres(server, &doors(false)).await;
        let all_out = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ";
        postgres(server, &format!("{all_out}'{name}'")).await;
        let done = work().await;
        postgres(server, &doors(true)).await;
        done
    }
}

/// What every node on the database of a test has.
pub(crate) fn key() -> SealingKey {
    SealingKey::from_random([7; KEY_BYTES])
}

async fn open(url: &str, clock: Arc<TestClock>) -> Db {
    Db::open(Options { url: url.to_owned(), connections: 8, key: key(), clock }).await.unwrap()
}

/// A clock that stands still until it is moved.
pub(crate) struct TestClock(AtomicI64);

impl TestClock {
    /// Travels into the future.
    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }
}

/// Ids that count: the later one is the greater one.
#[derive(Default)]
pub(crate) struct TestIds(AtomicU64);

impl Ids for TestIds {
    fn next(&self, at: Timestamp) -> Uuid {
        let mut count = [0; 10];
        count[2..].copy_from_slice(&self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        Builder::from_unix_timestamp_millis(at.millis().unsigned_abs(), &count).into_uuid()
    }
}

/// Several threads, so that what is spawned really goes on at the same time.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

pub(crate) fn on_sqlite(test: impl AsyncFnOnce(TestDb)) {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("test.db").display());
    runtime().block_on(async { test(TestDb::open(url).await).await });
}

#[cfg(feature = "test-postgres")]
pub(crate) fn on_postgres(test: impl AsyncFnOnce(TestDb)) {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    let server = std::env::var("HELIOGRAPH_TEST_POSTGRES").expect(
        "HELIOGRAPH_TEST_POSTGRES must name a PostgreSQL server whose databases tests may make and \
         drop: `scripts/postgres-cluster start DIR` makes one and prints its URL",
    );
    let mut random = [0; 16];
    getrandom::fill(&mut random).unwrap();
    let name = format!("heliograph_{}", Builder::from_random_bytes(random).into_uuid().simple());
    let mark = if server.contains('?') { '&' } else { '?' };
    let runtime = runtime();
    runtime.block_on(postgres(&server, &format!("CREATE DATABASE {name}")));
    let url = format!("{server}{mark}dbname={name}"); // goes before the name in the path
    let body = || runtime.block_on(async { test(TestDb::open(url).await).await });
    let done = catch_unwind(AssertUnwindSafe(body));
    runtime.block_on(postgres(&server, &format!("DROP DATABASE {name} WITH (FORCE)")));
    if let Err(panic) = done {
        resume_unwind(panic);
    }
}

/// Runs statements on a PostgreSQL connection of their own.
async fn postgres(url: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let run = async move { client.batch_execute(sql).await.unwrap() };
    let (closed, ()) = tokio::join!(connection, run);
    closed.unwrap();
}
