//! The API documentation: the OpenAPI document, and HTML pages generated from it.

mod errors;
mod guides;
mod markup;
mod reference;
pub(crate) mod routes;
mod schema;
