//! Tests of PostgreSQL only.

mod lost_database;
