//! `kill -9` at random moments under load, judged from outside by what driver, SMSC and
//! webhook sink wrote down.
//!
//! `HELIOGRAPH_BIN` names the program (else it is what Cargo has built), `HELIOGRAPH_KILL_ROUNDS`
//! the number of rounds (25), and `HELIOGRAPH_KILL_SEED` brings back the moments of an earlier run.

#[cfg(test)]
#[path = "../it/database.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "the other test binary uses all of it")]
mod database;
#[cfg(test)]
mod driver;
#[cfg(test)]
#[path = "../it/http.rs"]
#[allow(dead_code, reason = "the other test binary uses all of it")]
mod http;
#[cfg(test)]
mod judge;
#[cfg(test)]
mod load;
#[cfg(test)]
#[path = "../it/patience.rs"]
mod patience;
#[cfg(test)]
#[path = "../it/ports.rs"]
#[allow(dead_code, reason = "the other test binary uses all of it")]
mod ports;
#[cfg(test)]
#[cfg(feature = "test-postgres")]
#[path = "../it/postgres.rs"]
#[allow(dead_code, reason = "the other test binary uses all of it")]
mod postgres;
#[cfg(test)]
#[path = "../it/process.rs"]
#[allow(dead_code, reason = "the other test binary uses all of it")]
mod process;
#[cfg(test)]
mod rounds;
#[cfg(test)]
#[path = "../it/server.rs"]
#[allow(dead_code, reason = "the other test binary uses all of it")]
mod server;
#[cfg(test)]
#[path = "../it/sink.rs"]
#[allow(dead_code, reason = "the other test binary uses all of it")]
mod sink;
#[cfg(test)]
#[path = "../it/smsc.rs"]
#[allow(dead_code, reason = "the other test binary uses all of it")]
mod smsc;

#[cfg(test)]
#[test]
fn one_node_on_sqlite() {
    rounds::run(database::Engine::Sqlite, 1);
}

#[cfg(test)]
#[cfg(feature = "test-postgres")]
#[test]
fn two_nodes_on_postgres() {
    rounds::run(database::Engine::Postgres, 2);
}
