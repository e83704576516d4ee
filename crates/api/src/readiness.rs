//! The readiness of a node: whether it can accept work, which is true only if a write can commit.

use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::writer::Writer;
use heliograph_service::operations::nodes;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// The time for which a result is used again: every load balancer in front asks every few seconds.
const MAX_AGE: Duration = Duration::from_secs(1);
/// The time limit of a check; health checks of load balancers rarely wait longer.
const TIME_LIMIT: Duration = Duration::from_secs(3);
/// The largest difference between the clocks of node and database in milliseconds.
const MAX_SKEW: i64 = 2_000;

/// The latest result: when it was found, and the reason why the node is not ready.
type Found = (Instant, Result<(), &'static str>);

/// Checks the readiness, at most once per second.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<Found>>);

impl Readiness {
    /// Returns the reason why the node is not ready.
    pub(crate) async fn check(&self, cx: &Context, writer: &Writer) -> Result<(), &'static str> {
        // Requests that arrive during a check wait for its result.
        let mut latest = self.0.lock().await;
        if let Some((at, result)) = *latest
            && at.elapsed() < MAX_AGE
        {
            return result;
        }
        let result = timeout(TIME_LIMIT, examine(cx, writer)).await;
        let result = result.unwrap_or(Err("database does not answer in time\n"));
        *latest = Some((Instant::now(), result));
        result
    }
}

/// Examines the database: it answers, its clock agrees, and a write commits.
async fn examine(cx: &Context, writer: &Writer) -> Result<(), &'static str> {
    match nodes::clock_offset(cx).await {
        Err(_) => return Err("database unavailable\n"),
        Ok(offset) if offset.abs() > MAX_SKEW => {
            return Err("clock skew between node and database exceeds 2 s\n");
        }
        Ok(_) => {}
    }
    nodes::check_commit(writer).await.map_err(|_| "database cannot be written\n")
}
