//! The command line interface: one module per command.

mod account;
mod backup;
mod check;
mod cli;
mod config;
mod context;
mod credit;
mod key;
mod listen;
mod message;
mod migrate;
mod number;
mod optout;
mod restore;
mod run;
mod running;
mod seal;
mod webhook;

pub(crate) use cli::{Cli, CliCommand};
pub(crate) use run::main;
