//! Group commit: the node's writer, which executes the commands of a batch in one transaction.

pub mod batch;
pub mod run;
