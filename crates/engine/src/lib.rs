//! It is due: the workers that keep messages moving when nobody asks.

mod breaker;
mod courier;
mod dispatch;
mod flight;
mod housekeeping;
mod http_client;
mod line;
mod post;
mod webhooks;
mod workers;

pub use workers::{Engine, Served, run};
