//! Prices.

pub mod price;
