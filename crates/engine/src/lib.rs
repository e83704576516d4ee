//! It is due: the workers that keep messages moving when nobody asks.

mod bind_status;
mod breaker;
mod courier;
mod dispatch;
mod flight;
mod forward;
mod handsets;
mod housekeeping;
mod http_client;
mod line;
mod mail;
mod post;
mod webhooks;
mod workers;

pub use forward::Forwarder;
pub use mail::Mailer;
pub use workers::{Engine, Served, run};
