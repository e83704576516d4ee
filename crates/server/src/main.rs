//! The one binary: reads the command line and starts what it asks for.

mod carriers;
mod commands;
mod config;
mod folder;
mod greeting;
mod log;
mod output;
mod rates;
mod serve;
mod share;
mod shutdown;
mod simulator;
mod system;
mod telemetry;
mod usage;

use clap::Parser;
use commands::{Cli, Command};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // What it writes holds texts, numbers and secrets: nobody else is to read it, in whatever folder it stands.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let cli = Cli::parse();
    let (file, json) = (cli.config.clone(), cli.json);
    let done = match cli.command() {
        Command::Serve(args) => serve::main(&file, &args),
        Command::Smsc(args) => simulator::main(args),
        other => commands::main(&file, json, other),
    };
    match done {
        Ok(code) => code,
        Err(e) => {
            output::failure(json, &e);
            ExitCode::FAILURE
        }
    }
}
