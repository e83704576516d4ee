//! The documentation door: the document of the API, and pages made from it.

pub(crate) mod asset;
mod errors;
mod markup;
mod reference;
pub(crate) mod routes;
mod schema;
