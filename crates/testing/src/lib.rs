//! Fixtures shared by the test suites; every crate uses this one only as a dev-dependency.
//!
//! `HELIOGRAPH_TEST_ENGINE` selects the database engine of [`TestDb::new`]: `sqlite` (the default)
//! or `postgres`, which requires `HELIOGRAPH_TEST_POSTGRES`: the URL of a server on which tests may
//! create and drop databases.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a fixture that cannot be set up fails its test"
)]

mod database;
mod deterministic;
mod engine;
#[cfg(feature = "service")]
mod node;
#[cfg(feature = "service")]
mod resolver;

pub use database::{TestDb, sealing_key};
pub use deterministic::{START, TestClock, TestIds, TestRandom};
pub use engine::{TestEngine, engine};
#[cfg(feature = "service")]
pub use node::{CARRIER, PART_PRICE, TestWriter, context, node_context, writer};
#[cfg(feature = "service")]
pub use resolver::TestResolver;
