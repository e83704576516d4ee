//! The documentation door: the document of the API, and pages made from it.

mod asset;
pub(crate) mod routes;
