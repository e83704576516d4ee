//! Somebody asked: the HTTP doors, which parse, call one rule, and render.

mod api;
mod app;
mod auth;
mod body;
mod error;
mod health;
mod import;
mod listen;
mod once;
mod query;
mod rate_limit;
mod requests;
mod router;
mod view;

pub use app::App;
pub use listen::serve;
pub use rate_limit::RateLimit;
