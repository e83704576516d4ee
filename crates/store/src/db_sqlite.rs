//! The SQLite engine: one connection that writes, a few that read, one thread that checkpoints.

use crate::bulk::Rows;
use crate::error::{Error, Result};
use crate::migrations;
use crate::row::Row;
use crate::sealing::Sealer;
use crate::value::Value;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, ErrorCode, OpenFlags, ToSql};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// A row as the driver gives it.
pub(crate) type RawRow<'r> = rusqlite::Row<'r>;

const READERS: usize = 4;
/// Statements that one connection keeps prepared; there are fewer hot ones than this.
const STATEMENTS: usize = 64;
/// How often what was committed moves from the log into the database file.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);
/// Pages in the log (256 MB) above which writers wait once while it starts anew.
const LOG_LIMIT: i64 = 65_536;
/// How long they wait for it, at most: a reader that stays, like a backup, would keep them waiting in vain.
const RESTART_WAIT: Duration = Duration::from_millis(500);

/// An open SQLite file.
pub(crate) struct Sqlite {
    writer: Arc<tokio::sync::Mutex<Connection>>,
    readers: Arc<Readers>,
    dirty: Arc<AtomicBool>,
    sealer: Arc<Sealer>,
    /// Dropping the sender ends the checkpointing thread.
    checkpoints: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

/// Connections that only read.
pub struct Readers {
    idle: Mutex<Vec<Connection>>,
    sealer: Arc<Sealer>,
    permits: Arc<Semaphore>,
}

impl Sqlite {
    pub(crate) fn open(path: PathBuf, sealer: Arc<Sealer>) -> Result<Self> {
        // 3.51.3 repaired a race that could corrupt the database when the log restarted.
        if rusqlite::version_number() < 3_051_003 {
            return Err(Error::Db(format!(
                "SQLite {} is too old: 3.51.3 or newer is needed",
                rusqlite::version()
            )));
        }
        refuse_network_file_system(&path)?;
        let turn = take_turns(&path);
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
            .collect::<Result<Vec<_>>>()?;
        drop(turn);
        let dirty = Arc::new(AtomicBool::new(true));
        let (stop, stopped) = mpsc::channel();
        let thread = {
            let (conn, dirty) = (connect(&path, flags)?, dirty.clone());
            conn.busy_timeout(RESTART_WAIT).map_err(failed)?;
            std::thread::Builder::new()
                .name("checkpoint".to_owned())
                .spawn(move || checkpoint(&conn, &dirty, &stopped))
                .map_err(|e| Error::Unavailable(format!("no thread for checkpoints: {e}")))?
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

    pub(crate) async fn begin(&self) -> Result<SqliteConn> {
        let conn = self.writer.clone().lock_owned().await;
        // A caller that went away in the middle of a commit leaves a transaction that failed.
        if !conn.is_autocommit() {
            conn.execute_batch("ROLLBACK").map_err(failed)?;
        }
        run(&conn, "BEGIN IMMEDIATE")?;
        let (dirty, sealer) = (self.dirty.clone(), self.sealer.clone());
        Ok(SqliteConn::Write { conn, dirty, sealer, open: true })
    }

    pub(crate) async fn reader(&self) -> Result<SqliteConn> {
        let gone = || Error::Unavailable("the readers are gone".to_owned());
        let permit = self.readers.permits.clone().acquire_owned().await.map_err(|_| gone())?;
        let conn = lock(&self.readers.idle).pop().ok_or_else(gone)?;
        Ok(SqliteConn::Read { conn: Some(conn), home: self.readers.clone(), _permit: permit })
    }

    pub(crate) async fn snapshot(&self) -> Result<SqliteConn> {
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

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|e| Error::Unavailable(format!("{}: {e}", path.display())))?;
    conn.busy_timeout(Duration::from_secs(5)).map_err(failed)?;
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;",
    )
    .map_err(failed)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

/// The folder of the file, locked: a process that opens a new file at the same time waits here, since
/// SQLite does not wait for one that turns the log on, nor the migrations for one another. `None`
/// where a folder can't be locked; then whoever is late is told so, and has to try again.
fn take_turns(path: &Path) -> Option<File> {
    let folder = File::open(folder(path)).ok()?;
    folder.lock().ok().map(|()| folder)
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// SQLite's locks and its shared memory do not work over a network: two nodes would corrupt the file.
fn refuse_network_file_system(path: &Path) -> Result<()> {
    let (Ok(dir), Ok(mounts)) =
        (folder(path).canonicalize(), std::fs::read_to_string("/proc/self/mounts"))
    else {
        return Ok(()); // not Linux, or no such folder: opening will say
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
            Err(Error::Db(format!(
                "{} is on a network file system ({kind} at {at}), where SQLite can't lock: use a local disk, or PostgreSQL",
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

/// Moves what it can from the log into the file. If there was more than `limit` and all could be moved, the log
/// starts anew, for which writers wait; what could not be moved is kept by a reader, for whom waiting is in vain.
/// Whether it starts anew.
fn shorten(conn: &Connection, limit: i64) -> rusqlite::Result<bool> {
    let pages = |mode: &str| conn.query_row(mode, [], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)));
    let (_, logged, moved): (i64, i64, i64) = pages("PRAGMA wal_checkpoint(PASSIVE)")?;
    if logged <= limit || moved < logged {
        return Ok(false);
    }
    let (busy, ..) = pages("PRAGMA wal_checkpoint(RESTART)")?;
    Ok(busy == 0)
}

/// A connection on loan.
pub enum SqliteConn {
    /// The one that writes, inside a transaction.
    Write {
        /// Held until the transaction ends.
        conn: OwnedMutexGuard<Connection>,
        /// Tells the checkpointing thread that there is something to do.
        dirty: Arc<AtomicBool>,
        /// For the secrets in it.
        sealer: Arc<Sealer>,
        /// Whether the transaction still waits for its end.
        open: bool,
    },
    /// One of those that read; goes home when dropped.
    Read {
        /// `None` only while being dropped.
        conn: Option<Connection>,
        /// Where it goes back to.
        home: Arc<Readers>,
        /// Lets the next reader in.
        _permit: OwnedSemaphorePermit,
    },
    /// One to a file that is nobody else's: a backup.
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
    pub(crate) fn conn(&self) -> Result<&Connection> {
        match self {
            Self::Write { conn, .. } => Ok(conn),
            Self::Alone(conn) => Ok(conn),
            Self::Read { conn, .. } => {
                conn.as_ref().ok_or_else(|| Error::Unavailable("no reader".to_owned()))
            }
        }
    }

    /// A backup's secrets stay sealed: they are copied as they are.
    pub(crate) fn sealer(&self) -> Result<Arc<Sealer>> {
        match self {
            Self::Write { sealer, .. } => Ok(sealer.clone()),
            Self::Read { home, .. } => Ok(home.sealer.clone()),
            Self::Alone(_) => Err(Error::Backup("the secrets of a backup are sealed".to_owned())),
        }
    }

    pub(crate) fn commit(mut self) -> Result<()> {
        run(self.conn()?, "COMMIT")?;
        if let Self::Write { dirty, open, .. } = &mut self {
            *open = false;
            dirty.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(crate) fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> Result<u64> {
        let mut statement = prepare(self.conn()?, sql)?;
        execute(&mut statement, params)
    }

    pub(crate) fn query<T>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        read: &mut impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = prepare(self.conn()?, sql)?;
        let mut found = Vec::new();
        query(&mut statement, params, read, &mut found)?;
        Ok(found)
    }

    pub(crate) fn bulk_execute<const N: usize>(
        &mut self,
        sql: &str,
        rows: &Rows<'_, N>,
    ) -> Result<u64> {
        let mut statement = prepare(self.conn()?, sql)?;
        rows.iter().map(|row| execute(&mut statement, row)).sum()
    }

    pub(crate) fn bulk_query<T, const N: usize>(
        &mut self,
        sql: &str,
        rows: &Rows<'_, N>,
        read: &mut impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = prepare(self.conn()?, sql)?;
        let mut found = Vec::new();
        for row in rows.iter() {
            query(&mut statement, row, read, &mut found)?;
        }
        Ok(found)
    }
}

/// SQLite would number `$2, $1` by first appearance; `?2, ?1` it takes at their word.
fn prepare<'c>(conn: &'c Connection, sql: &str) -> Result<CachedStatement<'c>> {
    conn.prepare_cached(&sql.replace('$', "?")).map_err(failed)
}

fn run(conn: &Connection, sql: &str) -> Result<()> {
    let mut statement = prepare(conn, sql)?;
    statement.raw_execute().map_err(failed).map(drop)
}

fn bind(statement: &mut CachedStatement<'_>, params: &[Value<'_>]) -> Result<()> {
    for (i, p) in params.iter().enumerate() {
        statement.raw_bind_parameter(i + 1, p).map_err(failed)?;
    }
    Ok(())
}

fn execute(statement: &mut CachedStatement<'_>, params: &[Value<'_>]) -> Result<u64> {
    bind(statement, params)?;
    statement.raw_execute().map(|n| n as u64).map_err(failed)
}

fn query<T>(
    statement: &mut CachedStatement<'_>,
    params: &[Value<'_>],
    read: &mut impl FnMut(&Row<'_>) -> Result<T>,
    found: &mut Vec<T>,
) -> Result<()> {
    bind(statement, params)?;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(failed)? {
        found.push(read(&Row::Sqlite(row))?);
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

pub(crate) fn opt_int(row: &rusqlite::Row<'_>, i: usize) -> Result<Option<i64>> {
    row.get(i).map_err(failed)
}

pub(crate) fn opt_text(row: &rusqlite::Row<'_>, i: usize) -> Result<Option<String>> {
    row.get(i).map_err(failed)
}

pub(crate) fn bytes(row: &rusqlite::Row<'_>, i: usize) -> Result<Vec<u8>> {
    row.get(i).map_err(failed)
}

pub(crate) fn opt_uuid(row: &rusqlite::Row<'_>, i: usize) -> Result<Option<Uuid>> {
    let Some(blob) = row.get_ref(i).and_then(|v| Ok(v.as_blob_or_null()?)).map_err(failed)? else {
        return Ok(None);
    };
    Uuid::from_slice(blob).map(Some).map_err(Error::corrupt)
}

/// Sorts SQLite's errors by what can be done: no room, no access and a lock held too long pass by
/// themselves or by the operator's hand.
pub(crate) fn failed(e: rusqlite::Error) -> Error {
    match e.sqlite_error_code() {
        Some(
            ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::OutOfMemory,
        ) => Error::Unavailable(e.to_string()),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Corrupt(e.to_string()),
        _ => Error::Db(e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sealing::{KEY_BYTES, SealingKey};

    fn open(path: PathBuf) -> Result<Sqlite> {
        Sqlite::open(path, Arc::new(Sealer::new(&SealingKey::from_random([7; KEY_BYTES]))?))
    }

    /// The settings are each connection's own, and can't be seen from outside.
    #[tokio::test]
    async fn every_connection_keeps_what_is_promised() {
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
                let found = conn.query(pragma, &[], &mut |r| r.int(0)).unwrap();
                assert_eq!(found, [value], "{pragma}");
            }
        }
    }
    /// A backup reads for a long time: until it is done the log grows, and nobody waits.
    #[tokio::test]
    async fn the_log_starts_anew_when_no_reader_keeps_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("test.db");
        let db = open(path.clone()).unwrap();
        let log = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        let mut reader = db.snapshot().await.unwrap();
        reader.query("SELECT count(*) FROM carriers", &[], &mut |r| r.int(0)).unwrap();
        let mut tx = db.begin().await.unwrap();
        tx.execute("INSERT INTO carriers (name) VALUES ('a')", &[]).unwrap();
        tx.commit().unwrap();
        assert!(!shorten(&log, 0).unwrap());
        drop(reader);
        assert!(!shorten(&log, 1_000_000).unwrap());
        assert!(shorten(&log, 0).unwrap());
    }
}
