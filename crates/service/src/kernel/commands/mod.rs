//! The commands of the writer: one file for each kind, with its data, its outcome, its weight and its refusal.

pub mod accept;
pub mod cancel;
pub mod check_commit;
pub mod claim;
pub mod claim_deliveries;
pub mod command;
pub mod expire;
pub mod progress;
pub mod renew;
pub mod report_deliveries;
pub mod writer_command;
