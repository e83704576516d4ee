//! The metrics of the process, in the text format of Prometheus.

use prometheus::{
    GaugeVec, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry,
    TextEncoder,
};
use std::sync::LazyLock;

/// Buckets of times in seconds.
const SECONDS: [f64; 13] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];
/// Buckets of numbers of rows.
const ROWS: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// All metrics of the process. Counters begin at 0 when the process starts.
pub struct Metrics {
    registry: Registry,
    /// Messages accepted by this node.
    pub accepted: IntCounter,
    /// Messages handed to a carrier.
    pub dispatched: IntCounter,
    /// Outcomes of messages, as reported by carriers.
    pub settled: IntCounter,
    /// Delivery receipts received from carriers.
    pub receipts: IntCounter,
    /// Inbound messages received from carriers.
    pub inbound: IntCounter,
    /// Inbound messages for numbers that belong to no account.
    pub inbound_unclaimed: IntCounter,
    /// Carrier events that could not be committed and were set aside.
    pub set_aside: IntCounter,
    /// Ids that a carrier gave to two messages to the same recipient, by `carrier`, its number.
    pub reused_ids: IntCounterVec,
    /// Failed messages by `reason`, the failure code.
    pub messages_failed: IntCounterVec,
    /// Webhook delivery attempts by `result`: delivered, failed or postponed.
    pub webhook_attempts: IntCounterVec,
    /// 1 while the `carrier` is connected.
    pub carrier_bound: IntGaugeVec,
    /// Queued messages by `carrier`.
    pub queue_depth: IntGaugeVec,
    /// The age of the oldest due message by `carrier`, in seconds.
    pub queue_oldest_due: GaugeVec,
    /// Rows per transaction of the writer.
    pub writer_batch_rows: Histogram,
    /// The duration of the writer's transactions, in seconds.
    pub writer_commit: Histogram,
}

static METRICS: LazyLock<Metrics> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the names are constant, and a test creates them all")]
    Metrics::new().expect("the names of the metrics are valid and unique")
});

/// Returns the metrics of the process.
pub fn metrics() -> &'static Metrics {
    &METRICS
}

impl Metrics {
    fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let opts = |name: &str, help: &str| Opts::new(format!("heliograph_{name}"), help);
        let counter = |name, help| {
            let counter = IntCounter::with_opts(opts(name, help))?;
            registry.register(Box::new(counter.clone())).map(|()| counter)
        };
        let counters = |name, help, label| {
            let counters = IntCounterVec::new(opts(name, help), &[label])?;
            registry.register(Box::new(counters.clone())).map(|()| counters)
        };
        let gauges = |name, help| {
            let gauges = IntGaugeVec::new(opts(name, help), &["carrier"])?;
            registry.register(Box::new(gauges.clone())).map(|()| gauges)
        };
        let histogram = |name, help, buckets: &[f64]| {
            let opts = HistogramOpts::from(opts(name, help)).buckets(buckets.to_vec());
            let histogram = Histogram::with_opts(opts)?;
            registry.register(Box::new(histogram.clone())).map(|()| histogram)
        };
        let oldest = opts(
            "queue_oldest_due_seconds",
            "Age of the oldest due message in the queue of a carrier.",
        );
        let queue_oldest_due = GaugeVec::new(oldest, &["carrier"])?;
        registry.register(Box::new(queue_oldest_due.clone()))?;
        Ok(Self {
            accepted: counter("accepted_total", "Messages accepted by this node.")?,
            dispatched: counter("dispatched_total", "Messages handed to a carrier.")?,
            settled: counter("settled_total", "Outcomes of messages reported by carriers.")?,
            receipts: counter("receipts_total", "Delivery receipts received from carriers.")?,
            inbound: counter("inbound_total", "Inbound messages received from carriers.")?,
            inbound_unclaimed: counter(
                "inbound_unclaimed_total",
                "Inbound messages for numbers that belong to no account.",
            )?,
            set_aside: counter(
                "carrier_events_set_aside_total",
                "Outcomes, receipts and inbound messages that could not be committed.",
            )?,
            reused_ids: counters(
                "carrier_reused_ids_total",
                "Message ids that a carrier gave to two messages to the same recipient.",
                "carrier",
            )?,
            messages_failed: counters(
                "messages_failed_total",
                "Failed messages by failure code.",
                "reason",
            )?,
            webhook_attempts: counters(
                "webhook_attempts_total",
                "Webhook delivery attempts by result.",
                "result",
            )?,
            carrier_bound: gauges("carrier_bound", "1 while the carrier is connected.")?,
            queue_depth: gauges("queue_depth", "Queued messages of a carrier.")?,
            queue_oldest_due,
            writer_batch_rows: histogram(
                "writer_batch_rows",
                "Rows per transaction of the writer.",
                &ROWS,
            )?,
            writer_commit: histogram(
                "writer_commit_seconds",
                "Duration of the writer's transactions.",
                &SECONDS,
            )?,
            registry,
        })
    }

    /// Returns all metrics in the text format, version 0.0.4. Metrics with labels are absent until
    /// they have a value.
    pub fn render(&self) -> String {
        // The encoder writes to memory and fails only for metrics without values, which `gather`
        // leaves out.
        TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_metrics_are_rendered_with_help_and_type() {
        let metrics = Metrics::new().unwrap();
        metrics.accepted.inc_by(4);
        metrics.carrier_bound.with_label_values(&["main"]).set(1);
        metrics.writer_commit.observe(0.002);
        let text = metrics.render();
        for line in [
            "# HELP heliograph_accepted_total Messages accepted by this node.",
            "# TYPE heliograph_accepted_total counter",
            "heliograph_accepted_total 4",
            "heliograph_carrier_bound{carrier=\"main\"} 1",
            "heliograph_writer_commit_seconds_bucket{le=\"0.0025\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is missing:\n{text}");
        }
    }
}
