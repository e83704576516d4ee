//! Tests of the fixtures.

#[cfg(test)]
mod database;
