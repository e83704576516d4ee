//! The dashboard: pages for people, made on the server.

mod assets;
mod audit;
mod csrf;
mod form;
mod join;
mod live;
mod outside;
mod page;
pub(crate) mod peer;
mod people;
mod phone;
mod place;
pub(crate) mod refusal;
mod reset;
pub(crate) mod routes;
mod security;
mod shell;
mod sign_in;
mod sign_up;
mod visit;
