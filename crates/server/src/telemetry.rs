//! Logging of the process.

use crate::config::{LogFormat, TelemetryConfig};
use crate::log::{self, FlushGuard};
use anyhow::Context;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

/// Starts logging to stderr with the configured filter and format. Dropping the guard flushes
/// buffered lines.
pub(crate) fn log(config: &TelemetryConfig) -> anyhow::Result<FlushGuard> {
    let invalid = || {
        format!(
            "telemetry.log: invalid filter '{}' (use a level such as info, or module=level)",
            config.log
        )
    };
    let words: Vec<&str> = config.log.split(',').map(str::trim).collect();
    // A misspelt level would be read as a module name and silence all others.
    for word in words.iter().filter(|w| !w.contains('=')) {
        word.parse::<LevelFilter>().with_context(invalid)?;
    }
    let filter: Targets = words.join(",").parse().with_context(invalid)?;
    // The driver logs statement parameters, which contain message texts and keys.
    let filter = filter.with_target("tokio_postgres", LevelFilter::INFO);
    let (lines, flush) = log::start().context("failed to start the log thread")?;
    let layer = tracing_subscriber::fmt::layer().with_writer(lines);
    let registry = tracing_subscriber::registry().with(filter);
    match config.format {
        LogFormat::Text => registry.with(layer.event_format(log::TextFormat)).init(),
        LogFormat::Json => {
            registry.with(layer.json().flatten_event(true).with_target(false)).init();
        }
    }
    Ok(flush)
}
