//! Background workers: they do what is due at a certain time, independent of requests.
//!
//! The workers dispatch messages to carriers, deliver webhooks, send mail and run maintenance. They
//! hold no state that must not be lost: the tables of the store are the queues, and queues in memory
//! only save time.

mod bind_status;
mod dispatch;
mod forward;
mod handsets;
mod heartbeat;
mod http;
mod mail;
mod maintenance;
mod pending_batch;
mod webhooks;
mod worker;
mod workers;

pub use forward::Forwarder;
pub use http::authorities::{Authorities, read_authorities};
pub use mail::Mailer;
pub use worker::{PeriodicTask, Worker};
pub use workers::{ConfiguredCarrier, Engine, run};
