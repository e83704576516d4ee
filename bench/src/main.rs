//! The parts of the benches, each a sub-command that prints one JSON object per result.

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

/// What the benches are made of. Everything stays on 127.0.0.1; bench/README.md says how it is used.
#[derive(Parser, Debug)]
#[command(name = "bench", version)]
struct Cli {
    #[command(subcommand)]
    part: Part,
}

/// One of the parts.
#[derive(Subcommand, Debug)]
enum Part {
    /// Sends HTTP requests over connections that stay open, and measures the answers
    Load(load::Options),
    /// A bare axum server that parses the same JSON and keeps nothing: the ceiling for HTTP
    Echo(echo::Options),
    /// A lean SMSC that answers, sends receipts, and counts
    Smsc(smsc::Options),
    /// A lean webhook sink that answers well or badly, and counts
    Sink(sink::Options),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().part {
        Part::Load(options) => load::main(options),
        Part::Echo(options) => echo::main(&options),
        Part::Smsc(options) => smsc::main(options),
        Part::Sink(options) => sink::main(options),
    }
}
