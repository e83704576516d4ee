//! The benchmark tools: each is a subcommand that prints one JSON object per result.

mod echo;
mod load;
mod output;
mod pacer;
mod pdu;
mod session;
mod sink;
mod smsc;
mod template;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Benchmark tools for Heliograph; all of them use only 127.0.0.1 (see bench/README.md)
#[derive(Parser, Debug)]
#[command(name = "bench", version)]
struct Cli {
    #[command(subcommand)]
    tool: Tool,
}

/// The tools.
#[derive(Subcommand, Debug)]
enum Tool {
    /// Send HTTP requests over keep-alive connections and measure the responses
    Load(load::LoadArgs),
    /// Run a bare axum server that parses the same JSON and stores nothing: the upper bound for
    /// HTTP
    Echo(echo::EchoArgs),
    /// Run a minimal SMSC that responds, sends receipts and counts
    Smsc(smsc::BenchSmscArgs),
    /// Run a webhook receiver with configurable behaviour that counts
    Sink(sink::SinkArgs),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().tool {
        Tool::Load(options) => load::main(options),
        Tool::Echo(options) => echo::main(&options),
        Tool::Smsc(options) => smsc::main(options),
        Tool::Sink(options) => sink::main(options),
    }
}
