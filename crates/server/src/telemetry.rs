//! Logging and metrics of the process.

use crate::config::{LogFormat, TelemetryConfig};
use crate::log::{self, FlushGuard};
use anyhow::Context;
use heliograph_engine::{PeriodicTask, Worker};
use heliograph_service::kernel::error::Result;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::time::Duration;
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// The interval between upkeep runs of the metrics recorder.
const UPKEEP: Duration = Duration::from_secs(5);
/// Histogram buckets of `*_seconds` metrics.
const SECONDS: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];
/// Histogram buckets of `*_rows` metrics.
const ROWS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// Starts logging to stderr with the configured filter and format. Dropping the guard flushes
/// buffered lines.
pub(crate) fn log(config: &TelemetryConfig) -> anyhow::Result<FlushGuard> {
    let invalid = || {
        format!(
            "telemetry.log: invalid filter '{}' (use a level such as info, or module=level)",
            config.log
        )
    };
    // A misspelt level would be read as a module name and silence all others.
    for word in config.log.split(',').filter(|w| !w.contains('=')) {
        word.trim().parse::<LevelFilter>().with_context(invalid)?;
    }
    let filter = EnvFilter::try_new(&config.log).with_context(invalid)?;
    // The driver logs statement parameters, which contain message texts and keys.
    let filter = filter.add_directive("tokio_postgres=info".parse()?);
    let (lines, flush) = log::start().context("failed to start the log thread")?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(lines);
    match config.format {
        LogFormat::Text => builder.event_format(log::TextFormat).init(),
        LogFormat::Json => builder.json().flatten_event(true).with_target(false).init(),
    }
    Ok(flush)
}

/// Installs the metrics recorder; the handle renders the metrics.
pub(crate) fn metrics() -> anyhow::Result<PrometheusHandle> {
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_rows".to_owned()), ROWS)?;
    builder.install_recorder().context("failed to install the metrics recorder")
}

/// The recorder's upkeep, which bounds the memory of its histograms.
struct MetricsUpkeep(PrometheusHandle);

/// Runs the upkeep of the metrics recorder until `stop` turns true.
pub(crate) async fn upkeep(metrics: PrometheusHandle, stop: watch::Receiver<bool>) {
    Worker { interval: UPKEEP, stop }.run(&mut MetricsUpkeep(metrics)).await;
}

impl PeriodicTask for MetricsUpkeep {
    const FAILURE: &'static str = "metrics upkeep failed";

    async fn turn(&mut self) -> Result<()> {
        self.0.run_upkeep();
        Ok(())
    }
}
