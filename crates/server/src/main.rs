//! The `heliograph` binary: parses the command line and runs the selected command.

mod account_lookup;
mod carriers;
mod certificate_reload;
mod commands;
mod config;
mod data_dir;
mod http;
mod key_usage;
mod log;
mod metrics_access;
mod name_resolver;
mod number_owners;
mod output;
mod rate_limit_share;
mod rates;
mod safety;
mod serve;
mod serve_args;
mod service_context;
mod shutdown;
mod signals;
mod simulator;
mod system;
mod telemetry;
mod welcome;
mod writer_thread;

use commands::{Cli, CliCommand};
use output::UsageError;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Files contain message texts, phone numbers and secrets: make them readable by the owner only.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let cli = Cli::read();
    let (file, json) = (cli.config.clone(), cli.json);
    let result = match cli.command() {
        CliCommand::Serve(args) => serve::main(&file, &args),
        CliCommand::Smsc(args) => simulator::main(args),
        other => commands::main(&file, json, other),
    };
    match result {
        Ok(code) => code,
        Err(e) if e.is::<UsageError>() => {
            output::print_error(false, &e);
            ExitCode::from(2)
        }
        Err(e) => {
            output::print_error(json, &e);
            ExitCode::FAILURE
        }
    }
}
