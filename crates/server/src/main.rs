//! The one binary: reads the command line and starts what it asks for.

mod commands;
mod config;
mod greeting;
mod output;
mod rates;
mod serve;
mod simulator;
mod system;
mod telemetry;

use clap::Parser;
use commands::{Cli, Command};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command.unwrap_or_default() {
        Command::Serve(args) => serve::main(&cli.config, &args),
        Command::Smsc(args) => simulator::main(args),
        other => commands::main(&cli.config, cli.json, other),
    };
    match done {
        Ok(code) => code,
        Err(e) => {
            output::talk(&format!("heliograph: {e:#}"));
            ExitCode::FAILURE
        }
    }
}
