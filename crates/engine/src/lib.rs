//! It is due: the workers that keep messages moving when nobody asks.

mod dispatch;
mod flight;
mod housekeeping;
mod workers;

pub use workers::{Engine, Served, run};
