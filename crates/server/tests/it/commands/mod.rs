//! The commands of the `heliograph` program.

mod account;
mod backup;
mod check;
mod config;
mod credit;
mod first_start;
mod key;
mod listen;
mod message;
mod migrate;
mod number;
mod sealing_key;
mod secrets;
mod serve;
mod serve_refusals;
mod usage;
