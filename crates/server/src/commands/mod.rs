//! The command line: what there is to say, and who does it.

mod account;
mod arguments;
mod backup;
mod check;
mod config;
mod credit;
mod key;
mod listen;
mod migrate;
mod restore;
mod webhook;

pub(crate) use arguments::{Cli, Command, Role, ServeArgs, main};
