//! Logs and metrics of the process.

use crate::config::{LogFormat, Telemetry};
use crate::log::{self, Flush};
use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Seconds, from a tenth of a millisecond to the longest that anyone waits.
const SECONDS: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];
const ROWS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// Sends log lines to stderr as the configuration asks. What still waits is written when the guard
/// is dropped.
pub(crate) fn log(config: &Telemetry) -> anyhow::Result<Flush> {
    let bad = || {
        format!(
            "telemetry.log can't be read: '{}' (a level like info, or module=level)",
            config.log
        )
    };
    // A word that is no level would name a module, and silence all others.
    for word in config.log.split(',').filter(|w| !w.contains('=')) {
        word.trim().parse::<LevelFilter>().with_context(bad)?;
    }
    let filter = EnvFilter::try_new(&config.log).with_context(bad)?;
    // What the driver tells of each statement holds texts and keys.
    let filter = filter.add_directive("tokio_postgres=info".parse()?);
    let (lines, flush) = log::start().context("no thread for the log")?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(lines);
    match config.format {
        LogFormat::Text => builder.event_format(log::Text).init(),
        LogFormat::Json => builder.json().flatten_event(true).with_target(false).init(),
    }
    Ok(flush)
}

/// Gathers metrics from now on; the handle renders them.
pub(crate) fn metrics() -> anyhow::Result<PrometheusHandle> {
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_rows".to_owned()), ROWS)?;
    builder.install_recorder().context("metrics can't be gathered")
}
