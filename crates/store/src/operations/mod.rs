//! Nodes, carriers, numbers, statistics, backup and checks.

pub mod access;
pub mod backup;
pub mod bind_status;
pub mod carriers;
pub mod check;
pub mod nodes;
pub mod numbers;
pub mod stats;
