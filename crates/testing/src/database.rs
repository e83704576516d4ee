//! A separate, empty database for each test, which is removed when the test ends.

use crate::deterministic::{TestClock, TestIds, TestRandom};
use crate::engine::{TestEngine, engine, postgres_server};
use heliograph_store::{Db, KEY_BYTES, Options, SealingKey};
use std::sync::Arc;
use tempfile::TempDir;
use uuid::Builder;

/// An empty database for one test, with a manual clock and reproducible ids and random bytes.
/// Dropping it removes the database.
pub struct TestDb {
    /// The open database.
    pub db: Db,
    /// The clock of all nodes of the test.
    pub clock: Arc<TestClock>,
    /// The id generator of all nodes of the test.
    pub ids: Arc<TestIds>,
    /// The random source of all nodes of the test.
    pub random: Arc<TestRandom>,
    /// The URL of the database.
    pub url: String,
    /// Last, so that the database is closed before it is removed.
    _storage: Storage,
}

/// The place of a database, which is removed on drop.
enum Storage {
    Folder { _folder: TempDir },
    Postgres(PostgresDatabase),
}

impl TestDb {
    /// Creates a database of the engine selected by `HELIOGRAPH_TEST_ENGINE`.
    pub async fn new() -> Self {
        match engine() {
            TestEngine::Sqlite => Self::sqlite().await,
            TestEngine::Postgres => Self::postgres().await,
        }
    }

    /// Creates a SQLite database, for tests of SQLite only. They run with either engine selected.
    pub async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("test.db").display());
        Self::open(url, Storage::Folder { _folder: folder }).await
    }

    /// Creates a PostgreSQL database, for tests of PostgreSQL only (feature `test-postgres` of
    /// their crates). They run with either engine selected.
    ///
    /// # Panics
    /// If `HELIOGRAPH_TEST_POSTGRES` names no server.
    pub async fn postgres() -> Self {
        let database = PostgresDatabase::create(postgres_server()).await;
        Self::open(database.url(), Storage::Postgres(database)).await
    }

    async fn open(url: String, storage: Storage) -> Self {
        let clock = Arc::new(TestClock::default());
        let db = open(&url, clock.clone()).await;
        Self { db, clock, ids: Arc::default(), random: Arc::default(), url, _storage: storage }
    }

    /// Opens the same database again, as another node does.
    pub async fn reopen(&self) -> Db {
        open(&self.url, self.clock.clone()).await
    }

    /// Runs statements directly on the database.
    pub async fn execute_raw(&self, sql: &str) {
        match self.url.strip_prefix("sqlite:") {
            Some(path) => rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap(),
            None => execute_postgres(&self.url, sql).await.unwrap(),
        }
    }

    /// Runs a query directly on the database and returns the columns of each row, which must be
    /// text.
    pub async fn query_raw(&self, sql: &str) -> Vec<Vec<String>> {
        let Some(path) = self.url.strip_prefix("sqlite:") else {
            return query_postgres(&self.url, sql).await.unwrap();
        };
        let conn = rusqlite::Connection::open(path).unwrap();
        let mut statement = conn.prepare(sql).unwrap();
        let columns = statement.column_count();
        let row = |r: &rusqlite::Row<'_>| (0..columns).map(|i| r.get(i)).collect();
        statement.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap()
    }

    /// Makes the database unavailable while `work` runs: another process holds the lock of the
    /// file, or the server rejects connections.
    pub async fn while_unavailable<T>(&self, work: impl AsyncFnOnce() -> T) -> T {
        let database = match &self._storage {
            Storage::Folder { .. } => {
                let path = self.url.trim_start_matches("sqlite:");
                let other = rusqlite::Connection::open(path).unwrap();
                other.execute_batch("BEGIN IMMEDIATE").unwrap();
                return work().await;
            }
            Storage::Postgres(database) => database,
        };
        let PostgresDatabase { server, name } = database;
        execute_postgres(server, &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
            .await
            .unwrap();
        let terminate = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        );
        execute_postgres(server, &terminate).await.unwrap();
        let done = work().await;
        execute_postgres(server, &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true"))
            .await
            .unwrap();
        done
    }
}

/// Returns the sealing key of all test databases.
pub fn sealing_key() -> SealingKey {
    SealingKey::from_random([7; KEY_BYTES])
}

async fn open(url: &str, clock: Arc<TestClock>) -> Db {
    let options = Options { url: url.to_owned(), connections: 8, key: sealing_key(), clock };
    Db::open(options).await.unwrap()
}

/// A database on the PostgreSQL server for tests; removed from the server on drop.
struct PostgresDatabase {
    server: String,
    name: String,
}

impl PostgresDatabase {
    async fn create(server: String) -> Self {
        let mut random = [0; 16];
        getrandom::fill(&mut random).unwrap();
        let id = Builder::from_random_bytes(random).into_uuid();
        let name = format!("heliograph_{}", id.simple());
        execute_postgres(&server, &format!("CREATE DATABASE {name}")).await.unwrap();
        Self { server, name }
    }

    /// Returns the URL of the database. The parameter overrides a database name in the path.
    fn url(&self) -> String {
        let separator = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{separator}dbname={}", self.server, self.name)
    }
}

impl Drop for PostgresDatabase {
    /// Drops the database on a thread with its own runtime, because `drop` cannot wait in the
    /// runtime of the test; also when the test panics.
    fn drop(&mut self) {
        let sql = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        let server = self.server.clone();
        let dropping = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(execute_postgres(&server, &sql)).unwrap();
        });
        // A second panic during a panic would abort the process and hide the first.
        let dropped = dropping.join();
        assert!(dropped.is_ok() || std::thread::panicking(), "failed to drop the test database");
    }
}

/// Runs statements on a separate PostgreSQL connection.
async fn execute_postgres(url: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    let run = async move { client.batch_execute(sql).await };
    let (closed, done) = tokio::join!(connection, run);
    closed.and(done)
}

/// Runs a query on a separate PostgreSQL connection.
async fn query_postgres(url: &str, sql: &str) -> Result<Vec<Vec<String>>, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    let run = async move { client.query(sql, &[]).await };
    let (closed, rows) = tokio::join!(connection, run);
    closed?;
    rows?.iter().map(|r| (0..r.len()).map(|i| r.try_get(i)).collect()).collect()
}
