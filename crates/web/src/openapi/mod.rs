//! The OpenAPI document: what each operation says of itself, put together.

pub(crate) mod document;
mod events;
pub(crate) mod operation;
mod parameters;
mod problems;
pub(crate) mod routes;
pub(crate) mod schemas;
pub(crate) mod written;
