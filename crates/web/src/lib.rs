//! Somebody asked: the HTTP doors, which parse, call one rule, and render.

mod api;
mod app;
mod auth;
mod body;
mod certificate;
mod connection;
mod crowd;
mod dashboard;
mod docs;
mod entrance;
mod error;
mod gate;
mod health;
mod import;
mod lent;
mod limits;
mod listen;
mod once;
mod openapi;
mod query;
mod rate_limit;
mod requests;
mod router;
mod sending;
mod tls;
mod turn;
mod view;

pub use app::App;
pub use certificate::{Renewal, Tls, Unusable, read as read_certificate};
pub use entrance::Entrance;
pub use gate::{Gate, GateKeeper};
pub use listen::{listen, serve};
pub use rate_limit::RateLimit;
