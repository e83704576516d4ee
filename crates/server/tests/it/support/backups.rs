//! A backup that takes time to make and to restore.

use crate::support::server::Server;

/// The number of events; a restore takes long enough to be killed.
pub(crate) const EVENTS: i64 = 200_000;
pub(crate) const COUNT: &str = "SELECT count(*) FROM events";

/// Creates the backup `large.db` of a server, and adds events to it.
pub(crate) fn large(server: &Server) {
    server.stdout(&["backup", "large.db"]);
    let conn = rusqlite::Connection::open(server.home.path().join("large.db")).unwrap();
    let sql = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < $1)
        INSERT INTO events SELECT 1, randomblob(16), 0, 0, 0, NULL, 1795165200000, 1, NULL, NULL, NULL FROM n";
    conn.execute(sql, [EVENTS]).unwrap();
}
