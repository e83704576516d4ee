//! Somebody asked: the HTTP doors, which parse, call one rule, and render.

mod api;
mod app;
mod auth;
mod body;
mod certificate;
mod connection;
mod crowd;
mod error;
mod gate;
mod health;
mod import;
mod limits;
mod listen;
mod query;
mod requests;
mod router;
mod tls;
mod turn;
mod view;

pub use app::App;
pub use certificate::{Renewal, Tls, Unusable, read as read_certificate};
pub use gate::{Gate, GateKeeper};
pub use listen::{listen, serve};
