//! The documentation, compared with the program; it does not depend on the database engine.

mod command_samples;
#[cfg(feature = "test-samples")]
mod guides;
mod openapi;
mod pages;
mod reference;
#[cfg(feature = "test-schema")]
mod schemathesis;
#[cfg(feature = "test-samples")]
mod webhook_samples;
