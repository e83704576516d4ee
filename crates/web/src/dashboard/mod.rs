//! The dashboard: pages for people, made on the server.

mod assets;
mod csrf;
mod figure;
mod form;
mod live;
mod operator;
mod optouts;
mod overview;
mod page;
pub(crate) mod peer;
mod phone;
mod place;
pub(crate) mod refusal;
pub(crate) mod routes;
mod shell;
mod sign_in;
mod visit;
