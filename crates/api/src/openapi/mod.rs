//! The OpenAPI document, built from the descriptions beside the handlers.

pub(crate) mod document;
mod events;
pub(crate) mod input_types;
pub(crate) mod operation;
mod parameters;
mod problems;
pub(crate) mod routes;
pub(crate) mod schemas;
