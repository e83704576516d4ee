//! Virtual handsets at work: what is typed in the dashboard reaches the simulated SMSC of this node.

use heliograph_carrier::smsc::simulator::{ReplyError, Simulator};
use heliograph_service::context::Context;
use heliograph_service::handsets::{self, HandsetReply};
use std::time::Duration;
use tokio::sync::watch;

/// How long a reply may lie that another node took down, or that nobody could take at first.
const PERIOD: Duration = Duration::from_secs(1);

/// Runs until `stop` turns true.
pub(crate) async fn run(context: Context, simulator: Simulator, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = context.bells.handsets() => {}
            () = tokio::time::sleep(PERIOD) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let done = handsets::hand_over(&context, |reply| inject(&simulator, reply)).await;
        if let Err(error) = done {
            tracing::warn!(%error, "replies from virtual handsets have to wait");
        }
    }
}

/// False when the SMSC can't take the reply now; one that it never will is dropped.
fn inject(simulator: &Simulator, reply: &HandsetReply) -> bool {
    let label = Some(handsets::label(reply));
    match simulator.reply(reply.handset, &reply.originator, &reply.text, label) {
        Ok(()) => true,
        Err(ReplyError::Nobody | ReplyError::Full) => false,
        Err(error @ (ReplyError::To(_) | ReplyError::TooLong)) => {
            tracing::warn!(%error, "a reply from a virtual handset was dropped");
            true
        }
    }
}
