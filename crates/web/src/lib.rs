//! Somebody asked: the HTTP doors, which parse, call one rule, and render.

mod api;
mod app;
mod auth;
mod body;
mod docs;
mod error;
mod health;
mod import;
mod listen;
mod openapi;
mod query;
mod requests;
mod router;
mod view;

pub use app::App;
pub use listen::serve;
