//! Prices, and charging messages.

pub mod charging;
pub mod price;
