//! Bind status: writes down how this node's lines are, for operators to look at on any node.

use heliograph_carrier::condition::Condition;
use heliograph_domain::carrier::BindStatus;
use heliograph_domain::id::CarrierId;
use heliograph_service::carriers;
use heliograph_service::context::Context;
use heliograph_service::error::Result;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::MissedTickBehavior;

/// How often it is written down even when no bind came or went.
const BEAT: Duration = Duration::from_secs(5);

/// A line that is looked at.
pub(crate) struct Watched {
    pub(crate) carrier: CarrierId,
    pub(crate) window: usize,
    pub(crate) condition: Arc<Condition>,
}

/// Runs until `stop` turns true, then takes away what it wrote.
pub(crate) async fn run(
    context: Context,
    lines: Vec<Watched>,
    bell: Arc<Notify>,
    mut stop: watch::Receiver<bool>,
) {
    let mut beat = tokio::time::interval(BEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // What the node wrote before it was started anew may name carriers that it does not have any more.
    complain(carriers::leave(&context).await);
    loop {
        tokio::select! {
            _ = beat.tick() => {}
            () = bell.notified() => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
        let all: Vec<_> = lines.iter().map(|line| line.look(&context)).collect();
        complain(carriers::report(&context, &all).await);
    }
    complain(carriers::leave(&context).await);
}

fn complain(done: Result<()>) {
    if let Err(error) = done {
        tracing::warn!(%error, "how the carriers' lines are could not be written down");
    }
}

impl Watched {
    fn look(&self, context: &Context) -> BindStatus {
        let seen = self.condition.look();
        let now = context.db.now();
        BindStatus {
            carrier: self.carrier,
            // A carrier is reached by one transceiver bind.
            binds: 1,
            bound: seen.bound.into(),
            window: u32::try_from(self.window).unwrap_or(u32::MAX),
            unanswered: u32::try_from(seen.unanswered).unwrap_or(u32::MAX),
            throttled: seen.throttled,
            last_error: seen.trouble.map(|(why, ago)| (why, now.before(ago))),
        }
    }
}
