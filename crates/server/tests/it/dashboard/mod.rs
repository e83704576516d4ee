//! The dashboard as a browser without JavaScript sees it.

mod api_keys;
mod auth;
mod conversations;
mod members;
mod messages;
mod mode;
mod operator;
mod optouts;
mod overview;
mod phone;
mod security_headers;
mod send;
mod tenants;
mod two_factor;
mod webhooks;
