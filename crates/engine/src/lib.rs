//! Background workers: everything that happens because it is due, not because a request asked for
//! it.
//!
//! The workers dispatch messages to carriers, deliver webhooks, send mail and run maintenance. They
//! hold no state that matters: the tables of the store are the queues, and memory is a head start.

mod bind_status;
mod dispatch;
mod forward;
mod handsets;
mod http;
mod mail;
mod maintenance;
mod pending_batch;
mod webhooks;
mod worker;
mod workers;

pub use forward::Forwarder;
pub use mail::Mailer;
pub use worker::{PeriodicTask, Worker};
pub use workers::{ConfiguredCarrier, Engine, run};
