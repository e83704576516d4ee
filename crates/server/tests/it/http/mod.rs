//! The HTTP listener, which does not depend on the database engine.

mod https;
mod limits;
