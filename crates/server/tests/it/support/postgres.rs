//! The PostgreSQL database of one test, on the server that the environment names.

use std::sync::atomic::{AtomicU32, Ordering};
use tokio_postgres::{NoTls, SimpleQueryMessage};

const SERVER: &str = "HELIOGRAPH_TEST_POSTGRES";

/// Returns whether the environment names a server.
pub(crate) fn is_configured() -> bool {
    std::env::var_os(SERVER).is_some_and(|url| !url.is_empty())
}

/// A database, which is dropped with this value.
#[derive(Debug)]
pub(crate) struct Postgres {
    server: String,
    name: String,
}

impl Postgres {
    pub(crate) fn create() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let server = std::env::var(SERVER).ok().filter(|url| !url.is_empty()).unwrap_or_else(|| {
            panic!(
                "this test needs {SERVER}, the URL of a PostgreSQL server with a role that may create \
                 databases: scripts/postgres-cluster start DIR prints one"
            )
        });
        let n = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("heliograph_it_{}_{n}_{:x}", std::process::id(), fastrand::u32(..));
        run(&server, &format!("CREATE DATABASE {name}"), first);
        Self { server, name }
    }

    /// Returns the URL of the server with the name of this database.
    pub(crate) fn url(&self) -> String {
        let (url, options) = self.server.split_once('?').unwrap_or((&self.server, ""));
        let (scheme, rest) = url.split_once("://").unwrap();
        let host = rest.split('/').next().unwrap();
        let options = if options.is_empty() { String::new() } else { format!("?{options}") };
        format!("{scheme}://{host}/{}{options}", self.name)
    }

    /// Returns all rows as text.
    pub(crate) fn rows(&self, sql: &str) -> Vec<String> {
        run(&self.url(), sql, |all| {
            let rows = all.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => {
                    Some((0..row.len()).map(|n| format!("{:?} ", row.get(n))).collect())
                }
                _ => None,
            });
            rows.collect()
        })
    }

    pub(crate) fn number(&self, sql: &str) -> i64 {
        run(&self.url(), sql, first).unwrap().parse().unwrap()
    }

    pub(crate) fn change(&self, sql: &str) {
        run(&self.url(), sql, first);
    }

    /// Closes all connections, and rejects new ones.
    pub(crate) fn disconnect(&self) {
        run(&self.server, &format!("ALTER DATABASE {} ALLOW_CONNECTIONS false", self.name), first);
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname";
        run(&self.server, &format!("{end} = '{}'", self.name), first);
    }

    /// Accepts connections again.
    pub(crate) fn reconnect(&self) {
        run(&self.server, &format!("ALTER DATABASE {} ALLOW_CONNECTIONS true", self.name), first);
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        run(&self.server, &format!("DROP DATABASE {} WITH (FORCE)", self.name), first);
    }
}

/// Runs a statement over a new connection, and reads its result.
fn run<T>(url: &str, sql: &str, read: impl Fn(&[SimpleQueryMessage]) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::select! {
            found = client.simple_query(sql) => read(&found.unwrap()),
            ended = connection => panic!("the connection to PostgreSQL ended: {ended:?}"),
        }
    })
}

/// Returns the first value.
fn first(all: &[SimpleQueryMessage]) -> Option<String> {
    all.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    })
}
