//! The SQLite engine: one connection for writing, a few for reading, and a checkpoint thread.

use crate::db::bulk::Rows;
use crate::db::migrations;
use crate::db::row::{EachRow, Row};
use crate::db::sealing::Sealer;
use crate::db::sqlite_error::failed;
use crate::db::value::Value;
use crate::error::{StoreError, StoreResult};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, OpenFlags, ToSql};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

const READERS: usize = 4;
/// The number of prepared statements that a connection caches; there are fewer hot ones than this.
const STATEMENTS: usize = 64;
/// The interval between checkpoints, which move committed pages from the write-ahead log into the
/// database file.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);
/// The number of pages in the log (256 MB) above which writers wait once while the log is
/// restarted.
const LOG_LIMIT: i64 = 65_536;
/// The longest wait for that: with a long-lived reader, such as a backup, the wait would be in
/// vain.
const RESTART_WAIT: Duration = Duration::from_millis(500);

/// An open SQLite file.
pub(crate) struct Sqlite {
    writer: Arc<tokio::sync::Mutex<Connection>>,
    readers: Arc<Readers>,
    dirty: Arc<AtomicBool>,
    sealer: Arc<Sealer>,
    /// The checkpoint thread, which ends when the sender is dropped.
    checkpoints: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

/// Connections for reading.
pub struct Readers {
    idle: Mutex<Vec<Connection>>,
    sealer: Arc<Sealer>,
    permits: Arc<Semaphore>,
}

impl Sqlite {
    pub(crate) fn open(path: PathBuf, sealer: Arc<Sealer>) -> StoreResult<Self> {
        // Version 3.51.3 fixed a race that could corrupt the database when the log is restarted.
        if rusqlite::version_number() < 3_051_003 {
            return Err(StoreError::Db(format!(
                "SQLite {} is too old: 3.51.3 or newer is needed",
                rusqlite::version()
            )));
        }
        refuse_network_file_system(&path)?;
        let turn = lock_folder(&path);
        let mut writer =
            connect(&path, OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        writer
            .execute_batch("PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -32768;")
            .map_err(failed)?;
        migrations::sqlite(&mut writer)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let idle = (0..READERS)
            .map(|_| {
                let reader = connect(&path, flags)?;
                reader
                    .execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -4096;")
                    .map_err(failed)?;
                Ok(reader)
            })
            .collect::<StoreResult<Vec<_>>>()?;
        drop(turn);
        let dirty = Arc::new(AtomicBool::new(true));
        let (stop, stopped) = mpsc::channel();
        let thread = {
            let (conn, dirty) = (connect(&path, flags)?, dirty.clone());
            conn.busy_timeout(RESTART_WAIT).map_err(failed)?;
            std::thread::Builder::new()
                .name("checkpoint".to_owned())
                .spawn(move || checkpoint(&conn, &dirty, &stopped))
                .map_err(|e| StoreError::Unavailable(format!("no thread for checkpoints: {e}")))?
        };
        Ok(Self {
            writer: Arc::new(tokio::sync::Mutex::new(writer)),
            readers: Arc::new(Readers {
                idle: Mutex::new(idle),
                sealer: sealer.clone(),
                permits: Arc::new(Semaphore::new(READERS)),
            }),
            dirty,
            sealer,
            checkpoints: Some((stop, thread)),
        })
    }

    pub(crate) async fn begin(&self) -> StoreResult<SqliteConn> {
        let conn = self.writer.clone().lock_owned().await;
        // A caller that was cancelled during a commit leaves a failed transaction open.
        if !conn.is_autocommit() {
            conn.execute_batch("ROLLBACK").map_err(failed)?;
        }
        run(&conn, "BEGIN IMMEDIATE")?;
        let (dirty, sealer) = (self.dirty.clone(), self.sealer.clone());
        Ok(SqliteConn::Write { conn, dirty, sealer, open: true })
    }

    pub(crate) async fn reader(&self) -> StoreResult<SqliteConn> {
        let gone = || StoreError::Unavailable("no reader connections".to_owned());
        let permit = self.readers.permits.clone().acquire_owned().await.map_err(|_| gone())?;
        let conn = lock(&self.readers.idle).pop().ok_or_else(gone)?;
        Ok(SqliteConn::Read { conn: Some(conn), home: self.readers.clone(), _permit: permit })
    }

    pub(crate) async fn snapshot(&self) -> StoreResult<SqliteConn> {
        let conn = self.reader().await?;
        run(conn.conn()?, "BEGIN")?;
        Ok(conn)
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.checkpoints.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(path: &Path, flags: OpenFlags) -> StoreResult<Connection> {
    let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|e| StoreError::Unavailable(format!("{}: {e}", path.display())))?;
    conn.busy_timeout(Duration::from_secs(5)).map_err(failed)?;
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;",
    )
    .map_err(failed)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

/// Locks the folder of the file. A process that opens a new file at the same time waits here,
/// because neither enabling WAL mode nor the migrations wait for another process. `None` where a
/// folder cannot be locked; then the later process gets an error and has to retry.
fn lock_folder(path: &Path) -> Option<File> {
    let folder = File::open(folder(path)).ok()?;
    folder.lock().ok().map(|()| folder)
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Rejects a network file system, where SQLite's locks and shared memory do not work: two nodes
/// would corrupt the file.
fn refuse_network_file_system(path: &Path) -> StoreResult<()> {
    let (Ok(dir), Ok(mounts)) =
        (folder(path).canonicalize(), std::fs::read_to_string("/proc/self/mounts"))
    else {
        return Ok(()); // not Linux, or the folder does not exist: opening the file reports that
    };
    let longest = mounts
        .lines()
        .filter_map(|l| {
            let mut words = l.split(' ').skip(1);
            Some((words.next()?, words.next()?))
        })
        .filter(|(at, _)| dir.starts_with(at))
        .max_by_key(|(at, _)| at.len());
    match longest {
        Some((at, kind)) if ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"].contains(&kind) => {
            Err(StoreError::Db(format!(
                "{} is on a network file system ({kind} at {at}), where SQLite cannot lock files: use a local disk or PostgreSQL",
                path.display()
            )))
        }
        _ => Ok(()),
    }
}

fn checkpoint(conn: &Connection, dirty: &AtomicBool, stopped: &mpsc::Receiver<()>) {
    loop {
        let last = stopped.recv_timeout(CHECKPOINT_EVERY) != Err(RecvTimeoutError::Timeout);
        if dirty.swap(false, Ordering::Relaxed)
            && let Err(e) = shorten(conn, LOG_LIMIT)
        {
            tracing::warn!(error = %e, "checkpoint failed");
            dirty.store(true, Ordering::Relaxed);
        }
        if last {
            return;
        }
    }
}

/// Moves as many pages as possible from the log into the file. If there were more than `limit`
/// pages and all could be moved, restarts the log, for which writers wait; pages that could not be
/// moved are held by a reader, so waiting for them would not help. Returns whether the log was restarted.
fn shorten(conn: &Connection, limit: i64) -> rusqlite::Result<bool> {
    let pages = |mode: &str| conn.query_row(mode, [], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)));
    let (_, logged, moved): (i64, i64, i64) = pages("PRAGMA wal_checkpoint(PASSIVE)")?;
    if logged <= limit || moved < logged {
        return Ok(false);
    }
    let (busy, ..) = pages("PRAGMA wal_checkpoint(RESTART)")?;
    Ok(busy == 0)
}

/// A connection in use.
pub enum SqliteConn {
    /// The connection for writing, inside a transaction.
    Write {
        /// The connection, locked until the transaction ends.
        conn: OwnedMutexGuard<Connection>,
        /// Tells the checkpoint thread that there is something to do.
        dirty: Arc<AtomicBool>,
        /// Seals and opens secrets.
        sealer: Arc<Sealer>,
        /// True if the transaction is open.
        open: bool,
    },
    /// A connection for reading, which returns to the pool when it is dropped.
    Read {
        /// `None` only while being dropped.
        conn: Option<Connection>,
        /// The pool.
        home: Arc<Readers>,
        /// The permit for one connection of the pool.
        _permit: OwnedSemaphorePermit,
    },
    /// A connection to a file that no other process uses: a backup.
    Alone(Connection),
}

impl Drop for SqliteConn {
    fn drop(&mut self) {
        match self {
            Self::Write { conn, open: true, .. } => {
                let _ = conn.execute_batch("ROLLBACK");
            }
            Self::Write { .. } | Self::Alone(_) => {}
            Self::Read { conn, home, .. } => {
                let conn = conn.take();
                if let Some(snapshot) = conn.as_ref().filter(|c| !c.is_autocommit()) {
                    let _ = snapshot.execute_batch("ROLLBACK");
                }
                lock(&home.idle).extend(conn);
            }
        }
    }
}

impl SqliteConn {
    pub(crate) fn conn(&self) -> StoreResult<&Connection> {
        match self {
            Self::Write { conn, .. } => Ok(conn),
            Self::Alone(conn) => Ok(conn),
            Self::Read { conn, .. } => {
                conn.as_ref().ok_or_else(|| StoreError::Unavailable("no reader".to_owned()))
            }
        }
    }

    /// Returns what seals secrets. The secrets of a backup stay sealed: they are copied as they
    /// are.
    pub(crate) fn sealer(&self) -> StoreResult<Arc<Sealer>> {
        match self {
            Self::Write { sealer, .. } => Ok(sealer.clone()),
            Self::Read { home, .. } => Ok(home.sealer.clone()),
            Self::Alone(_) => {
                Err(StoreError::Backup("the secrets of a backup are sealed".to_owned()))
            }
        }
    }

    pub(crate) fn commit(mut self) -> StoreResult<()> {
        run(self.conn()?, "COMMIT")?;
        if let Self::Write { dirty, open, .. } = &mut self {
            *open = false;
            dirty.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(crate) fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> StoreResult<u64> {
        let mut statement = prepare(self.conn()?, sql)?;
        execute(&mut statement, params)
    }

    /// Runs a query and calls `each` with each row.
    pub(crate) fn query(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        each: EachRow<'_>,
    ) -> StoreResult<()> {
        let mut statement = prepare(self.conn()?, sql)?;
        query(&mut statement, params, each)
    }

    pub(crate) fn bulk_execute(&mut self, sql: &str, rows: &Rows<'_>) -> StoreResult<u64> {
        let mut statement = prepare(self.conn()?, sql)?;
        rows.iter().map(|row| execute(&mut statement, row)).sum()
    }

    /// Runs a query once for each of `rows`, and calls `each` with each row found.
    pub(crate) fn bulk_query(
        &mut self,
        sql: &str,
        rows: &Rows<'_>,
        each: EachRow<'_>,
    ) -> StoreResult<()> {
        let mut statement = prepare(self.conn()?, sql)?;
        rows.iter().try_for_each(|row| query(&mut statement, row, each))
    }
}

/// Prepares a statement. SQLite numbers `$2, $1` by first appearance, but takes the numbers of `?2,
/// ?1`.
fn prepare<'c>(conn: &'c Connection, sql: &str) -> StoreResult<CachedStatement<'c>> {
    conn.prepare_cached(&sql.replace('$', "?")).map_err(failed)
}

fn run(conn: &Connection, sql: &str) -> StoreResult<()> {
    let mut statement = prepare(conn, sql)?;
    statement.raw_execute().map_err(failed).map(drop)
}

fn bind(statement: &mut CachedStatement<'_>, params: &[Value<'_>]) -> StoreResult<()> {
    for (i, p) in params.iter().enumerate() {
        statement.raw_bind_parameter(i + 1, p).map_err(failed)?;
    }
    Ok(())
}

fn execute(statement: &mut CachedStatement<'_>, params: &[Value<'_>]) -> StoreResult<u64> {
    bind(statement, params)?;
    statement.raw_execute().map(|n| n as u64).map_err(failed)
}

fn query(
    statement: &mut CachedStatement<'_>,
    params: &[Value<'_>],
    each: EachRow<'_>,
) -> StoreResult<()> {
    bind(statement, params)?;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(failed)? {
        each(&mut Row::sqlite(row))?;
    }
    Ok(())
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(v) => ValueRef::Integer(*v),
            Self::Text(v) => ValueRef::Text(v.as_bytes()),
            Self::Bytes(v) => ValueRef::Blob(v),
            Self::Uuid(v) => ValueRef::Blob(v.as_bytes()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::sealing::{KEY_BYTES, SealingKey};

    fn open(path: PathBuf) -> StoreResult<Sqlite> {
        Sqlite::open(path, Arc::new(Sealer::new(&SealingKey::from_random([7; KEY_BYTES]))?))
    }

    /// Settings belong to a connection and cannot be seen through the public interface.
    #[tokio::test]
    async fn every_connection_has_the_required_settings() {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path().join("test.db")).unwrap();
        let mut all = vec![db.begin().await.unwrap()];
        for _ in 0..READERS {
            all.push(db.reader().await.unwrap());
        }
        for conn in &mut all {
            for (pragma, value) in [
                ("PRAGMA synchronous", 2), // FULL
                ("PRAGMA foreign_keys", 1),
                ("PRAGMA busy_timeout", 5_000),
            ] {
                let mut found = Vec::new();
                conn.query(pragma, &[], &mut |r| {
                    found.push(r.get::<i64>()?);
                    Ok(())
                })
                .unwrap();
                assert_eq!(found, [value], "{pragma}");
            }
        }
    }

    /// A backup reads for a long time. Until it is done the log grows, and writers do not wait.
    #[tokio::test]
    async fn the_log_is_restarted_when_no_reader_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("test.db");
        let db = open(path.clone()).unwrap();
        let log = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        let mut reader = db.snapshot().await.unwrap();
        reader
            .query("SELECT count(*) FROM carriers", &[], &mut |r| r.get::<i64>().map(drop))
            .unwrap();
        let mut tx = db.begin().await.unwrap();
        tx.execute("INSERT INTO carriers (name) VALUES ('a')", &[]).unwrap();
        tx.commit().unwrap();
        assert!(!shorten(&log, 0).unwrap());
        drop(reader);
        assert!(!shorten(&log, 1_000_000).unwrap());
        assert!(shorten(&log, 0).unwrap());
    }
}
