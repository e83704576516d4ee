//! Balances and the ledger.

pub mod balances;
pub mod ledger;
