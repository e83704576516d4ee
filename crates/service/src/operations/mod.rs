//! Running the service: nodes, carriers, maintenance, statistics, backup and checks.

pub mod backup;
pub mod carriers;
pub mod check;
pub mod heartbeat;
pub mod maintenance;
pub mod nodes;
pub mod numbers;
pub mod restored_access;
pub mod retention;
pub mod sealing;
pub mod stats;
