//! The ledger.

pub mod ledger;
