//! Logs and metrics of the process.

use crate::config::{LogFormat, Telemetry};
use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::io::{BufWriter, IsTerminal};
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::EnvFilter;

/// Seconds, from a tenth of a millisecond to the longest that anyone waits.
const SECONDS: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];
const ROWS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// Sends log lines to stderr as the configuration asks, by a thread of its own, so that no message
/// waits for a slow terminal; lines beyond what that thread can keep up with are dropped. What still
/// waits is written when the guard is dropped.
pub(crate) fn log(config: &Telemetry) -> anyhow::Result<WorkerGuard> {
    let filter = EnvFilter::try_new(&config.log)
        .with_context(|| format!("telemetry.log can't be read: '{}'", config.log))?;
    let (lines, guard) = tracing_appender::non_blocking(BufWriter::new(std::io::stderr()));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(lines)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    match config.format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(guard)
}

/// Gathers metrics from now on; the handle renders them.
pub(crate) fn metrics() -> anyhow::Result<PrometheusHandle> {
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_rows".to_owned()), ROWS)?;
    builder.install_recorder().context("metrics can't be gathered")
}
