//! Virtual handsets: passes replies typed in the dashboard to the simulated SMSC of this node.

use crate::worker::{PeriodicTask, Worker};
use heliograph_carrier::smsc::simulator::{ReplyError, Simulator};
use heliograph_service::kernel::context::Context;
use heliograph_service::kernel::error::Result;
use heliograph_service::messaging::handsets::{self, HandsetReply};
use std::time::Duration;
use tokio::sync::watch;

/// The interval between checks for pending replies: those stored by another node, or not accepted
/// at first.
const PERIOD: Duration = Duration::from_secs(1);

/// The hand-over of replies to the simulated SMSC.
struct HandsetReplies {
    context: Context,
    simulator: Simulator,
}

/// Runs until `stop` turns true.
pub(crate) async fn run(context: Context, simulator: Simulator, stop: watch::Receiver<bool>) {
    Worker { interval: PERIOD, stop }.run(&mut HandsetReplies { context, simulator }).await;
}

impl PeriodicTask for HandsetReplies {
    const FAILURE: &'static str = "failed to deliver replies from virtual handsets";

    async fn turn(&mut self) -> Result<()> {
        handsets::hand_over(&self.context, |reply| inject(&self.simulator, reply)).await.map(drop)
    }

    async fn woken(&mut self) {
        self.context.notifier.handset_reply_queued().await;
    }
}

/// Returns false if the SMSC cannot accept the reply now; a reply that it will never accept is
/// dropped.
fn inject(simulator: &Simulator, reply: &HandsetReply) -> bool {
    let label = Some(handsets::label(reply));
    match simulator.reply(reply.handset, &reply.originator, &reply.text, label) {
        Ok(()) => true,
        Err(ReplyError::NoReceiver | ReplyError::QueueFull) => false,
        Err(error @ (ReplyError::InvalidOriginator(_) | ReplyError::TooLong)) => {
            tracing::warn!(%error, "dropped a reply from a virtual handset");
            true
        }
    }
}
