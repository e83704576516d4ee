//! Tests of PostgreSQL only. They use PostgreSQL, whichever engine the run uses.

mod connections;
mod schema;
mod tls;
