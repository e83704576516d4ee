//! Somebody asked: the HTTP doors, which parse, call one rule, and render.

mod api;
mod app;
mod auth;
mod body;
mod error;
mod health;
mod listen;
mod requests;
mod router;

pub use app::App;
pub use listen::serve;
