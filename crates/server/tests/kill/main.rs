//! `kill -9` at random moments under load, verified with the logs of the clients, the SMSC and the
//! webhook sink.
//!
//! `HELIOGRAPH_BIN` names the program (default: the one that Cargo has built),
//! `HELIOGRAPH_KILL_ROUNDS`
//! the number of rounds (default: 25), and `HELIOGRAPH_KILL_SEED` repeats the random moments of an
//! earlier run. On SQLite there is one node, on PostgreSQL there are two.

#[cfg(test)]
mod driver;
#[cfg(test)]
mod judge;
#[cfg(test)]
mod load;
#[cfg(test)]
mod rounds;
#[cfg(test)]
#[path = "../it/support/mod.rs"]
#[allow(dead_code, reason = "the test binary `it` uses all of it")]
mod support;

#[cfg(test)]
#[test]
fn no_message_is_lost() {
    rounds::run();
}
