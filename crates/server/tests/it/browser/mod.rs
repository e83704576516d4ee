//! The dashboard in Chromium; it does not depend on the database engine.

mod accessibility;
mod journey;
mod screenshots;
mod usability;
