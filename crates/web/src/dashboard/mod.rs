//! The dashboard: pages for people, made on the server.

mod assets;
mod bubbles;
mod conversations;
mod csrf;
mod draft;
mod form;
mod live;
mod messages;
mod moment;
mod page;
pub(crate) mod peer;
mod phone;
mod place;
pub(crate) mod refusal;
pub(crate) mod routes;
mod send;
mod shell;
mod sign_in;
mod visit;
